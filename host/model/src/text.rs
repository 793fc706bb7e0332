//! Cleaning and quoting of text from guests, for terminals, Events and paths.

use std::fmt;

pub use trainyard_text::{
    MAX_LINE, MAX_TEXT, clean, clean_to, counted, is_hidden, json_escaped, listed, nearest,
};

/// Joins values with a separator.
pub(crate) fn join<T: fmt::Display>(items: &[T], separator: &str) -> String {
    let texts: Vec<_> = items.iter().map(ToString::to_string).collect();
    texts.join(separator)
}

/// A text in double quotes, valid as JSON and YAML.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Writes the literal key of a path, quoted if it would otherwise be parsed as something else.
pub(crate) fn write_literal(f: &mut fmt::Formatter<'_>, key: &str) -> fmt::Result {
    let plain = !key.is_empty()
        && !key.starts_with(['$', '@', '#'])
        && !key.contains(|c: char| {
            matches!(c, '[' | ']' | '"' | '\\' | '*') || c.is_whitespace() || c.is_control()
        });
    if plain {
        return f.write_str(key);
    }
    f.write_str("\"")?;
    for c in key.chars() {
        if matches!(c, '"' | '\\') {
            f.write_str("\\")?;
        }
        write!(f, "{c}")?;
    }
    f.write_str("\"")
}
