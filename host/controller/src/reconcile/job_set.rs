//! A suspended JobSet, and the changes that are allowed in one that has run.

use std::sync::Arc;

use kube::api::DynamicObject;
use serde_json::{Map, Value, json};
use trainyard_api::{TrainJob, names};
use trainyard_model::{
    names::short_digest,
    plan::{Plan, PlannedPlugin},
};

use super::{
    facts::SuspendedFacts,
    object_version::ObjectVersion,
    owner,
    placement::{Entries, Index},
    snapshot::is_started,
    vouch::Digests,
};
use crate::{
    annotations::{INPUTS, RECREATED, REMOVED_PLACEMENT, SNAPSHOT, STARTED},
    wire::{self, Undecodable},
};

/// Returns the patch that suspends a running JobSet at any version. It also marks the JobSet as started and removes the digest of its
/// inputs, because another client may have unsuspended it.
pub(crate) fn suspension(uid: &str) -> Value {
    json!({
        "metadata": {"uid": uid, "annotations": {INPUTS: null, STARTED: "true"}},
        "spec": {"suspend": true},
    })
}

/// Returns the patch that changes the placement of a suspended JobSet, and notes the entries that its Jobs have to lose.
pub(crate) fn relocation(at: &ObjectVersion, jobs: Option<Value>, removed: &Entries) -> Value {
    json!({
        "metadata": {"uid": at.uid, "resourceVersion": at.version, "annotations": {REMOVED_PLACEMENT: json!(removed).to_string()}},
        "spec": with_jobs(json!({}), jobs),
    })
}

/// Returns the patch that unsuspends a JobSet, with its replicated jobs if their placement has changed, and the digests of its snapshot if
/// that was recreated.
pub(crate) fn resumption(
    at: &ObjectVersion,
    jobs: Option<Value>,
    recreated: Option<&Digests>,
) -> Value {
    let mut annotations = json!({REMOVED_PLACEMENT: null});
    if let (Some(digests), Some(all)) = (recreated, annotations.as_object_mut()) {
        all.insert(SNAPSHOT.to_owned(), digests.to_string().into());
    }
    json!({
        "metadata": {"uid": at.uid, "resourceVersion": at.version, "annotations": annotations},
        "spec": with_jobs(json!({"suspend": false}), jobs),
    })
}

fn with_jobs(mut spec: Value, jobs: Option<Value>) -> Value {
    if let (Some(jobs), Some(spec)) = (jobs, spec.as_object_mut()) {
        spec.insert("replicatedJobs".to_owned(), jobs);
    }
    spec
}

/// Keeps a JobSet suspended, and notes the entries that its Jobs have to lose before it is unsuspended.
fn hold(job_set: &mut Value, removed: &Entries) {
    if let Some(spec) = job_set.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("suspend".to_owned(), json!(true));
    }
    clear_marks(job_set);
    annotate(job_set, REMOVED_PLACEMENT, json!(removed).to_string());
}

/// Removes the annotations that only the controller may set, if a runtime or a plugin has set them.
fn clear_marks(job_set: &mut Value) {
    let annotations = job_set.pointer_mut("/metadata/annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !names::is_mark(key));
    }
}

/// Returns the JobSet to apply for a TrainJob. It has the digests of its snapshot. An unsuspended one is marked as started; a suspended one
/// has the digest of its inputs, if that is not empty. With `held`, it stays suspended for now, and notes these entries, which its Jobs have to lose.
pub(crate) fn to_apply(
    rendered: &Value,
    inputs: &str,
    snapshot: &Digests,
    job: &TrainJob,
    held: Option<&Entries>,
    recreated: bool,
) -> Value {
    let mut job_set = rendered.clone();
    let uid = job.metadata.uid.as_deref().unwrap_or_default();
    owner::set(&mut job_set, &job.metadata.name, uid);
    clear_marks(&mut job_set);
    if let Some(removed) = held {
        hold(&mut job_set, removed);
    } else if !job.suspend {
        mark_started(&mut job_set);
    } else if !inputs.is_empty() {
        annotate(&mut job_set, INPUTS, inputs.to_owned());
    }
    if recreated {
        annotate(&mut job_set, RECREATED, "true".to_owned());
    }
    annotate(&mut job_set, SNAPSHOT, snapshot.to_string());
    job_set
}

/// Notes the plugins and the PluginRevision that a JobSet was rendered with.
pub(crate) fn note_plugins(job_set: &mut Value, plan: &Plan, revision: &str) {
    let plugin = |plugin: &PlannedPlugin| {
        let digits = short_digest(&plugin.digest).trim_start_matches("sha256:");
        format!("{}@{digits}", plugin.name)
    };
    let plugins: Vec<_> = plan.plugins.iter().map(plugin).collect();
    annotate(job_set, names::RENDERED_WITH_ANNOTATION, plugins.join(","));
    annotate(job_set, names::REVISION_ANNOTATION, revision.to_owned());
}

/// Marks a JobSet as started.
fn mark_started(job_set: &mut Value) {
    annotate(job_set, STARTED, "true".to_owned());
}

/// Sets an annotation of a JobSet.
fn annotate(job_set: &mut Value, key: &str, text: String) {
    let metadata = job_set.get_mut("metadata").and_then(Value::as_object_mut);
    let annotations = metadata.map(|metadata| {
        metadata
            .entry("annotations")
            .or_insert_with(|| Value::Object(Map::new()))
    });
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.insert(key.to_owned(), text.into());
    }
}

