//! The memory that parsing can use. A text with a few bytes for each value takes up to 150 times its size in memory.

use serde_json::Value;

use super::ErrorKind;

/// The maximum memory of all values of one run in bytes, as [`Budget`] counts it.
pub const MAX_VALUE_BYTES: usize = 256 << 20;

/// The maximum memory of all aliases and anchors of one run in bytes, as [`Budget`] counts it.
pub const MAX_ALIAS_BYTES: usize = 64 << 20;

/// The memory that the values of one run can still use, and how much of it aliases and anchors can use, in bytes.
#[derive(Clone, Debug)]
pub struct Budget {
    values: usize,
    aliases: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            values: MAX_VALUE_BYTES,
            aliases: MAX_ALIAS_BYTES,
        }
    }
}

impl Budget {
    /// Takes memory for a value; fails if not enough is left.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), ErrorKind> {
        let limit = MAX_VALUE_BYTES;
        let left = self.values.checked_sub(bytes);
        self.values = left.ok_or(ErrorKind::TooManyValues { limit })?;
        Ok(())
    }

    /// Takes memory for the value of an alias, or for the copy that is kept for aliases.
    pub(super) fn take_copy(&mut self, bytes: usize) -> Result<(), ErrorKind> {
        let limit = MAX_ALIAS_BYTES;
        let left = self.aliases.checked_sub(bytes);
        self.aliases = left.ok_or(ErrorKind::TooManyAliases { limit })?;
        self.take(bytes)
    }

    /// Takes the memory of a string, without that of the value itself.
    pub(super) fn take_text(&mut self, text: &str) -> Result<(), ErrorKind> {
        self.take(text_bytes(text))
    }

    /// Takes the memory by which a list of this length grows with an item.
    pub(super) fn take_item(&mut self, length: usize) -> Result<(), ErrorKind> {
        self.take(list_bytes(length + 1) - list_bytes(length))
    }

    /// Takes the memory by which a mapping of this length grows with a key.
    pub(super) fn take_member(&mut self, length: usize, key: &str) -> Result<(), ErrorKind> {
        self.take(map_bytes(length + 1) - map_bytes(length) + text_bytes(key))
    }
}

/// Estimates the memory of a value.
#[must_use]
pub fn memory_of(value: &Value) -> usize {
    size_of::<Value>() + bytes_of(value)
}

/// Estimates the memory of a value, without that of the value itself.
pub(super) fn bytes_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text_bytes(text),
        Value::Array(items) => list_bytes(items.len()) + items.iter().map(bytes_of).sum::<usize>(),
        Value::Object(map) => {
            let member = |(key, value): (&String, &Value)| text_bytes(key) + bytes_of(value);
            map_bytes(map.len()) + map.iter().map(member).sum::<usize>()
        }
        _ => 0,
    }
}

/// The memory that an allocator uses for a string.
const fn text_bytes(text: &str) -> usize {
    const SMALLEST: usize = 32;
    match text.len() {
        0 => 0,
        length if length + 8 <= SMALLEST => SMALLEST,
        length => (length + 8).next_multiple_of(16),
    }
}

/// The memory of a list, which doubles its capacity when it is full.
const fn list_bytes(length: usize) -> usize {
    match length {
        0 => 0,
        1..=4 => 4 * size_of::<Value>(),
        length => length.next_power_of_two() * size_of::<Value>(),
    }
}

/// The memory of a mapping, with its hash table.
const fn map_bytes(length: usize) -> usize {
    const MEMBER: usize = size_of::<String>() + size_of::<Value>() + 3 * size_of::<u64>();
    let places = match length {
        0 => 0,
        1..=3 => 3,
        length => 7 * length.div_ceil(7).next_power_of_two(),
    };
    places * MEMBER
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::yaml::{Document, read, read_json, read_within};

    /// The memory that reading the text takes, as a budget counts it.
    fn taken(text: &str) -> usize {
        let mut budget = Budget::default();
        let documents = read_within(text, &mut budget);
        assert!(documents.iter().all(Result::is_ok), "{documents:?}");
        MAX_VALUE_BYTES - budget.values
    }

    /// The text of 16,000 TrainJobs of 1 KiB.
    #[test]
    fn sixteen_mebibytes_of_ordinary_manifests_fit() {
        const ORDINARY: usize = 16 << 20;
        let cases = trainyard_plugin_folders::cases(&trainyard_plugin_folders::root()).unwrap();
        let (mut bytes, mut memory) = (0, 0);
        for case in cases.into_values() {
            let Ok(text) = std::fs::read_to_string(case.join("input.yaml")) else {
                continue;
            };
            if read(&text).iter().all(Result::is_ok) {
                bytes += text.len();
                memory += taken(&text);
            }
        }
        assert!(bytes > 50_000);
        let most = MAX_VALUE_BYTES / ORDINARY * bytes;
        assert!(memory <= most, "{bytes} bytes of text take {memory}");
    }

    #[test]
    fn json_and_yaml_take_the_same() {
        let text = r#"{"a": ["b", 1, null, {"c": {}, "d": []}], "e": "a text that is longer than thirty-two bytes"}"#;
        let yaml = format!("# The same as YAML.\n{text}");
        assert_eq!(taken(text), taken(&yaml));
        // In addition to the value, the memory of its document.
        let beside = 2 * size_of::<Document>();
        let value = read_json(text).unwrap();
        assert_eq!(taken(text), bytes_of(&value) + beside);
    }
}
