//! Reads the fields of an object by hand, collecting every error with its path.

mod problem;
mod read;

pub(crate) use problem::cut;
pub use problem::{FieldError, FieldErrors, FieldProblem, describe};
pub use read::Fields;
