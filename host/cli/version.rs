//! The version of the program.

/// The commit that this program was built from, in a release build within its repository or from
/// its package; "unknown" elsewhere.
pub(super) const COMMIT: &str = env!("ALLPAIRS_COMMIT");

/// Day of this version, of which `docs/releasing.md` says when to change it.
pub(super) const RELEASED: &str = "2026-11-26";

/// Text of `--version`.
pub(super) const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit ",
    env!("ALLPAIRS_COMMIT")
);