/// A suspended JobSet, as the API server has it.
pub(crate) struct SuspendedJobSet {
    pub(crate) uid: String,
    version: String,
    /// Whether it is marked as started.
    started: bool,
    /// Whether pods of it are running or terminating.
    is_active: bool,
    pub(crate) spec: Value,
    /// The digest of its inputs, if it has one.
    inputs: Option<String>,
    /// The entries of an earlier placement that its Jobs may still have, as its annotation records them.
    pub(crate) removed: Entries,
    /// Those entries that the JobSet itself does not have: an admission webhook may have restored some. `None` if there are none.
    pub(crate) missing: Option<Arc<Index>>,
}

impl SuspendedJobSet {
    /// Parses a JobSet; `None` if it has another UID, is not suspended, or is being deleted.
    ///
    /// # Errors
    /// It cannot be decoded.
    pub(crate) fn read(text: &str, uid: &str) -> Result<Option<Self>, Undecodable> {
        wire::decode(text).map(|live| Self::of(live, uid))
    }

    fn of(mut live: DynamicObject, uid: &str) -> Option<Self> {
        if live.metadata.uid.as_deref() != Some(uid) {
            return None;
        }
        let spec = live.data.get_mut("spec").map(Value::take)?;
        let is_suspended = spec.get("suspend") == Some(&Value::Bool(true));
        let counts = live.data.pointer("/status/replicatedJobsStatus");
        let mut counts = counts.and_then(Value::as_array).into_iter().flatten();
        let active = |count: &Value| count.get("active").and_then(Value::as_i64);
        let annotations = live.metadata.annotations.as_ref();
        let removed = annotations.and_then(|all| all.get(REMOVED_PLACEMENT));
        let inputs = annotations.and_then(|all| all.get(INPUTS)).cloned();
        // A note that cannot be parsed is ignored: the Jobs keep their entries.
        let removed = removed.and_then(|text| Entries::parse(text).ok());
        let removed = removed.unwrap_or_default();
        let missing = removed.clone().missing_in(&spec);
        (is_suspended && live.metadata.deletion_timestamp.is_none()).then_some(Self {
            inputs,
            removed,
            missing: (!missing.is_empty()).then(|| Arc::new(missing.index())),
            started: is_started(&live.metadata),
            is_active: counts.any(|count| active(count) > Some(0)),
            uid: live.metadata.uid?,
            version: live.metadata.resource_version?,
            spec,
        })
    }

    /// Returns the facts that decisions need.
    pub(crate) fn facts(&self) -> SuspendedFacts {
        SuspendedFacts {
            at: ObjectVersion {
                uid: Some(self.uid.as_str().into()),
                version: Some(self.version.as_str().into()),
            },
            started: self.started,
            active: self.is_active,
            inputs: self.inputs.as_deref().map(Into::into),
            removed: self.missing.is_some(),
        }
    }

    /// Returns the entries that its Jobs may have and the wanted spec does not. When JobSet unsuspends Jobs, it adds the placement of the
    /// replicated job and removes nothing.
    pub(crate) fn removed_by(&self, wanted: &Value) -> Entries {
        let removed = Entries::missing(&self.spec, wanted);
        let removed = removed.and(self.removed.clone()).missing_in(wanted);
        removed.cut()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_job_set_that_cannot_be_decoded_is_an_error() {
        let read = |metadata: Value, suspend: bool| {
            let live = json!({
                "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
                "metadata": metadata, "spec": {"suspend": suspend},
            });
            let read = SuspendedJobSet::read(&live.to_string(), "a");
            read.map(|found| found.is_some())
        };
        let metadata = || json!({"name": "job", "uid": "a", "resourceVersion": "1"});
        let undecodable =
            json!({"name": "job", "uid": "a", "resourceVersion": "1", "annotations": {"a": 1}});
        assert_eq!(
            read(undecodable, true).unwrap_err().to_string(),
            "metadata.annotations.a: the value cannot be decoded; correct it"
        );
        assert!(read(metadata(), true).unwrap());
        assert!(!read(metadata(), false).unwrap());
        let another = json!({"name": "job", "uid": "b", "resourceVersion": "1"});
        assert!(!read(another, true).unwrap());
    }

    #[test]
    fn a_held_job_set_is_not_marked_as_started() {
        let mut job_set = json!({"metadata": {"name": "a"}, "spec": {"suspend": false}});
        mark_started(&mut job_set);
        let removed = json!({"node": {"/spec/nodeSelector": {"zone": "a"}}});
        hold(&mut job_set, &Entries::parse(&removed.to_string()).unwrap());
        let annotations = job_set.pointer("/metadata/annotations").unwrap();
        assert_eq!(annotations.get(STARTED), None);
        let noted = annotations
            .get(REMOVED_PLACEMENT)
            .and_then(Value::as_str)
            .unwrap();
        assert_eq!(serde_json::from_str::<Value>(noted).unwrap(), removed);
        assert_eq!(job_set.pointer("/spec/suspend"), Some(&json!(true)));
    }

    #[test]
    fn marking_keeps_other_annotations() {
        for annotations in [json!(null), json!({"a": "b"})] {
            let mut job_set = json!({"metadata": {"name": "a"}});
            if annotations.is_object() {
                *job_set.pointer_mut("/metadata").unwrap() = json!({"annotations": annotations});
            }
            mark_started(&mut job_set);
            let marked = job_set.pointer("/metadata/annotations").unwrap();
            assert_eq!(marked.get(STARTED), Some(&json!("true")));
            assert_eq!(marked.get("a"), annotations.get("a"));
        }
    }
}
