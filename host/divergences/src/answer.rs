//! What a side makes of an input, and how the sides differ.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A refusal of an object.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Refusal {
    /// Its kind and name.
    pub object: String,
    /// The part of the reference that refuses it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The path of the field; empty if it is the object as a whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// What is wrong with it.
    pub error: String,
}

/// The outcome of an input.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Answer {
    /// The fields that the reference's CRDs do not have, each with its object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// The refusals. If there are any, there are no objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refusal>,
    /// Warnings to the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The objects to apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<Value>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// A refusal only by Trainyard.
    RefusedByTrainyard(Refusal),
    /// A refusal only by the reference.
    RefusedByReference(Refusal),
    /// A field that Trainyard reads and the reference's CRDs do not have.
    Dropped(String),
    /// A warning only by the reference.
    Unwarned(String),
    /// A field of the rendered objects.
    Field {
        /// The kind and name of the object.
        object: String,
        /// The path in its normal form.
        path: String,
        reference: Option<Value>,
        trainyard: Option<Value>,
    },
}

/// The sides that refuse an input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Side {
    Trainyard,
    Reference,
}

impl Difference {
    /// The side that refuses the input, if the other one does not.
    pub fn refused_by(&self) -> Option<Side> {
        match self {
            Self::RefusedByTrainyard(_) => Some(Side::Trainyard),
            Self::RefusedByReference(_) => Some(Side::Reference),
            _ => None,
        }
    }
}

/// Returns the path without its brackets.
pub(crate) fn without_indices(path: &str) -> String {
    let mut depth = 0;
    let outside = |c: &char| {
        let before = depth;
        depth += i32::from(*c == '[') - i32::from(*c == ']');
        before == 0 && depth == 0
    };
    path.chars().filter(outside).collect()
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<Value>| match value {
            Some(value) => value.to_string(),
            None => "nothing".to_owned(),
        };
        match self {
            Self::RefusedByTrainyard(Refusal {
                object,
                field,
                error,
                ..
            }) => {
                write!(f, "Trainyard alone refuses {object}: {field}: {error}")
            }
            Self::RefusedByReference(Refusal {
                object,
                by,
                field,
                error,
            }) => {
                write!(
                    f,
                    "the reference's {by} alone refuses {object}: {field}: {error}"
                )
            }
            Self::Dropped(field) => write!(f, "the reference drops {field}"),
            Self::Unwarned(warning) => write!(f, "the reference alone warns of {warning}"),
            Self::Field {
                object,
                path,
                reference,
                trainyard,
            } => write!(
                f,
                "{object}: {path}: the reference has {}, Trainyard {}",
                text(reference),
                text(trainyard)
            ),
        }
    }
}
