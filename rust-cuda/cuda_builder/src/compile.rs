//! Runs Cargo on a kernel crate and picks up the PTX.

use crate::environment::clean_environment;
use crate::{BuilderError, NvptxArch, Toolchain};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "nvptx64-nvidia-cuda";

/// LLVM's loop unrolling is reduced to one rule that can be relied on: a loop whose trip count is
/// a constant of at most 16 is unrolled fully (a kernel's small arrays then stay in registers),
/// and no other loop is unrolled, peeled or split. Larger factors are spelled out in the source.
///
/// Left to itself LLVM unrolls runtime loops by 2 to 4 and decides about constant ones by size.
/// The threshold (default 300 instructions) is high enough never to decide.
const UNROLLING: &str = "-Cllvm-args=-unroll-runtime=false -unroll-allow-partial=false \
     -unroll-allow-peeling=false -unroll-full-max-count=16 -unroll-threshold=8192";

/// Without rustc's own jump threading, which is no less than wrong for GPUs: it copies what follows a
/// branch into the branch's arms, barriers and warp collectives too, for it does not know that all
/// threads have to reach the same one. Of `let key = if exists { load() } else { 0 }; ballot(exists)`
/// it makes two ballots, one for the lanes with a key and one for those without. LLVM's passes, jump
/// threading among them, know the intrinsics to be convergent.
const NO_JUMP_THREADING: &str = "-Zmir-enable-passes=-JumpThreading";

/// The compiler's flags for a generation, as the sources are hashed and the header is written
/// with them.
pub(crate) fn flags(arch: NvptxArch, features: &[String], extra: &[String]) -> Vec<String> {
    let mut target_features = format!("-Ctarget-feature=+ptx{}", arch.ptx_version());
    for feature in features {
        target_features.push(',');
        target_features.push_str(feature);
    }
    let mut flags = vec![
        format!("-Ctarget-cpu={arch}"),
        target_features,
        "-Copt-level=3".to_owned(),
        // Without it a kernel's parts would land in several files.
        "-Ccodegen-units=1".to_owned(),
        // A failed bounds check becomes a trap, not a call into the formatting machinery.
        "-Zunstable-options".to_owned(),
        "-Cpanic=immediate-abort".to_owned(),
        UNROLLING.to_owned(),
        NO_JUMP_THREADING.to_owned(),
    ];
    flags.extend_from_slice(extra);
    flags
}

/// Compiles the crate at `kernels` and returns the PTX as the compiler wrote it.
pub(crate) fn compile(
    toolchain: &Toolchain,
    kernels: &Path,
    flags: &[String],
    target_dir: &Path,
) -> Result<String, BuilderError> {
    let manifest = kernels.join("Cargo.toml");
    if !manifest.is_file() {
        return Err(BuilderError::NoCrate {
            path: kernels.to_owned(),
        });
    }
    let cargo = |subcommand: &str| {
        let mut command = Command::new(&toolchain.cargo);
        clean_environment(&mut command);
        command
            .current_dir(kernels)
            .env("RUSTC", &toolchain.rustc)
            // Lets a release compiler use the unstable features that device code needs.
            .env("RUSTC_BOOTSTRAP", "1")
            // Empty: no wrapper, not even one from the user's configuration.
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "")
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
            // The workspace's release profile is made for the host.
            .envs([
                ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
                ("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "false"),
                ("CARGO_PROFILE_RELEASE_INCREMENTAL", "false"),
                ("CARGO_PROFILE_RELEASE_LTO", "off"),
                ("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "false"),
            ])
            .args([subcommand, "--quiet", "--locked", "--manifest-path"])
            .arg(&manifest);
        command
    };
    let in_target_dir = |command: &mut Command| {
        command
            .args(["--release", "--target", TARGET, "--target-dir"])
            .arg(target_dir);
    };
    // Cargo does not write the assembly again where it finds the crate up to date, and earlier
    // builds leave files with other hashes in their names. So the crate itself is always built
    // anew (its dependencies are not), and the only assembly file afterwards is the right one.
    if target_dir.is_dir() {
        let id = run(toolchain, &mut cargo("pkgid"))?;
        let mut clean = cargo("clean");
        in_target_dir(&mut clean);
        run(toolchain, clean.args(["--package", id.trim()]))?;
        for stale in assembly_files(target_dir)? {
            fs::remove_file(&stale)
                .map_err(|source| BuilderError::file("remove", &stale, source))?;
        }
    }
    let mut build = cargo("rustc");
    in_target_dir(&mut build);
    build.args(["-Zbuild-std=core", "--crate-type=lib", "--", "--emit=asm"]);
    run(toolchain, &mut build)?;
    match assembly_files(target_dir)?.as_slice() {
        [file] => {
            fs::read_to_string(file).map_err(|source| BuilderError::file("read", file, source))
        }
        files => Err(BuilderError::NoPtx {
            target_dir: target_dir.to_owned(),
            count: files.len(),
        }),
    }
}

/// Runs Cargo and returns its standard output.
fn run(toolchain: &Toolchain, command: &mut Command) -> Result<String, BuilderError> {
    let output = command.output().map_err(|source| BuilderError::Start {
        program: toolchain.cargo.clone(),
        source,
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    Err(BuilderError::Cargo {
        toolchain: toolchain.to_string(),
        hint: hint(&messages),
        messages: messages.trim().to_owned(),
    })
}

/// Advice on a failure that is not in the kernels.
fn hint(messages: &str) -> &'static str {
    const UNREACHABLE: &[&str] = &[
        "failed to download",
        "failed to get",
        "Could not resolve host",
        "--offline",
        "spurious network error",
    ];
    if UNREACHABLE.iter().any(|sign| messages.contains(sign)) {
        "\nThe first device build downloads what `core` and the device crates depend on; go \
         online once, or use the checked-in PTX with unchanged sources."
    } else if messages.contains("--locked") {
        "\nThe workspace's Cargo.lock does not fit its manifests; `cargo update --workspace` \
         renews it."
    } else {
        ""
    }
}

/// Assembly files anywhere below the target directory: its layout is Cargo's private affair.
fn assembly_files(directory: &Path) -> Result<Vec<PathBuf>, BuilderError> {
    let unreadable = |source| BuilderError::file("read", directory, source);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            found.extend(assembly_files(&path)?);
        } else if path.extension() == Some(OsStr::new("s")) {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_name_the_generation_and_the_lowest_ptx_version_that_serves_it() {
        let extra = ["-Zthreads=1".to_owned()];
        let flags = flags(NvptxArch::Sm90, &["+ptx83".to_owned()], &extra);
        assert_eq!(
            flags[..2],
            ["-Ctarget-cpu=sm_90", "-Ctarget-feature=+ptx81,+ptx83"]
        );
        assert!(flags.iter().any(|flag| flag == NO_JUMP_THREADING));
        assert_eq!(flags.last(), Some(&extra[0]));
    }

    #[test]
    fn only_failures_outside_the_kernels_get_a_hint() {
        assert!(hint("error: failed to download from `https://…`").contains("online"));
        assert!(hint("cannot update the lock file because --locked was passed").contains("update"));
        assert_eq!(hint("error[E0308]: mismatched types"), "");
    }

    #[test]
    fn assembly_is_found_wherever_cargo_puts_it() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("release/build/k-1/out");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("k-1.s"), "").unwrap();
        fs::write(deep.join("k-1.d"), "").unwrap();
        assert_eq!(
            assembly_files(directory.path()).unwrap(),
            [deep.join("k-1.s")]
        );
    }
}
