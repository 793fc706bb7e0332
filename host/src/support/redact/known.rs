//! The values that were removed, which are removed everywhere.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use super::{RemovedFrom, Why, text::REMOVED};

/// The shortest value that is removed everywhere. Shorter ones are parts of other words.
const SHORTEST: usize = 8;

/// The most bytes of a value that are removed everywhere. Longer values are known by their beginning.
const LONGEST: usize = 1 << 10;

/// The most bytes of values that are removed everywhere.
const MOST_BYTES: usize = 16 << 20;

/// Values that were removed.
#[derive(Debug, Default)]
pub(super) struct Known {
    values: BTreeSet<String>,
    bytes: usize,
    /// Whether there were more values than are remembered.
    is_full: bool,
}

impl Known {
    /// Returns what removes the values that were removed so far from texts in which nothing shows that they are credentials.
    pub(super) fn everywhere(&self) -> Everywhere {
        // The longest, because the rest of a value would stay after another one that is its beginning.
        let mut builder = AhoCorasick::builder();
        let values = builder.match_kind(MatchKind::LeftmostLongest);
        let values = values.build(&self.values).ok();
        Everywhere {
            is_complete: values.is_some() && !self.is_full,
            values,
        }
    }

    /// Remembers a removed value, its lines, and the password after a user, unless it is too short, or a word or a path that other texts
    /// contain too.
    pub(super) fn remember(&mut self, value: &str) {
        // It may be quoted where it was found.
        let unquoted = serde_json::from_str::<String>(&format!("\"{value}\"")).ok();
        for value in [Some(value), unquoted.as_deref()].into_iter().flatten() {
            let password = value.split_once(':').map(|(_, password)| password);
            let whole = std::iter::once(value).chain(password);
            for part in whole.chain(value.lines()) {
                self.remember_part(part.trim());
            }
        }
    }

    fn remember_part(&mut self, part: &str) {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || b"/._- ".contains(&byte);
        if part.len() < SHORTEST || part.bytes().all(is_plain) {
            return;
        }
        let part = part.get(..part.floor_char_boundary(LONGEST));
        let part = part.unwrap_or_default();
        // Logs quote texts.
        let quoted = Value::from(part).to_string();
        for text in [part, quoted.trim_matches('"')] {
            if self.values.contains(text) {
                continue;
            }
            if self.bytes + text.len() > MOST_BYTES {
                self.is_full = true;
                return;
            }
            self.bytes += text.len();
            self.values.insert(text.to_owned());
        }
    }
}

/// Removes known values from texts.
pub(crate) struct Everywhere {
    values: Option<AhoCorasick>,
    is_complete: bool,
}

impl Everywhere {
    /// Whether all values are known. If not, texts in which they may appear must not be written.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Removes the values from the keys and the strings of a value, and messages if not all values are known.
    pub(crate) fn value(&self, value: &mut Value, removed: &mut RemovedFrom) {
        match value {
            Value::String(text) => self.text(text, removed),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, removed)),
            Value::Object(members) => {
                let cleaned = std::mem::take(members)
                    .into_iter()
                    .map(|(mut key, mut value)| {
                        match key == "message" && value.is_string() && !self.is_complete {
                            true => value = REMOVED.into(),
                            false => self.value(&mut value, removed),
                        }
                        self.text(&mut key, removed);
                        (key, value)
                    });
                *members = cleaned.collect();
            }
            _ => {}
        }
    }

    /// Removes the values from a text.
    pub(crate) fn text(&self, text: &mut String, removed: &mut RemovedFrom) {
        let values = self.values.as_ref();
        let Some(values) = values.filter(|values| values.is_match(&**text)) else {
            return;
        };
        let mut replaced = String::with_capacity(text.len());
        values.replace_all_with(text, &mut replaced, |_, _, to| {
            to.push_str(REMOVED);
            removed.note("", Why::Elsewhere);
            true
        });
        *text = replaced;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn longer_values_are_removed_as_a_whole() {
        let mut known = Known::default();
        known.remember("Pl4nted-1");
        known.remember("Pl4nted-1-and-a-tail");
        let mut log = "x Pl4nted-1-and-a-tail".to_owned();
        known
            .everywhere()
            .text(&mut log, &mut RemovedFrom::default());
        assert_eq!(log, "x (removed)");
    }

    #[test]
    fn values_are_bounded_and_never_forgotten_silently() {
        let mut known = Known::default();
        for number in 0..25_000 {
            known.remember(&format!("Value-{number}"));
        }
        assert!(known.everywhere().is_complete());
        known.values.clear();
        known.remember(&"Long1".repeat(100_000));
        assert!(known.values.iter().all(|value| value.len() == LONGEST));
        known.bytes = MOST_BYTES;
        known.remember("one-Value-too-many");
        let everywhere = known.everywhere();
        assert!(!everywhere.is_complete());
        let mut object = json!({"message": "one-Value-too-many", "reason": "Failed"});
        everywhere.value(&mut object, &mut RemovedFrom::default());
        assert_eq!(object, json!({"message": REMOVED, "reason": "Failed"}));
    }
}
