//! A rendering is refused if JobSet's admission webhook would refuse the JobSet, or an API server its metadata or that of its Jobs. The rows
//! are the rules of JobSet 0.12.

use serde_json::{Value, json};

use crate::common::{Scripted, catalog, refused, render_job, renderer, texts};

/// Returns the replicated jobs `a` and `b`; `b` mounts `data` if it is given.
fn jobs() -> Value {
    let job = |name: &str| {
        let container = json!({"name": "node", "image": "i"});
        json!({"name": name, "replicas": 1, "groupName": "default", "template": {"spec": {"completions": 2, "parallelism": 1, "template": {"spec": {"containers": [container]}}}}})
    };
    json!([job("a"), job("b")])
}

/// Returns the fields that are refused of a runtime whose template has this value at a pointer.
fn fields(at: &str, value: Value) -> Vec<String> {
    let mut template = json!({"metadata": {}, "spec": {"replicatedJobs": jobs()}});
    let (parent, member) = at.rsplit_once('/').unwrap();
    template.pointer_mut(parent).unwrap()[member] = value;
    let runtime = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": {"name": "runtime"},
        "spec": {"template": template},
    });
    let job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "job"},
        "spec": {"runtimeRef": {"name": "runtime"}},
    });
    let catalog = catalog(&format!("{runtime}\n---\n{job}\n"));
    let renderer = renderer(&[] as &[Scripted]).unwrap();
    match render_job(&renderer, &catalog.jobs[0]) {
        Ok(_) => Vec::new(),
        Err(stopped) => {
            let problems = refused(stopped).into_iter();
            let field = |problem: trainyard_render::Problem| {
                let field = problem.field().unwrap().into_owned();
                field.strip_prefix("spec.template.").unwrap().to_owned()
            };
            problems.map(field).collect()
        }
    }
}

#[test]
fn each_rule_refuses_its_field() {
    let claim = |name: &str| json!([{"templates": [{"metadata": {"name": name}, "spec": {}}]}]);
    let first = "/spec/replicatedJobs/0/template";
    let waits = |name: &str| json!([{"name": name, "status": "Ready"}]);
    let rule = |rule: Value| json!({"rules": [rule]});
    let many = "x".repeat(256 * 1_024);
    for (at, value, expected) in [
        (
            "/metadata/labels",
            json!({"a b": "x"}),
            "metadata.labels[a b]",
        ),
        (
            "/metadata/labels",
            json!({"a": "x y"}),
            "metadata.labels[a]",
        ),
        (
            "/metadata/annotations",
            json!({"a": many}),
            "metadata.annotations",
        ),
        (
            &*format!("{first}/metadata"),
            json!({"labels": {"a": "x y"}}),
            "spec.replicatedJobs[0].template.metadata.labels[a]",
        ),
        (
            &format!("{first}/metadata"),
            json!({"annotations": {"a": many}}),
            "spec.replicatedJobs[0].template.metadata.annotations",
        ),
        (
            &format!("{first}/spec/template/metadata"),
            json!({"annotations": {"a": many}}),
            "spec.replicatedJobs[0].template.spec.template.metadata.annotations",
        ),
        (
            "/spec/replicatedJobs/0/dependsOn",
            waits("b"),
            "spec.replicatedJobs[0].dependsOn",
        ),
        (
            "/spec/replicatedJobs/1/dependsOn",
            waits("c"),
            "spec.replicatedJobs[1].dependsOn[0].name",
        ),
        (
            "/spec/replicatedJobs/1/name",
            json!("B_b"),
            "spec.replicatedJobs[1].name",
        ),
        (
            "/spec/replicatedJobs/1/groupName",
            json!("1"),
            "spec.replicatedJobs[1].groupName",
        ),
        (
            "/spec/successPolicy",
            json!({"operator": "All", "targetReplicatedJobs": ["c"]}),
            "spec.successPolicy.targetReplicatedJobs[0]",
        ),
        (
            "/spec/failurePolicy",
            rule(json!({"name": "a", "action": "FailJobSet", "targetReplicatedJobs": ["c"]})),
            "spec.failurePolicy.rules[0].targetReplicatedJobs[0]",
        ),
        (
            "/spec/failurePolicy",
            rule(json!({"name": "1 a", "action": "FailJobSet"})),
            "spec.failurePolicy.rules[0].name",
        ),
        (
            "/spec/failurePolicy",
            rule(json!({"name": "a", "action": "FailJobSet", "onJobFailureReasons": ["No"]})),
            "spec.failurePolicy.rules[0].onJobFailureReasons[0]",
        ),
        (
            "/spec/failurePolicy",
            rule(json!({"name": "a", "action": "FailJobSet", "onJobFailureReasons": [""]})),
            "spec.failurePolicy.rules[0].onJobFailureReasons[0]",
        ),
        (
            "/spec/failurePolicy",
            json!({"rules": [{"name": "a", "action": "FailJobSet"}, {"name": "a", "action": "FailJobSet"}]}),
            "spec.failurePolicy.rules[1].name",
        ),
        (
            "/spec/coordinator",
            json!({"replicatedJob": "c"}),
            "spec.coordinator.replicatedJob",
        ),
        (
            "/spec/coordinator",
            json!({"replicatedJob": "a", "jobIndex": 1}),
            "spec.coordinator.jobIndex",
        ),
        (
            "/spec/coordinator",
            json!({"replicatedJob": "a", "podIndex": 2}),
            "spec.coordinator.podIndex",
        ),
        (
            "/spec/network",
            json!({"subdomain": "a.b"}),
            "spec.network.subdomain",
        ),
        ("/spec/managedBy", json!("me"), "spec.managedBy"),
        ("/spec/managedBy", json!(""), "spec.managedBy"),
        (
            "/spec/managedBy",
            json!("example.com/a b"),
            "spec.managedBy",
        ),
        (
            "/spec/volumeClaimPolicies",
            claim("data"),
            "spec.volumeClaimPolicies[0].templates[0].metadata.name",
        ),
    ] {
        assert_eq!(fields(at, value), [expected], "{at}");
    }
}

