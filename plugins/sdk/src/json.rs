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
