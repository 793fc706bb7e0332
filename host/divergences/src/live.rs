//! Objects of a cluster, without what API servers, webhooks and other clients add to what a controller has written.

use serde_json::{Map, Value, json};

use crate::{
    answer::{Answer, Difference},
    difference::differences,
    listing::all,
    rows::Row,
    seen::{Seen, Subject},
};

/// A difference with the rows that list it.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The difference.
    pub difference: Difference,
    /// The rows. Empty if no row lists it.
    pub rows: Vec<&'static Row>,
}

/// Returns the differences between what Trainyard makes of a TrainJob and what the reference made of it in a cluster, or would make of it.
#[must_use]
pub fn listed(subject: Subject<'_>, trainyard: &Answer, reference: &Answer) -> Vec<Listed> {
    let found = differences(trainyard, std::slice::from_ref(reference));
    let with_rows = |difference: Difference| {
        let seen = Seen {
            difference: &difference,
            made: &trainyard.objects,
            subject,
        };
        let rows = all().filter(|row| row.lists(&seen)).collect();
        Listed { difference, rows }
    };
    found.into_iter().map(with_rows).collect()
}

/// Whether objects of this kind are not compared. Neither the Secrets of a cluster nor those in files are read: their names are in the
/// volumes of the JobSet.
#[must_use]
pub fn is_secret(api_version: &str, kind: &str) -> bool {
    (api_version, kind) == ("v1", "Secret")
}

/// Returns the part of an object that a controller writes.
#[must_use]
pub fn written(object: &Value) -> Value {
    let mut written: Map<String, Value> = object.as_object().cloned().unwrap_or_default();
    written.remove("status");
    let metadata = written.get("metadata").and_then(Value::as_object);
    let metadata = metadata.map(metadata_of);
    written.insert("metadata".to_owned(), metadata.unwrap_or_default().into());
    let kind = written
        .get("kind")
        .and_then(Value::as_str)
        .map(str::to_owned);
    if let Some(spec) = written.get_mut("spec") {
        match kind.as_deref() {
            Some("JobSet") => without_defaults(spec),
            // The default of Volcano's CRD. PodGroups of coscheduling have no queue.
            Some("PodGroup") => remove(spec, "queue", &json!("default")),
            _ => {}
        }
    }
    let mut written = written.into();
    without_certificate(&mut written);
    written
}

/// Removes the certificate of the status server from the ConfigMap that pods report their progress with: each controller has its own.
fn without_certificate(object: &mut Value) {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    let is_of_status = name.is_some_and(|name| name.ends_with("-tls-config"));
    let is_config_map = object.get("kind").is_some_and(|kind| kind == "ConfigMap");
    if is_config_map
        && is_of_status
        && let Some(data) = object.get_mut("data").and_then(Value::as_object_mut)
    {
        data.remove("ca.crt");
    }
}

/// The annotations of clients that change nothing.
const OF_CLIENTS: [&str; 2] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "kubectl.kubernetes.io/restartedAt",
];

fn metadata_of(metadata: &Map<String, Value>) -> Map<String, Value> {
    let fields = ["name", "namespace", "labels", "annotations"];
    let of = |field: &str| Some((field.to_owned(), metadata.get(field)?.clone()));
    let mut written: Map<_, _> = fields.into_iter().filter_map(of).collect();
    let annotations = written.get_mut("annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        // The controller's own marks say nothing about the pods.
        annotations.retain(|key, _| {
            !key.starts_with("trainyard.dev/") && !OF_CLIENTS.contains(&key.as_str())
        });
    }
    written
}

