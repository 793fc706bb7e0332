//! Old forms of a runtime.

use serde_json::{Map, Value};

use super::{Conversion, spec};
use crate::{ancestor::Ancestor, names, path::FieldPath};

pub(super) fn convert(runtime: &Map<String, Value>, conversion: &mut Conversion) {
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

/// In early proposals the ancestor label was on the pods. Only Trainyard still reads it there.
fn ancestor(job: &Value, path: &FieldPath, conversion: &mut Conversion) {
    let message = match Ancestor::of(job) {
        Some(ancestor) if ancestor.on_pods => {
            "is read here by Trainyard only; move it to the replicated job's `template.metadata.labels`, where other clients read it"
        }
        None if Ancestor::label_on_pods(job).is_some() => {
            "has no effect on pods of several replicas; move it to the replicated job's `template.metadata.labels`, and set `replicas: 1`"
        }
        _ => return,
    };
    let labels = path.fields(Ancestor::POD_METADATA).field("labels");
    conversion.warn(labels.key(names::ANCESTOR_LABEL), message);
}
