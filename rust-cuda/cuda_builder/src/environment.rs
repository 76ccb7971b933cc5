//! The environment of the programs that build device code.

use std::env;
use std::process::Command;

/// Takes from a command what the surrounding build would push into it: a build script inherits
/// flags, wrappers and a toolchain meant for host code.
pub(crate) fn clean_environment(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if !is_inherited(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
}

/// True for variables that say where Cargo keeps and gets its crates, which stay as they are.
fn is_inherited(name: &str) -> bool {
    const KEPT: &[&str] = &[
        "CARGO_HOME",
        "CARGO_NET_",
        "CARGO_HTTP_",
        "CARGO_REGISTR",
        "CARGO_SOURCE_",
    ];
    const REMOVED: &[&str] = &["CARGO", "RUSTC", "RUSTDOC", "CLIPPY_", "DEP_", "__CARGO"];
    const REMOVED_NAMES: &[&str] = &[
        "RUSTFLAGS",
        "RUSTUP_TOOLCHAIN",
        "MAKEFLAGS",
        "MFLAGS",
        "OUT_DIR",
        "TARGET",
        "HOST",
        "OPT_LEVEL",
        "DEBUG",
        "PROFILE",
        "NUM_JOBS",
    ];
    let begins_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    begins_with(KEPT) || !(begins_with(REMOVED) || REMOVED_NAMES.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_wrappers_of_the_host_build_do_not_reach_the_device_build() {
        for removed in [
            "CARGO",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_BUILD_TARGET",
            "CARGO_TARGET_DIR",
            "CARGO_MAKEFLAGS",
            "CARGO_PROFILE_RELEASE_DEBUG",
            "CARGO_PKG_NAME",
            "RUSTC",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTFLAGS",
            "RUSTDOCFLAGS",
            "RUSTUP_TOOLCHAIN",
            "OUT_DIR",
        ] {
            assert!(!is_inherited(removed), "{removed}");
        }
        for kept in [
            "PATH",
            "HOME",
            "CARGO_HOME",
            "CARGO_NET_OFFLINE",
            "CARGO_HTTP_PROXY",
            "RUSTUP_HOME",
        ] {
            assert!(is_inherited(kept), "{kept}");
        }
    }
}
