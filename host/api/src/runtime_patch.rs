//! `spec.runtimePatches`: changes of a TrainJob, or of a controller on its behalf, to the runtime's template.

use serde_json::Value;

use crate::{StringMap, fields::Fields, path::FieldPath};

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

impl RuntimePatch {
    /// Reads the list `runtimePatches`.
    pub(crate) fn read_list(fields: &mut Fields<'_>) -> Vec<Self> {
        fields
            .objects("runtimePatches", Self::read)
            .unwrap_or_default()
    }

    fn read(fields: &mut Fields<'_>) -> Self {
        let mut patch = Self {
            manager: fields.required_string("manager"),
            time: fields.string("time"),
            labels: StringMap::new(),
            annotations: StringMap::new(),
            spec: None,
            path: fields.path().field("trainingRuntimeSpec").field("template"),
        };
        fields.object("trainingRuntimeSpec", |spec| {
            spec.object("template", |template| {
                (patch.labels, patch.annotations) = read_metadata(template);
                patch.spec = template.opaque_object("spec");
            });
        });
        patch
    }
}

/// Reads labels and annotations. Other metadata of a template cannot be patched (W58).
fn read_metadata(fields: &mut Fields<'_>) -> (StringMap, StringMap) {
    let read = |metadata: &mut Fields<'_>| {
        (
            metadata.string_map("labels"),
            metadata.string_map("annotations"),
        )
    };
    fields.object("metadata", read).unwrap_or_default()
}
