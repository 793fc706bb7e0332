//! Old forms of a runtime.

use serde_json::{Map, Value};

use super::{Modernized, spec};
use crate::names;
use crate::path::FieldPath;

pub(super) fn modernize(runtime: &mut Map<String, Value>, modernized: &mut Modernized) {
    elastic_policy(runtime, modernized);
    let jobs = runtime
        .get("template")
        .and_then(|template| template.pointer("/spec/replicatedJobs"))
        .and_then(Value::as_array);
    let path = ["template", "spec", "replicatedJobs"]
        .into_iter()
        .fold(spec(), |path, field| path.field(field));
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
        let path = spec()
            .field("mlPolicy")
            .field("torch")
            .field("elasticPolicy");
        let message = "has no effect since v2.2: a TrainJob runs on as many nodes as numNodes says; remove it";
        modernized.warn(path, message);
    }
}

const POD_METADATA: [&str; 4] = ["template", "spec", "template", "metadata"];

/// The pointer to the ancestor label in the metadata of a Job template, or of its pods.
fn label_of(metadata: &str) -> String {
    let label = names::ANCESTOR_LABEL.replace('/', "~1");
    format!("/{metadata}/labels/{label}")
}

fn on_job(job: &Value) -> bool {
    job.pointer(&label_of("template/metadata")).is_some()
}

fn on_pods(job: &Value) -> bool {
    job.pointer(&label_of(&POD_METADATA.join("/"))).is_some()
}

/// Early proposals have the ancestor label on the pods; it is read there too, though by nobody else.
fn ancestor(job: &Value, path: &FieldPath, modernized: &mut Modernized) {
    if on_pods(job) && !on_job(job) {
        let metadata = POD_METADATA.into_iter();
        let metadata = metadata.fold(path.clone(), |path, field| path.field(field));
        let message = "is read here, but other clients read it from the replicated job's `template.metadata.labels`; write it there";
        let label = metadata.field("labels").key(names::ANCESTOR_LABEL);
        modernized.warn(label, message);
    }
}
