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
