//! Whether a TrainJob has resource claims, which activate plugins.

use serde_json::Value;
use trainyard_api::{FieldPath, Metadata, Runtime, TrainJob, names};
use trainyard_model::{
    manifest::ActiveWhen,
    record::{EntryScope, Field, PodSet, Record},
};

use super::Active;
use crate::{
    json::get_at,
    problem::{InputObject, Warning},
};

/// Returns the field that requests resource claims which a plugin must add to the pods, if any.
pub(super) fn requested(job: &TrainJob, runtime: &Runtime) -> Option<(InputObject, FieldPath)> {
    let field = ["spec", "trainer", "resourceClaimsPerNode"];
    if is_list(&job.spec, &["trainer", "resourceClaimsPerNode"]) {
        return Some((InputObject::TrainJob, FieldPath::of(field)));
    }
    let name = names::RESOURCE_CLAIMS_ANNOTATION;
    let metadata = [
        (InputObject::TrainJob, &job.metadata),
        (InputObject::Runtime, &runtime.metadata),
    ];
    let mut requesting = metadata.into_iter();
    let (about, _) = requesting.find(|(_, of)| of.annotations.contains_key(name))?;
    Some((about, Metadata::path_of_annotation(name)))
}

/// Whether the TrainJob makes the trainer's container use resource claims.
pub(super) fn job_uses(job: &TrainJob) -> bool {
    is_list(&job.spec, &["trainer", "resourcesPerNode", "claims"])
}

fn is_list(value: &Value, keys: &[&str]) -> bool {
    let list = get_at(value, keys).and_then(Value::as_array);
    list.is_some_and(|list| !list.is_empty())
}

/// Whether a pod has resource claims or a container uses one.
pub(super) fn has_any(record: &Record) -> bool {
    let in_pods = |set: &PodSet| !set.fields.all(Field::ResourceClaims).is_empty();
    let in_container = |id| {
        let fields = record.fields(EntryScope::Container(id));
        fields.is_some_and(|fields| !fields.all(Field::ResourceClaimUses).is_empty())
    };
    let mut sets = record.pod_sets.iter().zip(0u32..);
    sets.any(|(set, position)| {
        let lists = [Field::Containers, Field::InitContainers].into_iter();
        in_pods(set)
            || lists
                .flat_map(|list| record.containers(position, list))
                .any(in_container)
    })
}

/// Returns a warning if pods have resource claims that no plugin handles, because devices that are not counted give no processes.
pub(crate) fn unhandled(record: &Record, active: &[Active]) -> Option<Warning> {
    let mut active = active.iter();
    let is_handled =
        active.any(|one| one.plugin.manifest.active_when == ActiveWhen::ResourceClaims);
    (!is_handled && has_any(record)).then(|| Warning {
        about: InputObject::Runtime,
        field: None,
        message: "the pods have resource claims, but no loaded plugin handles them; the claims are left unchanged, and their devices are not counted".to_owned(),
        plugin: None,
    })
}
