//! Conversion of the forms of earlier releases to the current one.
//!
//! One function converts an object as it was written, for the command line and for admission. Each conversion is a warning that says what
//! to write instead. A form without a counterpart is an error; nothing is dropped silently. All of them are listed in docs/dialects.md.

mod bounds;
mod mix;
mod overrides;
mod runtime;
mod trainjob;

use std::{collections::HashMap, fmt};

use serde_json::Value;

pub use self::bounds::MAX_PATCHES;
use crate::{
    fields::{FieldError, FieldProblem},
    names,
    path::FieldPath,
};

/// The earlier `apiVersion`s of the current API.
const OLD_API_VERSIONS: [&str; 2] = ["kubeflow.org/v2alpha1", "trainer.kubeflow.org/v2alpha1"];

/// The result of a conversion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversion {
    /// A warning for each old form that was converted.
    pub warnings: Vec<DialectWarning>,
    /// Old forms that cannot be converted, for which the object is refused.
    pub errors: Vec<FieldError>,
    /// The old paths of parts that were moved, by their new paths. No new path is below another.
    moved: HashMap<FieldPath, FieldPath>,
}

/// A warning about an old form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialectWarning {
    /// The field that the user wrote.
    pub path: FieldPath,
    /// What it means, and what to write instead.
    pub message: String,
    /// Whether a cluster's API server refuses it, so that it can only be in files.
    pub only_in_files: bool,
}

impl fmt::Display for DialectWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl Conversion {
    /// Returns the field that the user wrote, for a field of the converted object. Errors of later steps name it.
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
        self.warnings.push(DialectWarning {
            path,
            message,
            only_in_files: false,
        });
    }

    /// Adds a warning about a form that a cluster's API server refuses.
    fn warn_of_file(&mut self, path: FieldPath, message: impl Into<String>) {
        self.warn(path, message);
        if let Some(warning) = self.warnings.last_mut() {
            warning.only_in_files = true;
        }
    }

    fn refuse(&mut self, path: FieldPath, problem: FieldProblem) {
        self.errors.push(FieldError { path, problem });
    }
}

/// Converts the old forms of a TrainJob or runtime. Other objects are not changed. The conversion is idempotent.
pub fn convert(object: &mut Value) -> Conversion {
    let mut conversion = Conversion::default();
    if !reads(object) {
        return conversion;
    }
    let is_job = object.get("kind").and_then(Value::as_str) == Some(names::TRAIN_JOB);
    read_version(object, &mut conversion);
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        if is_job {
            trainjob::convert(spec, &mut conversion);
        } else {
            runtime::convert(spec, &mut conversion);
        }
    }
    conversion
}

/// Returns whether the object is a TrainJob or a runtime, of the current version or of an old one that can be converted.
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

/// Returns the current API group for a `runtimeRef.apiGroup`. The reference's runtime guide has an old one.
#[must_use]
pub fn runtime_group(written: &str) -> &str {
    match written {
        names::OLD_GROUP => names::TRAINER_GROUP,
        current => current,
    }
}

/// Converts the apiVersion.
fn read_version(object: &mut Value, conversion: &mut Conversion) {
    let version = object.get_mut("apiVersion");
    let Some(version) = version.filter(|version| *version != names::TRAINER_API_VERSION) else {
        return;
    };
    let old = version.as_str().unwrap_or_default();
    let message = format!(
        "`{old}` is read as `{}`; write that instead",
        names::TRAINER_API_VERSION
    );
    conversion.warn_of_file(FieldPath::root().field("apiVersion"), message);
    *version = names::TRAINER_API_VERSION.into();
}

fn spec() -> FieldPath {
    FieldPath::root().field("spec")
}
