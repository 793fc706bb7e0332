//! Fields of values that their schema has validated.

use std::num::NonZeroU32;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_path_to_error::Segment as Step;

use super::problem::{FieldError, FieldProblem};
use crate::path::{FieldPath, Segment};

/// Reads a value at `path`. Fields that the type does not have are ignored.
///
/// # Errors
/// The first field that does not have its type.
pub(crate) fn typed<'v, T: Deserialize<'v>>(
    value: &'v Value,
    path: &FieldPath,
) -> Result<T, FieldError> {
    // The path of each field costs time, and admitted values have no errors.
    if let Ok(typed) = T::deserialize(value) {
        return Ok(typed);
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let steps = error.path().iter().filter_map(|step| match step {
            Step::Seq { index } => Some(Segment::Index(*index)),
            Step::Map { key } => Some(Segment::Field(key.clone())),
            Step::Enum { .. } | Step::Unknown => None,
        });
        let path = path.join(&steps.collect());
        FieldProblem::Mistyped(error.into_inner().to_string()).at(path)
    })
}

/// Returns the value at these fields, with its path.
///
/// # Errors
/// The first of them that is missing.
pub(crate) fn required<'v>(
    value: &'v Value,
    fields: &[&str],
) -> Result<(&'v Value, FieldPath), FieldError> {
    let step = |(value, path): (&'v Value, FieldPath), field: &&str| {
        let path = path.field(*field);
        match value.get(field) {
            Some(value) => Ok((value, path)),
            None => Err(FieldProblem::Required.at(path)),
        }
    };
    fields.iter().try_fold((value, FieldPath::root()), step)
}

/// Reads a count, which is at least 1.
pub(crate) fn count<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u32>, D::Error> {
    let count = Option::<NonZeroU32>::deserialize(value)?;
    Ok(count.map(NonZeroU32::get))
}

/// Reads a text, of which an empty one counts as missing.
pub(crate) fn filled<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(value)?;
    Ok(text.filter(|text| !text.is_empty()))
}
