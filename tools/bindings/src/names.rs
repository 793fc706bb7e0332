//! Converts names of the contract to those of other languages.

/// `set-pod-label` as `set_pod_label`.
pub(crate) fn snake(name: &str) -> String {
    name.replace('-', "_")
}

/// Converts a name to a variable, escaping keywords.
pub(crate) fn variable(name: &str) -> String {
    match name {
        "type" | "use" | "move" | "match" | "ref" | "where" | "in" | "for" | "as" => {
            format!("r#{name}")
        }
        name => snake(name),
    }
}

/// `pod-set` as `PodSet`.
pub(crate) fn camel(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect()
}

/// `pod-set` as `podSet`.
pub(crate) fn lower_camel(name: &str) -> String {
    let (first, others) = name.split_once('-').unwrap_or((name, ""));
    first.to_owned() + &camel(others)
}
