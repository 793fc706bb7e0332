//! Text that comes from guests, on its way to terminals, Events and paths.

pub use trainyard_text::{
    MAX_LINE, MAX_TEXT, clean, clean_to, is_hidden, json_escaped, listed, nearest,
};

/// Texts with another between each two.
pub(crate) fn join<T: std::fmt::Display>(items: &[T], separator: &str) -> String {
    let texts: Vec<_> = items.iter().map(ToString::to_string).collect();
    texts.join(separator)
}

/// A text in double quotes, as JSON and YAML read it.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
