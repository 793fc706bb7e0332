//! Writing JSON without linking a serializer into each component.

/// Returns the string as a JSON string, including the quotes.
///
/// ```
/// assert_eq!(trainyard_sdk::json::quoted("a \"b\"\n"), r#""a \"b\"\u000a""#);
/// ```
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out += &format!("\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns a JSON object with these members, whose values are JSON.
///
/// ```
/// use trainyard_sdk::json::{object, quoted};
///
/// let json = object([("minMember", "4".to_owned()), ("queue", quoted("research"))]);
/// assert_eq!(json, r#"{"minMember":4,"queue":"research"}"#);
/// ```
#[must_use]
pub fn object<'n>(members: impl IntoIterator<Item = (&'n str, String)>) -> String {
    let members = members.into_iter();
    let members: Vec<_> = members
        .map(|(name, value)| format!("{}:{value}", quoted(name)))
        .collect();
    format!("{{{}}}", members.join(","))
}
