//! The number of threads of this process.

use allpairs::io::Printable;
use allpairs::threads::threads_of_openmp;
use anyhow::{Context, ensure};

use crate::say::counted;

/// Environment variable for the number of threads; rayon's.
const THREADS: &str = "RAYON_NUM_THREADS";

/// Number of threads that the environment asks for, if it does: by rayon's variable, else by OpenMP's.
pub(super) fn asked_for() -> anyhow::Result<Option<usize>> {
    let Some(text) = std::env::var_os(THREADS).filter(|text| !text.is_empty()) else {
        return Ok(threads_of_openmp());
    };
    let number = text.to_str().and_then(|text| text.trim().parse().ok());
    let number = number.with_context(|| {
        let text = Printable(text.to_string_lossy());
        format!("the variable `{THREADS}` must be a number of threads, got `{text}`")
    })?;
    Ok(Some(number))
}

/// Starts this number of threads; without a number, rayon chooses one.
pub(super) fn start(threads: Option<usize>) -> anyhow::Result<()> {
    let Some(threads) = threads else {
        return Ok(());
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let most = 16 * processors.max(16);
    ensure!(
        threads <= most,
        "`{THREADS}` must be ≤ {most} on this machine of {}, got {threads}",
        counted(processors, "processor", "processors")
    );
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .with_context(|| format!("cannot start {threads} threads"))
}
