//! Words for people: messages, and numbers as people read them.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::path::Path;

use allpairs::units::Units;

/// Prints a message on the standard error. A closed pipe or a full disk ends no run: nobody is left to be told.
pub(super) fn tell(message: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "allpairs: {message}");
}

/// Names a number of things: `1 body`, `2 bodies`.
pub(super) fn counted<N: Copy + Display + PartialEq + From<u8>>(
    n: N,
    one: &str,
    many: &str,
) -> String {
    let things = if n == N::from(1) { one } else { many };
    format!("{n} {things}")
}

/// With so many digits after the point, where these show enough and not too much: numbers in units
/// of a user's choice, such as SI's, may have any size.
pub(super) fn fixed(x: f64, digits: usize) -> String {
    if is_plain(x, digits) {
        format!("{x:.digits$}")
    } else {
        format!("{x:.digits$e}")
    }
}

/// Returns whether so many digits after the point show the first three of a number, and not too
/// many stand before it.
pub(super) fn is_plain(x: f64, digits: usize) -> bool {
    let least = 10.0_f64.powi(2 - i32::try_from(digits).unwrap_or(i32::MAX));
    x == 0.0 || (least..1e9).contains(&x.abs())
}

/// A path as an argument of a command, in quotes where a shell would take it apart.
pub(super) fn as_argument(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:=@%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// A length for people, with the name of its unit where that is known: `0.0479 pc`.
pub(super) fn length(x: f64, units: Option<&Units>) -> String {
    let unit = if x == 0.0 {
        String::new()
    } else {
        of_length(units)
    };
    figure(x) + &unit
}

/// The name of the unit of length after a number, where it is known: ` pc`.
pub(super) fn of_length(units: Option<&Units>) -> String {
    let name = units.and_then(Units::name_of_length);
    name.map_or_else(String::new, |name| format!(" {name}"))
}

/// A length or a time for people: `0.0479`, but `1.0000e-17`.
pub(super) fn figure(x: f64) -> String {
    match x.abs() {
        0.001..1e6 => format!("{x:.4}"),
        0.0 => "0".to_owned(),
        _ => format!("{x:.4e}"),
    }
}

/// A number as it was given, in a message: all its digits, but no row of zeros.
pub(super) fn plain(x: f64) -> String {
    match x.abs() {
        0.0 | 1e-5..1e16 => x.to_string(),
        _ => format!("{x:e}"),
    }
}

/// A number in another unit, without the rounding errors of the conversion: `30`, not `30.000000000000004`.
pub(super) fn converted(x: f64) -> String {
    plain(format!("{x:.11e}").parse().unwrap_or(x))
}

/// A duration for people: `42 s`, `12 min`, `3.5 h`, `25 days`.
pub(super) fn duration(seconds: f64) -> String {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 60.0 * MINUTE;
    const DAY: f64 = 24.0 * HOUR;
    match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        ..5_400.0 => format!("{:.0} min", seconds / MINUTE),
        ..172_800.0 => format!("{:.1} h", seconds / HOUR),
        _ => format!("{:.0} days", seconds / DAY),
    }
}

/// A rate for people: `1.92e12`.
pub(super) fn scientific(value: f64) -> String {
    format!("{value:.2e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_arguments() {
        let of = |text: &str| as_argument(Path::new(text));
        assert_eq!(of("a/b-1.toml"), "a/b-1.toml");
        assert_eq!(of("a b"), "'a b'");
        assert_eq!(of("it's"), r"'it'\''s'");
        assert_eq!(of("$HOME"), "'$HOME'");
    }

    #[test]
    fn lengths_have_units() {
        let pc: Units = "pc".parse().expect("units");
        assert_eq!(length(0.5, Some(&pc)), "0.5000 pc");
        assert_eq!(length(0.0, Some(&pc)), "0");
        assert_eq!(length(0.5, None), "0.5000");
    }

    #[test]
    fn numbers_show_their_digits() {
        for (value, text) in [
            (0.0, "0.0000"),
            (0.05, "0.0500"),
            (-0.01, "-0.0100"),
            (0.0025, "2.5000e-3"),
            (-1e-9, "-1.0000e-9"),
            (86_400.0, "86400.0000"),
            (1.989e30, "1.9890e30"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(fixed(value, 4), text);
        }
        assert!(is_plain(1e-6, 8) && !is_plain(9e-7, 8) && !is_plain(f64::INFINITY, 8));
    }

    #[test]
    fn messages_have_no_rows_of_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-1.0, "-1"),
            (0.01, "0.01"),
            (1e-300, "1e-300"),
            (-5e-324, "-5e-324"),
            (1e300, "1e300"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(plain(value), text);
        }
        for (seconds, text) in [
            (61.0, "61 s"),
            (600.0, "10 min"),
            (9000.0, "2.5 h"),
            (2_160_000.0, "25 days"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
