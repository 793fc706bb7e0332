//! `trainyard why` names the one thing that a TrainJob waits for: its error, its admission by Kueue, or its pods. What the user may not read is
//! said, and hides nothing else. The API server is a stub.

use std::fs;

use serde_json::{Value, json};

use crate::common::{
    api_server::{serve, status, write_kubeconfig},
    stderr, stdout, trainyard,
};

/// The objects of a cluster by the end of their paths, without queries.
type Objects = Vec<(&'static str, Value)>;

/// Serves these objects, and 404 for all others. Returns the URL.
fn cluster(objects: Objects) -> String {
    let (url, _calls) = serve(move |path, _| {
        let path = path.split('?').next().unwrap();
        let found = objects.iter().find(|(end, _)| path.ends_with(end));
        match found {
            Some((_, Value::Null)) => status(403, "Forbidden"),
            Some((_, object)) => (200, object.clone()),
            None => status(404, "NotFound"),
        }
    });
    url
}

/// Runs `why trainjob/job` with these further arguments.
fn why(objects: Objects, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    write_kubeconfig(folder.path(), &[("test", &cluster(objects))]);
    let command = ["why", "trainjob/job", "--kubeconfig", "kubeconfig"];
    let output = trainyard(folder.path(), &[&command[..], arguments].concat());
    assert_eq!(stderr(&output), "");
    stdout(&output)
}

/// The lines of the reasons.
fn because(objects: Objects) -> (String, Vec<String>) {
    let answer: Value = serde_json::from_str(&why(objects, &["-o", "json"])).unwrap();
    let lines = answer["because"].as_array().unwrap();
    let lines = lines.iter().map(|line| line.as_str().unwrap().to_owned());
    (
        answer["state"].as_str().unwrap().to_owned(),
        lines.collect(),
    )
}

fn job(more: &Value) -> (&'static str, Value) {
    let mut object = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"name": "job", "namespace": "default", "uid": "u"}, "spec": {}, "status": {},
    });
    for (pointer, value) in more.as_object().unwrap() {
        let (part, key) = pointer.split_once('/').unwrap();
        object[part][key] = value.clone();
    }
    ("/trainjobs/job", object)
}

fn job_set(suspend: bool) -> (&'static str, Value) {
    let owner = json!({"apiVersion": "v1", "kind": "TrainJob", "name": "job", "uid": "u", "controller": true});
    let object = json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "job", "namespace": "default", "uid": "s", "ownerReferences": [owner]},
        "spec": {"suspend": suspend},
    });
    ("/jobsets/job", object)
}

fn list(kind: &str, items: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": format!("{kind}List"), "metadata": {"resourceVersion": "1"}, "items": items})
}

fn pods(pods: &[(&str, Value)]) -> (&'static str, Value) {
    let pod = |(name, status): &(&str, Value)| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "status": status,
        })
    };
    let pods: Vec<_> = pods.iter().map(pod).collect();
    ("/pods", list("Pod", &json!(pods)))
}

fn no_events() -> (&'static str, Value) {
    ("/events", list("Event", &json!([])))
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message})
}

#[test]
fn pods_that_wait_are_grouped_by_reason_and_events_follow() {
    let unschedulable = || {
        let message = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.";
        json!({"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable", message)]})
    };
    let pull = json!({"phase": "Pending", "containerStatuses": [
        {"name": "node", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}},
    ]});
    let event = |uid: &str, reason: &str, time: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": reason, "namespace": "default"}, "type": "Warning",
            "reason": reason, "message": format!("message of {reason}"), "lastTimestamp": time,
            "involvedObject": {"kind": "JobSet", "name": "job", "uid": uid},
        })
    };
    let events = json!([
        event("s", "Later", "2026-01-01T00:00:02Z"),
        event("s", "Earlier", "2026-01-01T00:00:01Z"),
        event("of-an-earlier-job-set", "Other", "2026-01-01T00:00:03Z"),
    ]);
    let objects = vec![
        job(&json!({})),
        job_set(false),
        pods(&[
            ("a", unschedulable()),
            ("b", pull),
            ("c", unschedulable()),
            ("d", json!({"phase": "Running"})),
        ]),
        ("/events", list("Event", &events)),
    ];
    let expected = "\
TrainJob default/job: running
  its JobSet runs; pods: 3 Pending, 1 Running
  pod a and 1 more: Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.
  pod b: container node: ImagePullBackOff: no such image
Events:
  2026-01-01T00:00:01Z Warning Earlier (JobSet): message of Earlier
  2026-01-01T00:00:02Z Warning Later (JobSet): message of Later
";
    assert_eq!(why(objects, &[]), expected);
}

#[test]
fn train_jobs_wait_while_all_of_their_pods_do() {
    let [pending, running] = ["Pending", "Running"].map(|phase| json!({"phase": phase}));
    for (second, expected) in [(&pending, "waiting"), (&running, "running")] {
        let all = pods(&[("a", pending.clone()), ("b", second.clone())]);
        let (state, _) = because(vec![job(&json!({})), job_set(false), all, no_events()]);
        assert_eq!(state, expected);
    }
}

#[test]
fn errors_of_the_controller_come_first() {
    let error = "RuntimeNotFound: ClusterTrainingRuntime `x` does not exist";
    let annotated = json!({"metadata/annotations": {"trainyard.dev/reconcile-error": error}});
    let (state, lines) = because(vec![job(&annotated), no_events()]);
    assert_eq!((state.as_str(), lines), ("waiting", vec![error.to_owned()]));
    // The JobSet runs, so another error does not make the TrainJob wait.
    for (error, expected) in [
        ("PlanPinned: x", "running"),
        ("ObjectWaits: PodGroup `job`: Pending", "waiting"),
        ("NotCreated: quota", "waiting"),
    ] {
        let annotated = json!({"metadata/annotations": {"trainyard.dev/reconcile-error": error}});
        let objects = vec![job(&annotated), job_set(false), pods(&[]), no_events()];
        let (state, lines) = because(objects);
        assert_eq!((state.as_str(), lines[0].as_str()), (expected, error));
    }
}

