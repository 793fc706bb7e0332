//! Reads the operator's configuration files: the controller's settings and the policy file.
//!
//! - `file` reads a file strictly, by its JSON Schema and by checks of its kind. Its errors are reported at once, each with its line.
//! - `error` is what can be wrong with a file.
//! - `wording` describes, for the author of a value, how the value breaks its JSON Schema.
//!
//! What a file means is up to the crate that reads it.

#![expect(
    clippy::result_large_err,
    reason = "an error ends the reading of a file: there are few, and none is in a hot path"
)]

mod error;
mod file;
mod wording;

pub use error::{ConfigError, ConfigProblem};
pub use file::{ConfigFile, ConfigSchema, Fault, MAX_ERRORS, TypeMeta};
