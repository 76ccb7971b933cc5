//! The number of threads of this process.

use allpairs::io::Printable;
use allpairs::threads::{most_threads, threads_of_openmp};
use anyhow::{Context, ensure};

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
    let most = most_threads();
    ensure!(
        threads <= most,
        "`{THREADS}` must be ≤ {most} on this machine, got {threads}"
    );
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .with_context(|| format!("cannot start {threads} threads"))
}
