//! Reads the operator's configuration files: the controller's settings and the policy file.
//!
//! - `file` reads a file strictly, by its JSON Schema and by further checks of its kind, and reports all errors with their lines.
//! - `error` has the types of these errors.
//!
//! The crates that read the files define their contents.

#![expect(
    clippy::result_large_err,
    reason = "errors are few, and not on a hot path"
)]

mod error;
mod file;

pub use error::{ConfigError, ConfigProblem};
pub use file::{ConfigFile, ConfigSchema, MAX_ERRORS, TypeMeta};
/// One error of a configuration file, without the file.
pub use trainyard_model::schema::ConfigError as FieldError;
