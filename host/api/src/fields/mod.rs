//! Reads the fields of an object by hand, collecting every error with its path.

mod problem;
mod read;

use serde_json::Value;

use crate::path::Segment;

pub(crate) use problem::cut;
pub use problem::{FieldError, FieldErrors, FieldProblem, describe};
pub use read::Fields;

/// Returns the value that is these steps below a value. Items of lists are given by their positions.
#[must_use]
pub fn value_at<'v>(value: &'v Value, steps: &[Segment]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Segment::Index(at) => value.get(at),
        Segment::Field(name) | Segment::Key(name) => value.get(name),
    })
}
