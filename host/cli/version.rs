//! The version of the program.

/// The commit that this program was built from, in a release build within its repository or from
/// its package; "unknown" elsewhere.
pub(super) const COMMIT: &str = env!("ALLPAIRS_COMMIT");

/// Text of `--version`.
pub(super) const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit ",
    env!("ALLPAIRS_COMMIT")
);
