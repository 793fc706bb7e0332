//! Helpers for the messages of all crates.
//!
//! - [`path`] is the path of a field in an object, spelled as Kubernetes spells it.
//! - `stack_path` is such a path during a walk, without allocations.
//! - [`json`] searches JSON.
//! - [`counted`] writes a number of things.
//! - `listed` lists the first names of many, with the number of the others.
//! - [`similar`] finds the name that a user probably meant.
//! - [`hidden`] escapes characters in untrusted text (YAML, file names, plugins, the API server) before it reaches a terminal, a log, a
//!   status or an Event. Characters that a reader cannot see can move a terminal's cursor, reorder a line, or make two names look the same, so
//!   they are shown as escapes: by [`clean`] in sentences, by [`json_escaped`] in JSON, and by the YAML writer of `trainyard-api` in YAML.

mod counted;
pub mod hidden;
pub mod json;
pub mod listed;
pub mod path;
pub mod similar;
mod stack_path;

pub use counted::counted;
pub use hidden::{MAX_LINE, MAX_TEXT, clean, clean_to, is_hidden, json_escaped};
pub use listed::listed;
pub use path::FieldPath;
pub use similar::nearest;
pub use stack_path::StackPath;
