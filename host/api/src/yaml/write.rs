//! Writes YAML that every parser reads back as the same value.

use std::fmt::Write;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use serde_saphyr::{DoubleQuoted, ser_options, to_string_with_options};
use trainyard_text::{is_hidden, json_escaped};

/// Writes a document in block style. Keys keep their order, strings of several lines are literal blocks, and strings are quoted if a
/// parser of YAML 1.1 or 1.2 could take them for another type. Characters that a reader cannot see are escaped. The output ends with a
/// line break, and is the same for the same value.
pub fn write(value: &Value) -> String {
    let options = ser_options! { folded_wrap_chars: usize::MAX };
    // Writing to memory cannot fail. JSON, which is also YAML, is the fallback.
    let mut text = match to_string_with_options(&Shown(value), options) {
        Ok(text) => escape_hidden(&text),
        Err(_) => json_escaped(&value.to_string()).into_owned(),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Writes documents with `---` between them.
pub fn write_documents<'v>(values: impl IntoIterator<Item = &'v Value>) -> String {
    values
        .into_iter()
        .map(write)
        .collect::<Vec<_>>()
        .join("---\n")
}

/// A value whose strings are quoted if go-yaml would misread them as literal blocks.
struct Shown<'v>(&'v Value);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::String(text) if text.chars().any(is_left_as_it_is) => {
                marked(text).serialize(serializer)
            }
            Value::String(text) if begins_with_tab(text) => {
                DoubleQuoted(text).serialize(serializer)
            }
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&Shown(item))?;
                }
                list.end()
            }
            Value::Object(map) => {
                let mut mapping = serializer.serialize_map(Some(map.len()))?;
                for (key, value) in map {
                    if key.chars().any(is_left_as_it_is) {
                        mapping.serialize_entry(&marked(key), &Shown(value))?;
                    } else {
                        mapping.serialize_entry(key, &Shown(value))?;
                    }
                }
                mapping.end()
            }
            other => other.serialize(serializer),
        }
    }
}

/// Returns whether the first line that is not empty starts with a tab, which go-yaml takes for the indentation of a literal block.
fn begins_with_tab(text: &str) -> bool {
    text.trim_start_matches('\n').starts_with('\t')
}

/// Marks a string with hidden characters. The serializer escapes the mark, so the string is in double quotes.
const MARK: char = '\u{1}';
/// The mark as the serializer writes it.
const WRITTEN_MARK: &str = "\\x01";

fn marked(text: &str) -> String {
    let mut text = text.to_owned();
    text.push(MARK);
    text
}

/// Returns whether a character is hidden, but not escaped by the serializer.
fn is_left_as_it_is(c: char) -> bool {
    is_hidden(c) && !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Escapes the characters that the serializer does not escape, all of which are in marked strings, and removes the marks.
fn escape_hidden(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    let mut in_marked = false;
    while let Some(c) = rest.next() {
        match c {
            c if is_left_as_it_is(c) => {
                in_marked = true;
                // Writing to a String cannot fail.
                let _ = match u32::from(c) {
                    code @ 0..=0xff => write!(out, "\\x{code:02X}"),
                    code @ 0x100..=0xffff => write!(out, "\\u{code:04X}"),
                    code => write!(out, "\\U{code:08X}"),
                };
            }
            '\\' if in_marked => {
                out.push(c);
                out.extend(rest.next());
            }
            '"' if in_marked => {
                in_marked = false;
                if out.ends_with(WRITTEN_MARK) {
                    out.truncate(out.len() - WRITTEN_MARK.len());
                }
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
