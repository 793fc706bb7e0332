//! Reads the operator's configuration files: the controller's settings and the policy file.
//!
//! - `file` reads a file strictly, by its JSON Schema and by further checks of its kind, and reports all errors with their lines.
//! - `error` has the types of these errors.
//! - `wording` describes how a value violates its JSON Schema.
//!
//! The crates that read the files define their contents.

#![expect(
    clippy::result_large_err,
    reason = "errors are few, and not on a hot path"
)]

mod error;
mod file;
mod wording;

pub use error::{ConfigError, ConfigProblem};
pub use file::{ConfigFile, ConfigSchema, Fault, MAX_ERRORS, TypeMeta};
