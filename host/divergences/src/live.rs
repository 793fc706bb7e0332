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
    use trainyard_model::record::Accelerators;

    use super::*;

    const OPERATORS: [&str; 2] = ["nvidia.com/gpu", "example.com/npu"];

    /// Returns the rows that list a number of processes, on nodes with 8 of a resource and 32 CPUs, if a TrainJob requests this.
    fn rows_of_processes(
        accelerators: &Accelerators,
        resource: &str,
        per_node: &Value,
        [ours, theirs]: [&str; 2],
    ) -> Vec<&'static str> {
        let jobs = |resources: Value, env: Value| {
            let container = json!({"name": "node", "resources": resources, "env": env});
            let pods = json!({"template": {"spec": {"containers": [container]}}});
            let label =
                json!({"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}});
            json!([{"name": "node", "template": {"metadata": label, "spec": pods}}])
        };
        let requests = json!({"cpu": 32, resource: 8});
        let given = jobs(json!({"requests": requests}), json!([]));
        let runtime = json!({"spec": {
            "mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": given}},
        }});
        let job = json!({
            "kind": "TrainJob", "metadata": {"name": "bert"}, "spec": {"trainer": {"resourcesPerNode": per_node}},
        });
        let subject = Subject {
            job: &job,
            runtime: &runtime,
            documents: &[],
            accelerators,
        };
        let made = |processes: &str| {
            let mut requests = requests.clone();
            requests["memory"] = "512Gi".into();
            let env = json!([{"name": "PET_NPROC_PER_NODE", "value": processes}]);
            let job_set = json!({
                "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "bert"},
                "spec": {"replicatedJobs": jobs(json!({"requests": requests}), env)},
            });
            Answer {
                objects: vec![job_set],
                ..Answer::default()
            }
        };
        let found = listed(subject, &made(ours), &made(theirs));
        assert_eq!(found.len(), 1, "{found:?}");
        found
            .iter()
            .flat_map(|one| one.rows.iter().map(|row| row.id))
            .collect()
    }

    #[test]
    fn the_operators_accelerators_are_counted_instead_of_the_default_ones() {
        let memory = json!({"requests": {"memory": "512Gi"}});
        let by_default = Accelerators::default();
        let by_operator = Accelerators::new(OPERATORS);
        let of = |accelerators, resource, sides| {
            rows_of_processes(accelerators, resource, &memory, sides)
        };
        let npu = "example.com/npu";
        let listed_as = ["partial-override", "accelerators"];
        assert_eq!(of(&by_operator, npu, ["8", "1"]), listed_as);
        assert_eq!(of(&by_operator, npu, ["32", "1"]), [""; 0]);
        assert_eq!(of(&by_default, npu, ["32", "1"]), ["partial-override"]);
        assert_eq!(of(&by_default, npu, ["8", "1"]), [""; 0]);
        let tpu = "google.com/tpu";
        assert_eq!(of(&by_default, tpu, ["8", "1"]), listed_as);
        assert_eq!(of(&by_operator, tpu, ["32", "1"]), ["partial-override"]);
        assert_eq!(of(&by_operator, tpu, ["8", "1"]), [""; 0]);
    }

    #[test]
    fn a_resource_that_only_one_side_counts_is_listed_whatever_its_vendor() {
        let of = |names: &[&str], resource: &str, sides| {
            let accelerators = match names {
                [] => Accelerators::default(),
                names => Accelerators::new(names.iter().copied()),
            };
            rows_of_processes(&accelerators, resource, &Value::Null, sides)
        };
        assert_eq!(
            of(&[], "huawei.com/Ascend910", ["8", "32"]),
            ["accelerators"]
        );
        assert_eq!(
            of(&OPERATORS, "example.com/npu", ["8", "32"]),
            ["accelerators"]
        );
        // The reference counts GPUs that the operator's list lacks.
        let others = ["example.com/npu"];
        assert_eq!(
            of(&others, "nvidia.com/gpu", ["32", "auto"]),
            ["accelerators"]
        );
        // The names of an operator may match a share, which is never counted.
        let all = ["nvidia.com/*"];
        assert_eq!(
            of(&all, "nvidia.com/gpumem", ["auto", "1"]),
            ["accelerators"]
        );
        assert_eq!(of(&all, "nvidia.com/gpumem", ["8", "1"]), [""; 0]);
    }

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
