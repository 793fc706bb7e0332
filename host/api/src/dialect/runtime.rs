//! Old forms of a runtime.

use serde_json::{Map, Value};

use super::{Conversion, spec};
use crate::{ancestor::Ancestor, names, path::FieldPath};

pub(super) fn convert(runtime: &mut Map<String, Value>, conversion: &mut Conversion) {
    elastic_policy(runtime, conversion);
    let jobs = runtime
        .get("template")
        .and_then(|template| template.pointer("/spec/replicatedJobs"))
        .and_then(Value::as_array);
    let path = spec().fields(["template", "spec", "replicatedJobs"]);
    let jobs = jobs.map(Vec::as_slice).unwrap_or_default();
    for (at, job) in jobs.iter().enumerate() {
        ancestor(job, &path.index(at), conversion);
    }
}

/// Elastic training was removed in v2.2.
fn elastic_policy(runtime: &mut Map<String, Value>, conversion: &mut Conversion) {
    let torch = runtime
        .get_mut("mlPolicy")
        .and_then(|policy| policy.get_mut("torch"))
        .and_then(Value::as_object_mut);
    if torch.is_some_and(|torch| torch.shift_remove("elasticPolicy").is_some()) {
        let path = spec().fields(["mlPolicy", "torch", "elasticPolicy"]);
        let message = "has no effect since Kubeflow Trainer v2.2, because the number of nodes is numNodes; remove it";
        conversion.warn(path, message);
    }
}

/// In early proposals the ancestor label was on the pods. Only Trainyard still reads it there.
fn ancestor(job: &Value, path: &FieldPath, conversion: &mut Conversion) {
    if Ancestor::of(job).is_some_and(|ancestor| ancestor.on_pods) {
        let message = "is read here by Trainyard only; move it to the replicated job's `template.metadata.labels`, where other clients read it";
        let labels = path.fields(Ancestor::POD_METADATA).field("labels");
        conversion.warn(labels.key(names::ANCESTOR_LABEL), message);
    }
}
