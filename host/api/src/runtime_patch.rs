//! `spec.runtimePatches`: what a TrainJob, or a controller on its behalf, changes in the runtime's template.

use serde_json::Value;

use crate::StringMap;
use crate::fields::Fields;
use crate::path::FieldPath;

/// The most patches.
const MAX_PATCHES: usize = 16;
/// The most characters of `manager`.
const MAX_MANAGER: usize = 253;
/// The most replicated jobs of a patch.
const MAX_JOBS: usize = 100;

/// One patch of a manager.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimePatch {
    /// Who patches; the key of the list.
    pub manager: String,
    /// When it was changed last, as admission stamped it.
    pub time: Option<String>,
    /// Labels for the JobSet.
    pub labels: StringMap,
    /// Annotations for the JobSet.
    pub annotations: StringMap,
    /// What is merged into the `spec` of the JobSet template, as it was written: `replicatedJobs` with metadata and pod
    /// specs.
    pub spec: Option<Value>,
    /// Where `trainingRuntimeSpec.template` stands in the TrainJob.
    pub path: FieldPath,
}

impl RuntimePatch {
    /// Reads the list `runtimePatches`.
    pub(crate) fn read_list(fields: &mut Fields<'_>) -> Vec<Self> {
        let name = "runtimePatches";
        let patches = fields
            .objects(name, MAX_PATCHES, Self::read)
            .unwrap_or_default();
        fields.unique(name, patches.iter().map(|patch| patch.manager.as_str()));
        patches
    }

    fn read(fields: &mut Fields<'_>) -> Self {
        let manager = fields.required_string("manager");
        fields.check_length(fields.path().field("manager"), &manager, MAX_MANAGER);
        let mut patch = Self {
            manager,
            time: fields.string("time"),
            labels: StringMap::new(),
            annotations: StringMap::new(),
            spec: None,
            path: fields.path().field("trainingRuntimeSpec").field("template"),
        };
        fields.object("trainingRuntimeSpec", |spec| {
            spec.object("template", |template| {
                (patch.labels, patch.annotations) = read_metadata(template);
                template.object("spec", read_spec);
                patch.spec = template.raw("spec").cloned();
            });
        });
        patch
    }
}

/// Labels and annotations: nothing else of a template's metadata can be patched (W58).
fn read_metadata(fields: &mut Fields<'_>) -> (StringMap, StringMap) {
    let read = |metadata: &mut Fields<'_>| {
        (
            metadata.string_map("labels"),
            metadata.string_map("annotations"),
        )
    };
    fields.object("metadata", read).unwrap_or_default()
}

/// The levels that a patch may have; the pod spec is kept as it is.
fn read_spec(fields: &mut Fields<'_>) {
    let jobs = fields
        .objects("replicatedJobs", MAX_JOBS, |job| {
            job.object("template", |template| {
                read_metadata(template);
                template.object("spec", |spec| {
                    spec.object("template", |pod| {
                        read_metadata(pod);
                        pod.opaque_object("spec");
                    });
                });
            });
            job.required_string("name")
        })
        .unwrap_or_default();
    fields.unique("replicatedJobs", jobs.iter().map(String::as_str));
}
