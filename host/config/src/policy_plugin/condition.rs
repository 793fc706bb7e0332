//! Conditions, with the fields of Kubernetes' own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether something holds for an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What holds.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The reason, in one word.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// The reason, as a sentence.
    #[schemars(length(max = 32768))]
    pub message: String,
    /// When `status` last changed.
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
    /// The generation of the object for which it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub observed_generation: Option<i64>,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
}
