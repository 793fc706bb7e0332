//! Names that are similar to a mistyped one.

/// Returns the known name that is nearest to an unknown one, if one is near: what an error asks whether it was meant.
#[must_use]
pub fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = unknown.to_lowercase();
    let allowed = (unknown.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| {
            (
                strsim::damerau_levenshtein(&name.to_lowercase(), &wanted),
                name,
            )
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, name)| name)
}
