//! Old forms of a runtime.

use serde_json::{Map, Value, json};

use super::{Modernized, spec};
use crate::names;
use crate::path::FieldPath;

pub(super) fn modernize(runtime: &mut Map<String, Value>, modernized: &mut Modernized) {
    elastic_policy(runtime, modernized);
    let has_policy = runtime.get("mlPolicy").is_some_and(Value::is_object);
    let jobs = runtime
        .get_mut("template")
        .and_then(|template| template.pointer_mut("/spec/replicatedJobs"))
        .and_then(Value::as_array_mut);
    let path = ["template", "spec", "replicatedJobs"]
        .into_iter()
        .fold(spec(), |path, field| path.field(field));
    let jobs = jobs.map(Vec::as_mut_slice).unwrap_or_default();
    for (at, job) in jobs.iter_mut().enumerate() {
        ancestor(job, &path.index(at), modernized);
    }
    if has_policy {
        warn_without_trainer(jobs, &path, modernized);
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

const POD_LABEL: [&str; 4] = ["template", "spec", "template", "metadata"];

/// Early proposals have the ancestor label on the pods; it is read from the Job's template.
fn ancestor(job: &mut Value, path: &FieldPath, modernized: &mut Modernized) {
    let label = |metadata: Option<&Value>| {
        let value = metadata?.get("labels")?.get(names::ANCESTOR_LABEL)?;
        value.as_str().map(str::to_owned)
    };
    let on_pods = label(job.pointer("/template/spec/template/metadata"));
    let (Some(value), None) = (on_pods, label(job.pointer("/template/metadata"))) else {
        return;
    };
    let Some(template) = job.get_mut("template").and_then(Value::as_object_mut) else {
        return;
    };
    let metadata = template.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    let labels = metadata
        .as_object_mut()
        .map(|metadata| metadata.entry("labels").or_insert_with(|| json!({})));
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.insert(names::ANCESTOR_LABEL.to_owned(), value.into());
        let path = POD_LABEL
            .into_iter()
            .fold(path.clone(), |path, field| path.field(field));
        let message = "is read as a label of the Job template; write it in `template.metadata.labels` of the replicated job";
        modernized.warn(path.field("labels").key(names::ANCESTOR_LABEL), message);
    }
}

/// The runtime guide's second example: what looks like the trainer is none.
fn warn_without_trainer(jobs: &[Value], path: &FieldPath, modernized: &mut Modernized) {
    let label = format!(
        "/template/metadata/labels/{}",
        names::ANCESTOR_LABEL.replace('/', "~1")
    );
    let ancestor = |job: &Value| job.pointer(&label).is_some();
    let node = |job: &&Value| job.get("name").and_then(Value::as_str) == Some(names::NODE);
    let found = jobs.iter().position(|job| node(&job));
    if let Some(at) = found.filter(|_| !jobs.iter().any(ancestor)) {
        let message = format!(
            "has no label {}: {}, so that neither numNodes nor what a TrainJob says of its trainer reaches it; add it in `template.metadata.labels`",
            names::ANCESTOR_LABEL,
            names::ANCESTOR_TRAINER
        );
        modernized.warn(path.index(at), message);
    }
}
