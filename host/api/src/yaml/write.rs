//! Writes YAML that every reader takes back as it was.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use serde_saphyr::{DoubleQuoted, ser_options, to_string_with_options};

/// Writes one document in block style: keys in their order, text of many lines as literal blocks, and everything quoted that a
/// reader of YAML 1.1 or 1.2 could take for something else than text. It ends with a line break, and is the same for the same value.
pub fn write(value: &Value) -> String {
    let options = ser_options! { folded_wrap_chars: usize::MAX };
    // Writing to memory can't fail; JSON, which is YAML too, stands in all the same.
    let mut text =
        to_string_with_options(&Shown(value), options).unwrap_or_else(|_| value.to_string());
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
                    mapping.serialize_entry(key, &Shown(value))?;
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