#[test]
fn what_jobset_accepts_is_rendered() {
    let waits = json!([{"name": "a", "status": "Ready"}]);
    let policy = json!({"rules": [
        {"name": "a:1", "action": "FailJobSet", "targetReplicatedJobs": ["b"], "onJobFailureReasons": ["PodFailurePolicy"]},
        {"name": "b", "action": "RestartJobSet"},
    ]});
    for (at, value) in [
        ("/metadata/labels", json!({"example.com/a": "x"})),
        ("/spec/replicatedJobs/1/dependsOn", waits),
        ("/spec/replicatedJobs/1/name", json!("1b")),
        (
            "/spec/successPolicy",
            json!({"operator": "All", "targetReplicatedJobs": ["a", "b"]}),
        ),
        ("/spec/failurePolicy", policy),
        (
            "/spec/coordinator",
            json!({"replicatedJob": "a", "podIndex": 1}),
        ),
        ("/spec/network", json!({"subdomain": "a-b"})),
    ] {
        assert_eq!(fields(at, value), [] as [String; 0], "{at}");
    }
}

#[test]
fn claims_have_a_mount_and_no_volume_of_their_name() {
    let claims = json!([{"templates": [{"metadata": {"name": "data"}, "spec": {}}]}]);
    let pod = |volumes: Value| {
        let container = json!({"name": "node", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]});
        let pod = json!({"containers": [container], "volumes": volumes});
        let jobs = json!([{"name": "a", "replicas": 1, "template": {"spec": {"template": {"spec": pod}}}}]);
        fields(
            "/spec",
            json!({"replicatedJobs": jobs, "volumeClaimPolicies": claims}),
        )
    };
    assert_eq!(pod(json!([])), [] as [String; 0]);
    let volumes = json!([{"name": "data", "emptyDir": {}}]);
    let at = "spec.replicatedJobs[0].template.spec.template.spec.volumes[0].name";
    assert_eq!(pod(volumes), [at]);
}

/// JobSet creates none, so only the schema of JobSets checks their template.
#[test]
fn jobs_of_a_replicated_job_without_replicas_may_be_invalid() {
    let invalid = |replicas: i64| {
        let metadata = json!({"labels": {"a": "x y"}});
        let job = json!({"name": "b", "replicas": replicas, "template": {"metadata": metadata, "spec": {"template": {"spec": {"containers": []}}}}});
        let mut all = jobs();
        all[1] = job;
        fields("/spec/replicatedJobs", all)
    };
    assert_eq!(invalid(0), Vec::<String>::new());
    assert!(!invalid(1).is_empty());
}

/// JobSet's types omit them, so they never get to a cluster from the Kubeflow Trainer.
#[test]
fn empty_members_are_left_out() {
    for (member, empty) in [("dependsOn", json!([])), ("groupName", json!(""))] {
        let at = format!("/spec/replicatedJobs/0/{member}");
        assert_eq!(fields(&at, empty), Vec::<String>::new(), "{member}");
    }
}

/// `numNodes` replaces the completions of the template, so the pods of nodes have no larger index.
#[test]
fn names_are_as_long_as_those_of_the_pods_that_are_created() {
    let problems = |nodes: u32, completions: u32, name: &str| {
        let pods = json!({"spec": {"containers": [{"name": "node", "image": "i"}]}});
        let spec = json!({"completions": completions, "parallelism": 1, "template": pods});
        let labels = json!({"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"});
        let step =
            json!({"name": "node", "template": {"metadata": {"labels": labels}, "spec": spec}});
        let runtime = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": {"name": "runtime"},
            "spec": {"template": {"spec": {"replicatedJobs": [step]}}},
        });
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name},
            "spec": {"runtimeRef": {"name": "runtime"}, "trainer": {"numNodes": nodes}},
        });
        let catalog = catalog(&format!("{runtime}\n---\n{job}\n"));
        let renderer = renderer(&[] as &[Scripted]).unwrap();
        match render_job(&renderer, &catalog.jobs[0]) {
            Ok(_) => Vec::new(),
            Err(stopped) => texts(&refused(stopped)),
        }
    };
    let longest = "j".repeat(63 - "-node-0-0-xxxxx".len());
    assert_eq!(problems(2, 10_000, &longest), [] as [&str; 0]);
    assert_eq!(
        problems(100, 1, &longest),
        [format!(
            "metadata.name: is too long: its pods would be named `{longest}-node-0-99-xxxxx` with 64 characters, but at most 63 are allowed; use at most 47 characters with this runtime"
        )]
    );
}
