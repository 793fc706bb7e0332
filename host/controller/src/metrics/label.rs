//! Labels with external values, such as the name of a plugin or a file.

use std::{
    collections::HashSet,
    fmt::Write as _,
    sync::{Mutex, PoisonError},
};

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};

/// The most bytes of a value. Each is kept for as long as the process runs.
const LONGEST: usize = 256;

/// The most distinct values of a label. A controller calls a few dozen kinds.
const MOST: usize = 256;

/// The value that replaces all further ones.
pub(super) const OTHER: &str = "<other>";

/// A bound on the number of values of a label.
#[derive(Debug, Default)]
pub(super) struct BoundedLabel(Mutex<HashSet<Label>>);

impl BoundedLabel {
    /// Returns the value, or `<other>` if there are too many.
    pub(super) fn label(&self, value: &str) -> Label {
        let label = Label::new(value);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&label) {
            return label;
        }
        if known.len() >= MOST {
            return Label::new(OTHER);
        }
        known.insert(label.clone());
        label
    }
}

/// A label value without control characters, escaped as OpenMetrics requires. The library does not escape values, so a quote would end the
/// label and allow forged metrics.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Label(String);

impl Label {
    pub(super) fn new(value: &str) -> Self {
        let value = trainyard_model::text::clean(value);
        let end = value.floor_char_boundary(LONGEST);
        Self(value.get(..end).unwrap_or_default().to_owned())
    }
}

impl EncodeLabelValue for Label {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => encoder.write_str("\\\\")?,
                '"' => encoder.write_str("\\\"")?,
                '\n' => encoder.write_str("\\n")?,
                other => encoder.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_values_of_a_label_is_bounded() {
        let kinds = BoundedLabel::default();
        let values: HashSet<_> = (0..8_000)
            .map(|at| kinds.label(&format!("jobsets/z{at}")))
            .collect();
        assert_eq!(values.len(), MOST + 1);
        assert_eq!(kinds.label("jobsets/z0"), Label::new("jobsets/z0"));
        assert_eq!(kinds.label("new"), Label::new(OTHER));
    }
}
