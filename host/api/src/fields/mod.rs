//! Reads fields: those of headers and of what no schema has validated by hand, with every error and its path, and those of admitted objects
//! by their types.

mod problem;
mod read;
mod typed;

use serde_json::Value;

use crate::path::Segment;

pub(crate) use problem::cut;
pub use problem::{FieldError, FieldErrors, FieldProblem, describe};
pub use read::Fields;
pub(crate) use typed::{count, filled, required, typed};

/// Returns the value that is these steps below a value. Items of lists are given by their positions.
#[must_use]
pub fn value_at<'v>(value: &'v Value, steps: &[Segment]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Segment::Index(at) => value.get(at),
        Segment::Field(name) | Segment::Key(name) => value.get(name),
    })
}
