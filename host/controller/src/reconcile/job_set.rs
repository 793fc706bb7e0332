//! What may still change in a JobSet that has run, and what its API says to a change that may not. Pure.

use kube::core::response::{StatusCause, reason};
use serde_json::{Map, Value, json};
use trainyard_api::names;

use super::snapshot::STARTED;

/// Where a pod template says how its pods are placed: what JobSet lets change while a JobSet is suspended. It does not let the
/// affinity.
const SCHEDULING: [&str; 5] = [
    "/metadata/labels",
    "/metadata/annotations",
    "/spec/nodeSelector",
    "/spec/tolerations",
    "/spec/schedulingGates",
];

/// The replicated jobs of a live JobSet's spec with the scheduling of the wanted one; none where nothing differs.
pub(crate) fn rescheduled(live: &Value, wanted: &Value) -> Option<Value> {
    let mut jobs = live.get("replicatedJobs")?.clone();
    let before = jobs.clone();
    for job in jobs.as_array_mut()? {
        let Some(wanted) = named(wanted, job.get("name")) else {
            continue;
        };
        let (Some(pods), Some(wanted)) = (
            job.pointer_mut("/template/spec/template"),
            wanted.pointer("/template/spec/template"),
        ) else {
            continue;
        };
        for pointer in SCHEDULING {
            put(pods, pointer, wanted.pointer(pointer));
        }
    }
    (jobs != before).then_some(jobs)
}

fn named<'v>(spec: &'v Value, name: Option<&Value>) -> Option<&'v Value> {
    let jobs = spec.get("replicatedJobs")?.as_array()?;
    jobs.iter().find(|job| job.get("name") == name)
}

/// Sets a field two levels down, or takes it away; what is empty counts as absent.
fn put(pods: &mut Value, pointer: &str, wanted: Option<&Value>) {
    let mut names = pointer.split('/').skip(1);
    let (Some(parent), Some(name), Some(pods)) = (names.next(), names.next(), pods.as_object_mut())
    else {
        return;
    };
    let wanted = wanted.filter(|value| !is_empty(value));
    let parent = match wanted {
        Some(_) => Some(
            pods.entry(parent)
                .or_insert_with(|| Value::Object(Map::new())),
        ),
        None => pods.get_mut(parent),
    };
    let Some(parent) = parent.and_then(Value::as_object_mut) else {
        return;
    };
    match wanted {
        Some(value) => {
            parent.insert(name.to_owned(), value.clone());
        }
        None if parent.get(name).is_some_and(|held| !is_empty(held)) => {
            parent.shift_remove(name);
        }
        None => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        other => other.is_null(),
    }
}

/// The patch that suspends a running JobSet and changes nothing else of it, whatever its version.
pub(crate) fn suspension(uid: &str) -> Value {
    json!({"metadata": {"uid": uid}, "spec": {"suspend": true}})
}

/// The patch that lets a JobSet go on, with its replicated jobs where their scheduling changed.
pub(crate) fn resumption(uid: &str, version: &str, jobs: Option<Value>) -> Value {
    let mut spec = json!({"suspend": false});
    if let (Some(jobs), Some(spec)) = (jobs, spec.as_object_mut()) {
        spec.insert("replicatedJobs".to_owned(), jobs);
    }
    json!({"metadata": {"uid": uid, "resourceVersion": version}, "spec": spec})
}

/// Has a JobSet say that it was let go.
pub(crate) fn mark_started(job_set: &mut Value) {
    let metadata = job_set.get_mut("metadata").and_then(Value::as_object_mut);
    let annotations = metadata.map(|metadata| {
        metadata
            .entry("annotations")
            .or_insert_with(|| Value::Object(Map::new()))
    });
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.insert(STARTED.to_owned(), json!("true"));
    }
}

