//! The gang policies of runtimes, and the objects that their counts depend on.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use super::{Change, fields, generators, list, one_of};

/// Turns an input into one with a gang.
#[derive(Clone, Debug)]
struct Gang {
    policy: Value,
    queue: Option<&'static str>,
    queue_of_patch: Option<&'static str>,
    /// Fields of the pods of each replicated job, which are as many as the longest runtime has.
    pods: Vec<Value>,
    objects: Vec<Value>,
}

/// Generates runtimes of two frameworks, whose pods start in different orders.
pub(crate) fn runtime() -> BoxedStrategy<Value> {
    let of = |name: &str| {
        let mut generators = generators().filter(|generator| generator.name == name);
        (generators.next().unwrap().runtime)()
    };
    prop_oneof![2 => of("torch"), 1 => of("mpi")].boxed()
}

/// Adds the gang of a scheduler with this policy.
pub(crate) fn change(policy: BoxedStrategy<Value>) -> BoxedStrategy<Change> {
    let queue = || {
        let queue = prop_oneof![
            9 => prop::sample::select(vec!["research", "team.a"]),
            1 => prop::sample::select(vec!["Team A", ""]),
        ];
        prop::option::weighted(0.3, queue)
    };
    let pod = fields(vec![
        (
            "priorityClassName",
            0.2,
            one_of(
                [
                    "high",
                    "high",
                    "high",
                    "high",
                    "low",
                    "low",
                    "low",
                    "system-node-critical",
                    "gone",
                ]
                .map(Value::from)
                .into(),
            ),
        ),
        (
            "runtimeClassName",
            0.1,
            one_of(vec![json!("kata"), json!("plain")]),
        ),
        ("schedulerName", 0.3, one_of(vec![json!("volcano")])),
        ("overhead", 0.05, Just(json!({"cpu": "100m"})).boxed()),
    ]);
    let pods = prop::collection::vec(pod, 4);
    let limits = json!([{"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "500m", "memory": "1Gi"}}]);
    let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "defaults", "namespace": "ml"}, "spec": {"limits": limits}});
    let class = |name: &str| json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 7});
    let runtime_class = |name: &str| json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name});
    let mut with_overhead = runtime_class("kata");
    with_overhead["overhead"] = json!({"podFixed": {"cpu": "250m", "memory": "160Mi"}});
    let always = [class("high"), class("low"), with_overhead];
    let objects = list(vec![
        (0.1, Just(range).boxed()),
        (0.9, Just(runtime_class("plain")).boxed()),
    ]);
    (policy, queue(), queue(), pods, objects)
        .prop_map(move |(policy, queue, queue_of_patch, pods, objects)| {
            let more = objects.as_array().into_iter().flatten();
            let gang = Gang {
                policy,
                queue,
                queue_of_patch,
                pods,
                objects: always.iter().chain(more).cloned().collect(),
            };
            Change::new(move |runtime, job| gang.clone().apply(runtime, job))
        })
        .boxed()
}

const QUEUE: &str = "scheduling.volcano.sh/queue-name";

impl Gang {
    /// Adds the gang to the runtime and the TrainJob. Returns the objects that belong to it.
    fn apply(self, runtime: &mut Value, job: &mut Value) -> Vec<Value> {
        runtime["spec"]["podGroupPolicy"] = self.policy;
        let template = &mut runtime["spec"]["template"];
        if let Some(queue) = self.queue {
            template["metadata"]["annotations"][QUEUE] = queue.into();
        }
        let jobs = template["spec"]["replicatedJobs"].as_array_mut();
        for (job, fields) in jobs.into_iter().flatten().zip(self.pods) {
            let pod = &mut job["template"]["spec"]["template"]["spec"];
            for (name, value) in fields.as_object().into_iter().flatten() {
                pod[name] = value.clone();
            }
        }
        let patch = job.pointer_mut("/spec/runtimePatches/0/trainingRuntimeSpec");
        if let (Some(queue), Some(patch)) = (self.queue_of_patch, patch) {
            patch["template"]["metadata"]["annotations"][QUEUE] = queue.into();
        }
        self.objects
    }
}
