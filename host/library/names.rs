//! Names that were meant.

/// The name that differs from `name` by the fewest typing errors, and by few for its length.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let errors = |other: &str| strsim::damerau_levenshtein(name, other);
    let names = names.into_iter().map(|other| (errors(other), other));
    let (distance, near) = names.min()?;
    (distance <= name.chars().count() / 3).then_some(near)
}
