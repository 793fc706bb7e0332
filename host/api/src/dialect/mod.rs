//! Old dialects: what people wrote for earlier releases becomes what the current one reads.
//!
//! One function on an object as it was written, so that the command line and admission do the very same. Each conversion
//! warns and says what to write instead; what has no counterpart is an error, and nothing is dropped in silence. The table
//! of all of them is docs/dialects.md.

mod bounds;
mod mix;
mod overrides;
mod runtime;
mod trainjob;

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use crate::fields::{FieldError, FieldProblem};
use crate::names;
use crate::path::FieldPath;

/// The `apiVersion`s that the APIs had before they had the current one.
const OLD_API_VERSIONS: [&str; 2] = ["kubeflow.org/v2alpha1", "trainer.kubeflow.org/v2alpha1"];

/// What became of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Modernized {
    /// One for each old form that was read.
    pub warnings: Vec<DialectWarning>,
    /// Old forms that can't be read: the object is refused.
    pub errors: Vec<FieldError>,
    /// Where parts of the object stood before, by their new places. No new place is below another.
    moved: HashMap<FieldPath, FieldPath>,
}

/// An old form that was read, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialectWarning {
    /// The field as the user wrote it.
    pub path: FieldPath,
    /// What it means now, and what to write.
    pub message: String,
}

impl fmt::Display for DialectWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl Modernized {
    /// The field that the user wrote, for one of the object as it is now: errors of later steps name what stands in the file.
    #[must_use]
    pub fn written(&self, path: &FieldPath) -> FieldPath {
        let moved = path.starts().find_map(|start| {
            let (now, before) = self.moved.get_key_value(start)?;
            path.moved(now, before)
        });
        moved.unwrap_or_else(|| path.clone())
    }

    fn warn(&mut self, path: FieldPath, message: impl Into<String>) {
        let message = message.into();
        self.warnings.push(DialectWarning { path, message });
    }

    fn refuse(&mut self, path: FieldPath, problem: FieldProblem) {
        self.errors.push(FieldError { path, problem });
    }
}

/// Rewrites the old forms of a TrainJob or runtime; any other object stays as it is. Doing it again changes nothing.
pub fn modernize(object: &mut Value) -> Modernized {
    let mut modernized = Modernized::default();
    if !reads(object) {
        return modernized;
    }
    let is_job = object.get("kind").and_then(Value::as_str) == Some(names::TRAIN_JOB);
    read_version(object, &mut modernized);
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        if is_job {
            trainjob::modernize(spec, &mut modernized);
        } else {
            runtime::modernize(spec, &mut modernized);
        }
    }
    modernized
}

/// Whether the object is a TrainJob or a runtime, of the current version or of an old one that is read.
pub(crate) fn reads(object: &Value) -> bool {
    let text = |member| object.get(member).and_then(Value::as_str);
    let kinds = [
        names::TRAIN_JOB,
        names::TRAINING_RUNTIME,
        names::CLUSTER_TRAINING_RUNTIME,
    ];
    let is_read = |version: &str| {
        version == names::TRAINER_API_VERSION || OLD_API_VERSIONS.contains(&version)
    };
    text("kind").is_some_and(|kind| kinds.contains(&kind))
        && text("apiVersion").is_some_and(is_read)
}

/// Returns the API group that a `runtimeRef.apiGroup` means: the runtime guide has an old one.
#[must_use]
pub fn runtime_group(written: &str) -> &str {
    match written {
        names::OLD_GROUP => names::TRAINER_GROUP,
        current => current,
    }
}

/// Replaces an old version by the current one.
fn read_version(object: &mut Value, modernized: &mut Modernized) {
    let version = object.get_mut("apiVersion");
    let Some(version) = version.filter(|version| *version != names::TRAINER_API_VERSION) else {
        return;
    };
    let old = version.as_str().unwrap_or_default();
    let message = format!(
        "`{old}` is read as `{}`; write that",
        names::TRAINER_API_VERSION
    );
    modernized.warn(FieldPath::root().field("apiVersion"), message);
    *version = names::TRAINER_API_VERSION.into();
}

fn spec() -> FieldPath {
    FieldPath::root().field("spec")
}
