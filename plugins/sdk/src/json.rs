//! JSON that plugins write, without a serializer in each component.

/// The text as a JSON string, quotes included.
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
