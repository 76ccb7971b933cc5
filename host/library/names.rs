//! Names that were meant.

use crate::units::units_in;

/// The name that differs from `name` by the fewest typing errors, and by few for its length; none without
/// the feature `suggestions`.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let names = names.into_iter();
    let (distance, near) = names
        .filter_map(|other| Some((errors(name, other)?, other)))
        .min()?;
    (distance <= name.chars().count() / 3).then_some(near)
}

#[cfg(feature = "suggestions")]
fn errors(name: &str, other: &str) -> Option<usize> {
    Some(strsim::damerau_levenshtein(name, other))
}

#[cfg(not(feature = "suggestions"))]
fn errors(_name: &str, _other: &str) -> Option<usize> {
    None
}

/// Words of a comment, or of a line of names.
fn words(text: &str) -> Vec<&str> {
    let ends = |c: char| c.is_whitespace() || ",;:|#".contains(c);
    text.split(ends).filter(|word| !word.is_empty()).collect()
}

/// Returns whether a comment tells units of numbers: it has a word such as `units`, a unit without a number in front, or one in
/// brackets or behind `in`.
pub(crate) fn tells_of_units(text: &str) -> bool {
    let words = words(text);
    let is_unit = |text: &str| {
        let mut parts = text.trim().split('/');
        parts.all(|part| crate::units::unit(part).is_ok())
    };
    let of_units = words
        .iter()
        .any(|word| word.to_ascii_lowercase().starts_with("unit"));
    let told_in = words
        .windows(2)
        .any(|pair| pair[0] == "in" && is_unit(pair[1]));
    let brackets = text.split(['[', '(']).skip(1);
    let mut in_brackets = brackets.filter_map(|text| text.split([']', ')']).next());
    of_units || told_in || in_brackets.any(is_unit) || !units_in(text).is_empty()
}

/// Returns whether a comment or a line of names tells something of a table's columns that a reader of plain numbers does
/// not heed: units, or other names than the `expected` ones in their order.
pub(crate) fn tells_of_columns(text: &str, expected: &[&str]) -> bool {
    let words = words(text);
    let is_name = |word: &&str| expected.iter().any(|name| word.eq_ignore_ascii_case(name));
    let are_expected = words.len() == expected.len()
        && words
            .iter()
            .zip(expected)
            .all(|(word, name)| word.eq_ignore_ascii_case(name));
    let names = words.iter().filter(|word| is_name(word)).count();
    let in_brackets = names > 0 && text.contains(['[', '(']);
    // A word above a single column is its name.
    let is_other = match (expected, &words[..]) {
        (&[expected], &[word]) => {
            let (is_name, word) = (word.chars().all(char::is_alphabetic), word.to_lowercase());
            let is_short = expected.starts_with(&word);
            is_name && !is_short && !word.starts_with(&expected[..4.min(expected.len())])
        }
        _ => false,
    };
    !are_expected
        && (tells_of_units(text) || in_brackets || is_other || names >= expected.len().min(2))
}

#[cfg(test)]
mod tests {
    use super::{tells_of_columns, tells_of_units};

    #[test]
    fn comments_that_tell_of_columns_are_found() {
        let path = ["t", "x", "y", "z"];
        for text in [
            "# t [Myr] x [kpc] y [kpc] z [kpc]",
            "# units: kpc, Myr",
            "x y z t",
            "# positions in kpc",
            "# t/Myr x/kpc y/kpc z/kpc",
            "# t_myr x_kpc y_kpc z_kpc",
            "# kpc",
            "# Myr kpc kpc kpc",
        ] {
            assert!(tells_of_columns(text, &path), "{text}");
        }
        for text in [
            "# t x y z",
            "T,X,Y,Z",
            "# the orbit of the cloud",
            "# made on Monday in May",
            "# the orbit of a cluster of 1000 Msun, 8 kpc from the centre",
        ] {
            assert!(!tells_of_columns(text, &path), "{text}");
        }
        for text in [
            "# units: Myr",
            "# masses in Msun",
            "# kicks in km/s",
            "# time [Myr], mass (Msun)",
            "# t/Myr id m/kg",
        ] {
            assert!(tells_of_units(text), "{text}");
        }
        for text in [
            "# mass lost at this time",
            "# mass (of a paper) [3]",
            "# in all",
        ] {
            assert!(!tells_of_units(text), "{text}");
        }
        assert!(tells_of_columns("# radius in au", &["radius"]));
        assert!(tells_of_columns("# R in solar radii", &["radius"]));
        assert!(tells_of_columns("# diameter", &["radius"]));
        assert!(!tells_of_columns("# of stars", &["radius"]));
        assert!(!tells_of_columns("# radii", &["radius"]));
    }
}
