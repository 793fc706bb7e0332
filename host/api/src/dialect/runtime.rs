//! Old forms of a runtime.

use serde_json::{Map, Value};

use super::{Modernized, spec};
use crate::names;
use crate::path::FieldPath;
use crate::runtime::Ancestor;

pub(super) fn modernize(runtime: &mut Map<String, Value>, modernized: &mut Modernized) {
    elastic_policy(runtime, modernized);
    let jobs = runtime
        .get("template")
        .and_then(|template| template.pointer("/spec/replicatedJobs"))
        .and_then(Value::as_array);
    let path = spec().fields(["template", "spec", "replicatedJobs"]);
    let jobs = jobs.map(Vec::as_slice).unwrap_or_default();
    for (at, job) in jobs.iter().enumerate() {
        ancestor(job, &path.index(at), modernized);
    }
}

/// Elastic training went with v2.2.
fn elastic_policy(runtime: &mut Map<String, Value>, modernized: &mut Modernized) {
    let torch = runtime
        .get_mut("mlPolicy")
        .and_then(|policy| policy.get_mut("torch"))
        .and_then(Value::as_object_mut);
    if torch.is_some_and(|torch| torch.shift_remove("elasticPolicy").is_some()) {
        let path = spec().fields(["mlPolicy", "torch", "elasticPolicy"]);
        let message = "has no effect since v2.2: a TrainJob runs on as many nodes as numNodes says; remove it";
        modernized.warn(path, message);
    }
}

/// Early proposals have the ancestor label on the pods; it is read there too, though by nobody else.
fn ancestor(job: &Value, path: &FieldPath, modernized: &mut Modernized) {
    if Ancestor::of(job).is_some_and(|ancestor| ancestor.on_pods) {
        let message = "is read here, but other clients read it from the replicated job's `template.metadata.labels`; write it there";
        let labels = path.fields(Ancestor::POD_METADATA).field("labels");
        modernized.warn(labels.key(names::ANCESTOR_LABEL), message);
    }
}