/// Whether JobSet's schema, or its webhook, says that fields of its spec can't change, and nothing else: quotas, rights and other
/// people's webhooks refuse in other words, and so does JobSet what would be wrong in a new one too.
pub(crate) fn is_immutable(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let Some(details) = &status.details else {
        return false;
    };
    let fixed = |cause: &StatusCause| {
        cause.field.starts_with("spec.") && cause.message.ends_with("is immutable")
    };
    status.code == 422
        && status.reason == reason::INVALID
        && (&*details.group, &*details.kind) == (names::JOB_SET_GROUP, names::JOB_SET)
        && !details.causes.is_empty()
        && details.causes.iter().all(fixed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use kube::core::Status;

    use super::*;

    fn refused(code: u16, kind: &str, causes: &[(&str, &str)]) -> kube::Error {
        let cause = |(field, message): &(&str, &str)| json!({"field": field, "message": message});
        let causes: Vec<_> = causes.iter().map(cause).collect();
        let status: Status = serde_json::from_value(json!({
            "status": "Failure", "code": code, "reason": "Invalid",
            "details": {"group": "jobset.x-k8s.io", "kind": kind, "causes": causes},
        }))
        .unwrap();
        kube::Error::Api(status.boxed())
    }

    #[test]
    fn only_fields_that_cannot_change_make_a_job_set_immutable() {
        let webhook = (
            "spec.replicatedJobs",
            "Invalid value: []: field is immutable",
        );
        let schema = (
            "spec.network",
            "Invalid value: \"object\": Value is immutable",
        );
        let owner = ("metadata.uid", "Invalid value: \"a\": field is immutable");
        let wrong = (
            "spec.replicatedJobs[0].replicas",
            "Invalid value: -1: must not be negative",
        );
        assert!(is_immutable(&refused(422, "JobSet", &[webhook, schema])));
        for (code, kind, causes) in [
            (422, "JobSet", &[] as &[_]),
            (422, "JobSet", &[webhook, wrong]),
            (422, "JobSet", &[owner]),
            (422, "Policy", &[webhook]),
            (403, "JobSet", &[webhook]),
        ] {
            let error = refused(code, kind, causes);
            assert!(!is_immutable(&error), "{error:?}");
        }
        let plain = Status::failure("spec.network: field is immutable", "Invalid");
        assert!(!is_immutable(&kube::Error::Api(
            plain.with_code(422).boxed()
        )));
    }

    #[test]
    fn the_mark_keeps_what_else_is_noted() {
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

    fn spec(pods: &Value) -> Value {
        json!({"replicatedJobs": [
            {"name": "other", "template": {"spec": {"template": {"spec": {}}}}},
            {"name": "node", "template": {"spec": {"template": pods}}},
        ]})
    }

    #[test]
    fn scheduling_changes_and_nothing_else() {
        let live = spec(&json!({
            "metadata": {"labels": {"old": "1"}},
            "spec": {
                "containers": [{"name": "node", "image": "a"}], "restartPolicy": "OnFailure",
                "nodeSelector": {"zone": "a"}, "schedulingGates": [{"name": "g"}],
            },
        }));
        let wanted = spec(&json!({
            "metadata": {"labels": {"new": "1"}, "annotations": {"a": "b"}},
            "spec": {
                "containers": [{"name": "node", "image": "b"}],
                "nodeSelector": {"zone": "b"}, "tolerations": [{"operator": "Exists"}],
            },
        }));
        let jobs = rescheduled(&live, &wanted).unwrap();
        let pods = jobs.pointer("/1/template/spec/template").unwrap();
        assert_eq!(
            *pods,
            json!({
                "metadata": {"labels": {"new": "1"}, "annotations": {"a": "b"}},
                "spec": {
                    "containers": [{"name": "node", "image": "a"}], "restartPolicy": "OnFailure",
                    "nodeSelector": {"zone": "b"}, "tolerations": [{"operator": "Exists"}],
                },
            })
        );
        assert_eq!(jobs.pointer("/0"), live.pointer("/replicatedJobs/0"));
    }

    #[test]
    fn what_is_equal_or_empty_is_no_change() {
        let live = spec(&json!({"metadata": {}, "spec": {"nodeSelector": {"zone": "a"}}}));
        let wanted = spec(&json!({"spec": {"tolerations": [], "nodeSelector": {"zone": "a"}}}));
        assert_eq!(rescheduled(&live, &wanted), None);
    }
}
