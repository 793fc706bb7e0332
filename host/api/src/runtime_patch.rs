//! `spec.runtimePatches`: changes of a TrainJob, or of a controller on its behalf, to the runtime's template.

use serde::Deserialize;
use serde_json::Value;

use crate::{StringMap, path::FieldPath, runtime::WrittenTemplate};

/// One patch of a manager.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimePatch {
    /// The manager, which is the key of the list.
    pub manager: String,
    /// The time of the last change, which admission sets.
    pub time: Option<String>,
    /// Labels for the JobSet.
    pub labels: StringMap,
    /// Annotations for the JobSet.
    pub annotations: StringMap,
    /// The patch for the `spec` of the JobSet template, as written: `replicatedJobs` with metadata and pod specs.
    pub spec: Option<Value>,
    /// The path of `trainingRuntimeSpec.template` in the TrainJob.
    pub path: FieldPath,
}

/// An entry of the list, except for the patch of the template's `spec`, which stays JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WrittenPatch {
    manager: String,
    time: Option<String>,
    #[serde(default)]
    training_runtime_spec: WrittenSpec,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WrittenSpec {
    template: WrittenTemplate,
}

impl RuntimePatch {
    /// Returns the patches in `spec`, the `spec` of a TrainJob, which is at `path`.
    pub(crate) fn of(spec: &Value, path: &FieldPath, patches: Vec<WrittenPatch>) -> Vec<Self> {
        let patch = |(at, patch): (usize, WrittenPatch)| {
            let of_template = format!("/runtimePatches/{at}/trainingRuntimeSpec/template/spec");
            // Other metadata of a template cannot be patched (W58).
            let metadata = patch.training_runtime_spec.template.metadata;
            Self {
                manager: patch.manager,
                time: patch.time,
                labels: metadata.labels,
                annotations: metadata.annotations,
                spec: spec.pointer(&of_template).cloned(),
                path: path
                    .field("runtimePatches")
                    .index(at)
                    .fields(["trainingRuntimeSpec", "template"]),
            }
        };
        patches.into_iter().enumerate().map(patch).collect()
    }
}
