//! What the pods of a TrainJob need, as Kueue computes it and as Trainyard renders it.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use trainyard_model::{
    pod_requests::{self, Amounts, Defaults, Pod},
    quantity::Quantity,
};

/// What one TrainJob needs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Quota {
    /// Its namespace and name.
    pub(super) train_job: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) pod_sets: Vec<PodSet>,
    /// Why there are no pod sets, or why Kueue never admits or starts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// The pods of a replicated job.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PodSet {
    pub(super) name: String,
    pub(super) count: i64,
    /// The requests of one pod: CPUs in thousandths, all others in units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) requests: BTreeMap<String, i64>,
    /// The resource claims of one pod, each with what it is taken from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) claims: BTreeMap<String, String>,
}

impl Quota {
    /// Returns what a rendered JobSet needs in a cluster with these objects.
    pub(super) fn of_job_set(job_set: &Value, objects: &[Value]) -> Self {
        let text = |field: &str| job_set["metadata"][field].as_str().unwrap();
        let namespace = text("namespace");
        let jobs = job_set["spec"]["replicatedJobs"].as_array().unwrap();
        let pod_set = |job| PodSet::of(job, namespace, objects);
        Self {
            train_job: format!("{namespace}/{}", text("name")),
            pod_sets: jobs.iter().map(pod_set).collect(),
            error: None,
        }
    }

    /// Removes the requests of pod sets that have no pods on one side: Kueue divides the requests of all pods by their number.
    pub(super) fn ignore_requests_of_no_pods(&mut self, other: &mut Self) {
        for set in &mut self.pod_sets {
            let theirs = other
                .pod_sets
                .iter_mut()
                .find(|other| other.name == set.name);
            if let Some(theirs) = theirs.filter(|theirs| theirs.count == 0 || set.count == 0) {
                theirs.requests.clear();
                set.requests.clear();
            }
        }
    }

    /// Returns the pod sets as part of a JobSet, with the keys of lists in brackets.
    pub(super) fn by_path(&self) -> Value {
        let sets = self.pod_sets.iter().map(|set| {
            let requests = in_brackets(&set.requests);
            let claims = in_brackets(&set.claims);
            let set_value = json!({"count": set.count, "requests": requests, "claims": claims});
            (format!("[{}]", set.name), set_value)
        });
        json!({"spec": {"replicatedJobs": sets.collect::<BTreeMap<_, _>>()}})
    }
}

fn in_brackets<V: Clone>(map: &BTreeMap<String, V>) -> BTreeMap<String, V> {
    let members = map.iter();
    members
        .map(|(key, value)| (format!("[{key}]"), value.clone()))
        .collect()
}

impl PodSet {
    fn of(job: &Value, namespace: &str, objects: &[Value]) -> Self {
        let template = &job["template"]["spec"];
        let number = |value: &Value, default: i64| value.as_i64().unwrap_or(default);
        let at_once = number(&template["parallelism"], 1);
        let pods = at_once.min(number(&template["completions"], at_once));
        let pod = &template["template"]["spec"];
        Self {
            name: job["name"].as_str().unwrap().to_owned(),
            count: number(&job["replicas"], 1) * pods,
            requests: requests(pod, namespace, objects),
            claims: claims(pod),
        }
    }
}

/// The requests of a pod, in Kueue's units.
fn requests(spec: &Value, namespace: &str, objects: &[Value]) -> BTreeMap<String, i64> {
    let mut pod = Pod::read(spec).unwrap();
    let class = spec["runtimeClassName"].as_str();
    if let Some(class) = class.filter(|_| pod.overhead.is_empty()) {
        pod.overhead = overhead_of(class, objects);
    }
    let is_range = |object: &&Value| {
        object["kind"] == "LimitRange" && object["metadata"]["namespace"] == namespace
    };
    let ranges: Vec<_> = objects
        .iter()
        .filter(is_range)
        .cloned()
        .map(Arc::new)
        .collect();
    let asked = pod.requests(&Defaults::of(&ranges).unwrap());
    let in_units = |(resource, amount): (String, Quantity)| {
        let number = match &*resource {
            "cpu" => amount.milli(),
            _ => amount.ceil(),
        };
        (resource, number.unwrap())
    };
    asked.into_iter().map(in_units).collect()
}

fn overhead_of(class: &str, objects: &[Value]) -> Amounts {
    let is_it =
        |object: &&Value| object["kind"] == "RuntimeClass" && object["metadata"]["name"] == class;
    let class = objects.iter().find(is_it);
    let overhead = class.and_then(|class| class.pointer("/overhead/podFixed"));
    pod_requests::amounts(overhead).unwrap()
}

fn claims(pod: &Value) -> BTreeMap<String, String> {
    let claims = pod["resourceClaims"].as_array().into_iter().flatten();
    let source = |claim: &Value| {
        let of =
            |field: &str, kind: &str| claim[field].as_str().map(|name| format!("{kind} {name}"));
        of("resourceClaimTemplateName", "template").or_else(|| of("resourceClaimName", "claim"))
    };
    claims
        .filter_map(|claim| Some((claim["name"].as_str()?.to_owned(), source(claim)?)))
        .collect()
}
