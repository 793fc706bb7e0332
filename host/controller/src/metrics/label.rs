//! A label whose value comes from outside: the name of a plugin or a file, a kind that a plugin looks up.

use std::fmt::Write as _;

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};

/// The most bytes of a value: each is kept and sent for as long as the process runs.
const LONGEST: usize = 256;

/// A value of a label without control characters, escaped as OpenMetrics has it. The library writes values as they are: a quote
/// would end the label, and the lines after it would be anybody's metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