#[test]
fn each_state_has_its_reason() {
    let complete = json!({"status/conditions": [condition("Complete", "True", "AllJobsCompleted", "all done")]});
    let failed =
        json!({"status/conditions": [condition("Failed", "True", "DeadlineExceeded", "too late")]});
    let deleted = json!({
        "metadata/deletionTimestamp": "2026-01-01T00:00:00Z", "metadata/finalizers": ["example.com/keep"],
    });
    let elsewhere = json!({"spec/managedBy": "kueue.x-k8s.io/multikueue"});
    for (more, state, part) in [
        (complete, "complete", "AllJobsCompleted: all done"),
        (failed, "failed", "DeadlineExceeded: too late"),
        (deleted, "deleting", "example.com/keep"),
        (elsewhere, "waiting", "spec.managedBy"),
        (json!({}), "waiting", "it has no JobSet"),
        (
            json!({"spec/suspend": true}),
            "suspended",
            "spec.suspend is true",
        ),
    ] {
        let (found, lines) = because(vec![job(&more), no_events()]);
        assert_eq!(found, state);
        assert!(lines.concat().contains(part), "{lines:?}");
    }
}

#[test]
fn namespace_can_precede_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let (url, calls) = serve(
        |path, _| match path.ends_with("/namespaces/team/trainjobs/job") {
            true => (200, job(&json!({})).1),
            false => status(404, "NotFound"),
        },
    );
    write_kubeconfig(folder.path(), &[("test", &url)]);
    let run = |arguments: &[&str]| {
        trainyard(
            folder.path(),
            &[&["why", "--kubeconfig", "kubeconfig"], arguments].concat(),
        )
    };
    for arguments in [&["team/job"][..], &["team/job", "-n", "team"]] {
        let output = run(arguments);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    assert!(
        calls
            .try_iter()
            .all(|path| path.contains("/namespaces/team/"))
    );
    let output = run(&["team/job", "-n", "other"]);
    assert_eq!(
        stderr(&output),
        "error: team/job is not in the namespace other; remove -n\n"
    );
    assert!(!run(&["team/job/node"]).status.success());
}

#[test]
fn kueue_says_why_it_does_not_admit() {
    let queued =
        json!({"spec/suspend": true, "metadata/labels": {"kueue.x-k8s.io/queue-name": "team"}});
    let group = json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": "kueue.x-k8s.io",
        "versions": [{"groupVersion": "kueue.x-k8s.io/v1beta1", "version": "v1beta1"}],
        "preferredVersion": {"groupVersion": "kueue.x-k8s.io/v1beta1", "version": "v1beta1"},
    });
    let groups = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]});
    let resources = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "kueue.x-k8s.io/v1beta1",
        "resources": [{"name": "workloads", "singularName": "workload", "namespaced": true, "kind": "Workload", "verbs": ["list"]}],
    });
    let workloads = |items: &Value| {
        vec![
            job(&queued),
            job_set(true),
            pods(&[]),
            no_events(),
            ("/apis", groups.clone()),
            ("/apis/kueue.x-k8s.io/v1beta1", resources.clone()),
            ("/workloads", list("Workload", items)),
        ]
    };
    let message = "insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more needed";
    let conditions = [condition("QuotaReserved", "False", "Pending", message)];
    let workload = json!({"metadata": {"name": "w"}, "status": {"conditions": conditions}});
    let (state, lines) = because(workloads(&json!([workload])));
    assert_eq!(state, "suspended");
    let expected = format!("Kueue, queue team: QuotaReserved: Pending: {message}");
    assert_eq!(lines, [expected]);
    let (_, lines) = because(workloads(&json!([])));
    assert!(lines[0].contains("LocalQueue team"), "{lines:?}");
}

/// Each of the reads may be forbidden, except that of the TrainJob.
#[test]
fn what_cannot_be_read_is_said() {
    let objects = vec![
        job(&json!({})),
        job_set(false),
        ("/pods", Value::Null),
        ("/events", Value::Null),
    ];
    let text = why(objects, &[]);
    for part in [
        "TrainJob default/job: running",
        "pods in namespace default cannot be listed",
        "events in namespace default",
    ] {
        assert!(text.contains(part), "no {part}: {text}");
    }
    let folder = tempfile::tempdir().unwrap();
    write_kubeconfig(folder.path(), &[("test", &cluster(Vec::new()))]);
    let absent = ["why", "job", "-n", "team", "--kubeconfig", "kubeconfig"];
    let output = trainyard(folder.path(), &absent);
    assert_eq!(output.status.code(), Some(1));
    let error = stderr(&output);
    assert!(
        error.contains("no TrainJob `job` in namespace `team`"),
        "{error}"
    );
    let output = trainyard(folder.path(), &["why", "../job"]);
    assert_eq!(output.status.code(), Some(2));
    fs::remove_file(folder.path().join("kubeconfig")).unwrap();
}

/// The texts of a cluster are those of any user.
#[test]
fn hidden_characters_are_escaped() {
    let hidden = "a\u{1b}[31m\u{202e}\nb";
    let annotated = json!({"metadata/annotations": {"trainyard.dev/reconcile-error": hidden}});
    let objects = || vec![job(&annotated), no_events()];
    for text in [why(objects(), &[]), why(objects(), &["-o", "json"])] {
        let is_hidden = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!text.contains(is_hidden), "{text:?}");
    }
    assert_eq!(why(objects(), &[]).lines().count(), 2);
}
