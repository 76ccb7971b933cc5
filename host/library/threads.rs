//! Number of threads that the surroundings ask for.

use std::{env, thread};

/// Number of threads in the variable of OpenMP, which every script of a job sets. Of a list it is the first number.
/// `None` where there is no such number: the variable is another program's.
pub fn threads_of_openmp() -> Option<usize> {
    number_of(&env::var("OMP_NUM_THREADS").ok()?)
}

/// Threads that a process may be asked to start here: more would wait for each other.
pub fn most_threads() -> usize {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    16 * processors.max(16)
}

fn number_of(text: &str) -> Option<usize> {
    let first = text.split(',').next()?.trim();
    first.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::number_of;

    #[test]
    fn the_outermost_number_counts() {
        let found = ["8", " 4 ", "3,2", "", "abc", "0", "-1"].map(number_of);
        assert_eq!(found, [Some(8), Some(4), Some(3), None, None, None, None]);
    }
}
