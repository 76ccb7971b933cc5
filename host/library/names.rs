//! Names that were meant.

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

/// Returns whether a comment or a line of names tells something of a table's columns that a reader of plain numbers does
/// not heed: units, or other names than the `expected` ones in their order.
pub(crate) fn tells_of_columns(text: &str, expected: &[&str]) -> bool {
    let ends = |c: char| c.is_whitespace() || ",;:|#".contains(c);
    let words: Vec<&str> = text.split(ends).filter(|word| !word.is_empty()).collect();
    let is_name = |word: &&str| expected.iter().any(|name| word.eq_ignore_ascii_case(name));
    let are_expected = words.len() == expected.len()
        && words
            .iter()
            .zip(expected)
            .all(|(word, name)| word.eq_ignore_ascii_case(name));
    let of_units = words
        .iter()
        .any(|word| word.to_ascii_lowercase().starts_with("unit"));
    let told_in = words
        .windows(2)
        .any(|pair| pair[0] == "in" && crate::units::unit(pair[1]).is_ok());
    let names = words.iter().filter(|word| is_name(word)).count();
    let in_brackets = names > 0 && text.contains(['[', '(']);
    !are_expected && (of_units || told_in || in_brackets || names >= expected.len().min(2))
}

#[cfg(test)]
mod tests {
    use super::tells_of_columns;

    #[test]
    fn comments_that_tell_of_columns_are_found() {
        let path = ["t", "x", "y", "z"];
        for text in [
            "# t [Myr] x [kpc] y [kpc] z [kpc]",
            "# units: kpc, Myr",
            "x y z t",
            "# positions in kpc",
        ] {
            assert!(tells_of_columns(text, &path), "{text}");
        }
        for text in [
            "# t x y z",
            "T,X,Y,Z",
            "# the orbit of the cloud",
            "# made on Monday in May",
        ] {
            assert!(!tells_of_columns(text, &path), "{text}");
        }
        assert!(tells_of_columns("# radius in au", &["radius"]));
        assert!(!tells_of_columns("# of stars", &["radius"]));
    }
}
