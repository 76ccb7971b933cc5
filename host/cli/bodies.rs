//! Numbers of bodies: read from the command line, and refused where there is no memory for them.

use allpairs::memory;

/// Reads a number of bodies: 16384, or 1e6, as `--bodies` of `run` takes it.
pub(super) fn number_of_bodies(text: &str) -> Result<u32, String> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| *number >= 1.0 && number.fract() == 0.0);
    match number {
        Some(number) if number <= f64::from(u32::MAX) => Ok(number as u32),
        Some(_) => Err(format!("there are at most {} bodies here", u32::MAX)),
        None => Err("a number of bodies is a whole number ≥ 1, such as 16384 or 1e6".to_owned()),
    }
}

/// Refuses bodies of a run or a test for which there is no memory.
pub(super) fn check_memory(bodies: u64) -> Result<(), memory::NoRoom> {
    memory::check(bodies, memory::BYTES_PER_BODY_OF_A_RUN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_bodies_are_read() {
        for (text, number) in [("1", 1), ("16384", 16384), ("1e9", 1_000_000_000)] {
            assert_eq!(number_of_bodies(text), Ok(number));
        }
        for (text, part) in [
            ("0", "≥ 1"),
            ("-5", "≥ 1"),
            ("1.5", "whole"),
            ("many", "1e6"),
            ("nan", "whole"),
            ("1e10", "at most 4294967295"),
        ] {
            let refused = number_of_bodies(text).expect_err(text);
            assert!(refused.contains(part), "{text}: {refused}");
        }
    }
}
