//! The PodGroup counts the pods that start together and those that follow them, and all of these have its label.

use serde_json::{Value, json};
use trainyard_plugin_coscheduling::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, MockPodSet, Outcome};

const LABEL: &str = "pod-labels[scheduling.x-k8s.io/pod-group]";

fn gpus(container: MockContainer) -> MockContainer {
    container.limit("nvidia.com/gpu", "8").request("cpu", "16")
}

fn job() -> MockJob {
    let first = |set: MockPodSet| {
        let set = set.ancestor("dataset-initializer");
        set.container("dataset-initializer", |c| c.request("cpu", "1"))
    };
    MockJob::new("bert")
        .all_granted()
        .nodes(1000)
        .pod_set("dataset-initializer", first)
        .pod_set("node", |set| {
            set.ancestor("trainer")
                .count(1000)
                .depends_on("dataset-initializer", "Complete")
                .container("node", gpus)
        })
}

fn group(outcome: &Outcome) -> Value {
    let objects = outcome.objects();
    let [group] = &*objects else {
        unreachable!("{objects:?}")
    };
    assert_eq!(group.name.as_str(), "bert");
    assert_eq!(group.apply.name(), "while-suspended");
    let kind = (group.kind.api_version(), group.kind.kind());
    assert_eq!(kind, ("scheduling.x-k8s.io/v1alpha1", "PodGroup"));
    match &group.content {
        trainyard_model::object::Content::Body(body) => Value::Object(body.clone()),
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn group_counts_nodes_and_their_limits() {
    let outcome = job().all_phases(&PLUGIN).unwrap();
    let resources = json!({"cpu": "16k", "nvidia.com/gpu": "8k"});
    let spec = json!({"minMember": 1000, "minResources": resources, "scheduleTimeoutSeconds": 60});
    assert_eq!(group(&outcome), json!({ "spec": spec }));
}

#[test]
fn initializers_do_not_have_the_label() {
    let outcome = job().all_phases(&PLUGIN).unwrap();
    let label = |set: &str| outcome.value(&format!("pod-sets[{set}].{LABEL}"));
    assert_eq!(label("node"), Some(json!("bert")));
    assert_eq!(label("dataset-initializer"), None);
}

#[test]
fn waiting_launcher_is_counted_and_has_the_label() {
    let outcome = job()
        .pod_set("launcher", |set| {
            set.depends_on("node", "Ready").container("node", gpus)
        })
        .all_phases(&PLUGIN)
        .unwrap();
    let spec = &group(&outcome)["spec"];
    assert_eq!(spec["minMember"], 1000);
    assert_eq!(
        spec["minResources"],
        json!({"cpu": "16016", "nvidia.com/gpu": "8008"})
    );
    let label = outcome.value(&format!("pod-sets[launcher].{LABEL}"));
    assert_eq!(label, Some(json!("bert")));
}

#[test]
fn timeout_is_that_of_the_runtime() {
    let with = |seconds: i64| job().config(json!({"scheduleTimeoutSeconds": seconds}));
    let outcome = with(300).all_phases(&PLUGIN).unwrap();
    assert_eq!(group(&outcome)["spec"]["scheduleTimeoutSeconds"], 300);
    let error = with(-1).all_phases(&PLUGIN).unwrap_err().to_string();
    assert!(error.contains("scheduleTimeoutSeconds"), "{error}");
}

#[test]
fn operators_scheduler_is_the_default_of_the_group() {
    let scheduler =
        |outcome: &Outcome, set: &str| outcome.value(&format!("pod-sets[{set}].scheduler-name"));
    let asked = || job().operator_config(json!({"schedulerName": "gangs"}));
    let outcome = asked().all_phases(&PLUGIN).unwrap();
    assert_eq!(scheduler(&outcome, "node"), Some(json!("gangs")));
    assert_eq!(scheduler(&outcome, "dataset-initializer"), None);
    let outcome = asked()
        .pod_set("observer", |set| {
            set.scheduler_name("own").container("observer", |c| c)
        })
        .all_phases(&PLUGIN)
        .unwrap();
    assert_eq!(scheduler(&outcome, "observer"), None);
    let outcome = job().all_phases(&PLUGIN).unwrap();
    assert_eq!(scheduler(&outcome, "node"), None);
}

/// The warnings of the TrainJob with schedulers of its nodes, of an observer beside them, and of the operator's configuration.
fn warnings(nodes: &'static str, observer: &'static str, operator: &str) -> Vec<String> {
    let set = |scheduler: &'static str| {
        move |set: MockPodSet| {
            let set = set.ancestor("trainer").count(2).container("node", gpus);
            match scheduler {
                "" => set,
                name => set.scheduler_name(name),
            }
        }
    };
    let mut job = MockJob::new("bert")
        .all_granted()
        .nodes(2)
        .pod_set("node", set(nodes));
    if !observer.is_empty() {
        job = job.pod_set("observer", |set| {
            set.scheduler_name(observer).container("observer", |c| c)
        });
    }
    if !operator.is_empty() {
        job = job.operator_config(json!({ "schedulerName": operator }));
    }
    job.all_phases(&PLUGIN).unwrap().warnings()
}

#[test]
fn scheduler_that_may_ignore_the_group_is_warned_of() {
    const FIELD: &str =
        "spec.template.spec.replicatedJobs[node].template.spec.template.spec.schedulerName: ";
    for (nodes, operator) in [
        ("", ""),
        ("default-scheduler", ""),
        ("default-scheduler", "gangs"),
    ] {
        let warnings = warnings(nodes, "", operator);
        assert_eq!(warnings.len(), 1, "{nodes} {operator}: {warnings:?}");
        assert!(
            warnings[0].starts_with(FIELD) && warnings[0].contains("one by one"),
            "{warnings:?}"
        );
    }
    // The operator's configuration can say that the default scheduler reads PodGroups.
    for (nodes, operator) in [
        ("gangs", ""),
        ("", "gangs"),
        ("", "default-scheduler"),
        ("default-scheduler", "default-scheduler"),
    ] {
        assert_eq!(warnings(nodes, "", operator), [""; 0], "{nodes} {operator}");
    }
    // A single pod does not wait for others.
    let one = MockJob::new("bert").all_granted().pod_set("node", |set| {
        set.ancestor("trainer").container("node", gpus)
    });
    assert_eq!(one.all_phases(&PLUGIN).unwrap().warnings(), [""; 0]);
}

#[test]
fn members_with_several_schedulers_are_warned_of() {
    let reported = warnings("gangs", "other", "");
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0].contains("have the scheduler `gangs`, and those of `observer` have `other`"),
        "{reported:?}"
    );
    assert_eq!(warnings("", "gangs", "gangs"), [""; 0]);
    assert_eq!(warnings("", "gangs", "").len(), 1);
}
