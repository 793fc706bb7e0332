//! Reads the fields of an object by hand, collecting every error with its path.

mod problem;
mod read;

pub use problem::{FieldError, FieldErrors, FieldProblem};
pub(crate) use problem::{cut, describe};
pub use read::Fields;
