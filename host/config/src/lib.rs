//! Reads the operator's configuration: the controller's settings, PolicyPlugins and the policy file.
//!
//! - `file` reads a file strictly, by its JSON Schema and by further checks of its kind, and reports all errors with their lines.
//! - `error` has the types of these errors.
//! - [`policy_plugin`] has PolicyPlugins, PluginRevisions and their CRDs, and `rendering` the settings for all TrainJobs. `policy_file` is the form
//!   of both that is read for one release.
//!
//! The controller defines the content of its settings.

#![expect(
    clippy::result_large_err,
    reason = "errors are few, and not on a hot path"
)]

mod error;
mod file;
mod policy_file;
pub mod policy_plugin;
mod rendering;

pub use error::{ConfigError, ConfigProblem};
pub use file::{ConfigFile, ConfigSchema, MAX_ERRORS, TypeMeta, decode};
pub use policy_file::PolicyFile;
pub use rendering::{ObeyedDomainChanges, RenderingSection, RenderingSettings};
use serde_json::Value;
/// One error of a configuration file, without the file.
pub use trainyard_model::schema::ConfigError as FieldError;

/// Returns the strings of a list, with their positions.
fn texts<'v>(value: &'v Value, list: &str) -> impl Iterator<Item = (usize, &'v str)> {
    let items = value.get(list).and_then(Value::as_array);
    let items = items.into_iter().flatten().enumerate();
    items.filter_map(|(at, item)| Some((at, item.as_str()?)))
}