/// Removes the values from a JobSet's spec that JobSet's CRD and webhook set where there is none.
fn without_defaults(spec: &mut Value) {
    remove(spec, "suspend", &json!(false));
    remove(spec, "successPolicy", &json!({"operator": "All"}));
    remove(
        spec,
        "startupPolicy",
        &json!({"startupPolicyOrder": "AnyOrder"}),
    );
    if let Some(network) = spec.get_mut("network") {
        remove(network, "enableDNSHostnames", &json!(true));
        remove(network, "publishNotReadyAddresses", &json!(true));
    }
    if let Some(policy) = spec.get_mut("failurePolicy") {
        remove(policy, "restartStrategy", &json!("Recreate"));
        remove(policy, "maxRestarts", &json!(0));
        for (at, rule) in items(policy, "rules").enumerate() {
            remove(rule, "name", &json!(format!("failurePolicyRule{at}")));
        }
    }
    for policy in items(spec, "volumeClaimPolicies") {
        remove(policy, "retentionPolicy", &json!({"whenDeleted": "Delete"}));
        for template in items(policy, "templates") {
            remove(template, "status", &json!({}));
        }
    }
    for job in items(spec, "replicatedJobs") {
        remove(job, "replicas", &json!(1));
        remove(job, "groupName", &json!("default"));
        if let Some(job) = job.pointer_mut("/template/spec") {
            remove(job, "completionMode", &json!("Indexed"));
        }
        if let Some(pods) = job.pointer_mut("/template/spec/template/spec") {
            remove(pods, "restartPolicy", &json!("OnFailure"));
        }
    }
}

fn items<'v>(object: &'v mut Value, list: &str) -> impl Iterator<Item = &'v mut Value> {
    let list = object.get_mut(list).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

/// Removes a field that has its default.
fn remove(object: &mut Value, field: &str, default: &Value) {
    if let Some(object) = object.as_object_mut()
        && object.get(field) == Some(default)
    {
        object.remove(field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_add_is_no_difference() {
        let stored = json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {
                "name": "a", "namespace": "b", "uid": "c", "resourceVersion": "1", "managedFields": [],
                "annotations": {"trainyard.dev/started": "true", "team": "nlp"},
                "ownerReferences": [{"kind": "TrainJob"}],
            },
            "spec": {
                "suspend": false, "network": {"enableDNSHostnames": true, "publishNotReadyAddresses": true},
                "successPolicy": {"operator": "All"}, "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
                "failurePolicy": {"maxRestarts": 0, "rules": [{"name": "failurePolicyRule0", "action": "FailJobSet"}]},
                "replicatedJobs": [{
                    "name": "node", "replicas": 1, "groupName": "default",
                    "template": {"spec": {"completionMode": "Indexed", "template": {"spec": {"restartPolicy": "OnFailure"}}}},
                }],
            },
            "status": {"restarts": 0},
        });
        let expected = json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": "a", "namespace": "b", "annotations": {"team": "nlp"}},
            "spec": {
                "network": {}, "failurePolicy": {"rules": [{"action": "FailJobSet"}]},
                "replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": {}}}}}],
            },
        });
        assert_eq!(written(&stored), expected);
        let set = json!({"kind": "JobSet", "metadata": {}, "spec": {"suspend": true, "successPolicy": {"operator": "Any"}}});
        assert_eq!(written(&set), set);
        let group = |spec: Value| json!({"kind": "PodGroup", "metadata": {}, "spec": spec});
        let stored = group(json!({"minMember": 2, "queue": "default"}));
        assert_eq!(written(&stored), group(json!({"minMember": 2})));
        let queued = group(json!({"queue": "research"}));
        assert_eq!(written(&queued), queued);
    }

    #[test]
    fn certificates_of_status_servers_are_no_difference() {
        let of = |name: &str| {
            json!({
                "kind": "ConfigMap", "metadata": {"name": name}, "data": {"ca.crt": "PEM", "other": "a"},
            })
        };
        let expected = json!({"kind": "ConfigMap", "metadata": {"name": "a-tls-config"}, "data": {"other": "a"}});
        assert_eq!(written(&of("a-tls-config")), expected);
        assert_eq!(written(&of("a-config")), of("a-config"));
    }
}
