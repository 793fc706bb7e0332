//! Writes YAML that every reader takes back as it was.

use std::fmt::Write;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use serde_saphyr::{DoubleQuoted, ser_options, to_string_with_options};
use trainyard_text::{is_hidden, json_escaped};

/// Writes one document in block style: keys in their order, text of many lines as literal blocks, and everything quoted that a
/// reader of YAML 1.1 or 1.2 could take for something else than text. Characters that a reader can't see are escaped. It ends with
/// a line break, and is the same for the same value.
pub fn write(value: &Value) -> String {
    let options = ser_options! { folded_wrap_chars: usize::MAX };
    // Writing to memory can't fail; JSON, which is YAML too, stands in all the same.
    let mut text = match to_string_with_options(&Shown(value), options) {
        Ok(text) => escape_hidden(&text),
        Err(_) => json_escaped(&value.to_string()).into_owned(),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Writes documents one after the other, with `---` between them.
pub fn write_documents<'v>(values: impl IntoIterator<Item = &'v Value>) -> String {
    values
        .into_iter()
        .map(write)
        .collect::<Vec<_>>()
        .join("---\n")
}

/// A value, with the text quoted that a literal block would break for go-yaml.
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

/// Whether the first line that is not empty begins with a tab: go-yaml takes it for the indentation of a literal block.
fn begins_with_tab(text: &str) -> bool {
    text.trim_start_matches('\n').starts_with('\t')
}

/// What stands behind a text with hidden characters until they are escaped: the serializer escapes it, so that the text is in
/// double quotes wherever it stands.
const MARK: char = '\u{1}';
/// The same as the serializer writes it.
const WRITTEN_MARK: &str = "\\x01";

fn marked(text: &str) -> String {
    let mut text = text.to_owned();
    text.push(MARK);
    text
}

/// Whether a character is hidden, and the serializer writes it as it is all the same.
fn is_left_as_it_is(c: char) -> bool {
    is_hidden(c) && !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Escapes what the serializer left as it is, all of which stands in double quotes before a [`MARK`], and drops the marks.
fn escape_hidden(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    let mut in_marked = false;
    while let Some(c) = rest.next() {
        match c {
            c if is_left_as_it_is(c) => {
                in_marked = true;
                // Writing to a String can't fail.
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
