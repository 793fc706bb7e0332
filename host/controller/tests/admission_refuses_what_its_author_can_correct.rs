//! Admission refuses a TrainJob only for what its author can correct. What was admitted can always be suspended, resumed and deleted, and
//! whatever plugins, runtimes or the API server do, a warning says what could not be checked.

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use trainyard_model::{
    plugin::{CallFailure, Plugin},
    value::Failure,
};

use crate::stub::{
    cluster::{Act, Cluster, When},
    controller::{job, runtime},
    plugin::plugin,
    webhooks::Webhooks,
};

const VALIDATE: &str = "/validate-trainer-kubeflow-org-v1alpha1-trainjob";
const VALIDATE_RUNTIME: &str = "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime";

/// A plugin that refuses every TrainJob, and counts its calls.
fn refusing(calls: &Arc<AtomicUsize>) -> Arc<dyn Plugin> {
    let calls = calls.clone();
    plugin("refuses", &[], move |_| {
        calls.fetch_add(1, Ordering::SeqCst);
        Err(CallFailure::Refused(Failure {
            message: "is never allowed".to_owned(),
            field: Some("spec.trainer".to_owned()),
        }))
    })
}

/// A plugin whose calls trap.
fn trapping() -> Arc<dyn Plugin> {
    plugin("traps", &[], |_| {
        Err(CallFailure::Trap {
            kind: "unreachable".to_owned(),
            message: None,
        })
    })
}

/// A plugin whose calls end when the test says so.
fn hanging(gate: &Arc<(Mutex<bool>, Condvar)>) -> Arc<dyn Plugin> {
    let gate = gate.clone();
    plugin("hangs", &[], move |_| {
        let (open, changed) = &*gate;
        drop(
            changed
                .wait_while(open.lock().unwrap(), |open| !*open)
                .unwrap(),
        );
        Ok(())
    })
}

fn denial(response: &Value) -> &str {
    assert_eq!(response["allowed"], false, "{response}");
    assert_eq!(response["status"]["code"], 403);
    assert_eq!(response["status"]["reason"], "Forbidden");
    response["status"]["message"].as_str().unwrap()
}

/// Returns the only warning of an admission.
fn warning(response: &Value) -> &str {
    assert_eq!(response["allowed"], true, "{response}");
    let warnings = response["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    warnings[0].as_str().unwrap()
}

/// Asserts that an object is admitted without a warning.
fn admitted(response: &Value) {
    assert_eq!(response["allowed"], true, "{response}");
    assert_eq!(response["warnings"], Value::Null, "{response}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_by_a_plugin_is_forbidden_until_the_train_job_exists() {
    let cluster = Cluster::new();
    cluster.put(runtime("refuses", &["refuses"]));
    let calls = Arc::new(AtomicUsize::new(0));
    let webhooks = Webhooks::start(&cluster, vec![refusing(&calls)]).await;
    let stored = job("a", "job", "refuses", false);
    let response = webhooks.review(VALIDATE, &stored, None).await;
    assert_eq!(
        denial(&response),
        "spec.trainer: is never allowed (plugin refuses 1.0.0 (native) in transform)"
    );
    let called = calls.load(Ordering::SeqCst);
    assert!(called > 0);
    let mut changes = Vec::new();
    let mut suspended = stored.clone();
    suspended["spec"]["suspend"] = true.into();
    let mut deleted = stored.clone();
    deleted["metadata"]["deletionTimestamp"] = "2026-11-27T00:00:00Z".into();
    deleted["spec"]["trainer"] = json!({"numNodes": 2});
    let mut labeled = stored.clone();
    labeled["metadata"]["labels"] = json!({"a": "b"});
    let mut withdrawn = suspended.clone();
    withdrawn["spec"]["runtimePatches"] = json!([{"manager": "a.io/b"}]);
    changes.extend([suspended.clone(), deleted, labeled, withdrawn]);
    for changed in changes {
        admitted(&webhooks.review(VALIDATE, &changed, Some(&stored)).await);
    }
    admitted(&webhooks.review(VALIDATE, &stored, Some(&suspended)).await);
    assert_eq!(calls.load(Ordering::SeqCst), called);
    // Its new wishes are checked.
    let mut changed = suspended.clone();
    changed["spec"]["trainer"] = json!({"numNodes": 2});
    let response = webhooks.review(VALIDATE, &changed, Some(&suspended)).await;
    assert!(denial(&response).contains("spec.trainer: is never allowed"));
    webhooks.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_fails_refuses_nothing() {
    let cluster = Cluster::new();
    cluster.put(runtime("traps", &["traps"]));
    cluster.put(runtime("missing", &["missing"]));
    let webhooks = Webhooks::start(&cluster, vec![trapping()]).await;
    for (runtime, why) in [
        ("traps", "plugin traps 1.0.0 (native)"),
        ("missing", "no loaded plugin has the name `missing`"),
    ] {
        let new = job("a", "job", runtime, false);
        let response = webhooks.review(VALIDATE, &new, None).await;
        let warning = warning(&response);
        assert!(warning.starts_with("not checked completely; "), "{warning}");
        assert!(warning.contains(why), "{warning}");
    }
    let metrics = webhooks.metrics.text().unwrap();
    let counted = "trainyard_admission_requests_total{webhook=\"validator.trainjob.trainer.kubeflow.org\",verdict=\"unchecked\"} 2";
    assert!(metrics.contains(counted), "{metrics}");
    webhooks.stop().await;
}

/// Opens the gate of the plugin that hangs.
fn open(gate: &(Mutex<bool>, Condvar)) {
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_hangs_delays_only_its_own_namespace() {
    let cluster = Cluster::new();
    cluster.put(runtime("hangs", &["hangs"]));
    cluster.put(runtime("plain", &[]));
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let webhooks = Webhooks::start(&cluster, vec![hanging(&gate)]).await;
    let names: Vec<_> = (0..36).map(|at| format!("job-{at}")).collect();
    let jobs: Vec<_> = names
        .iter()
        .map(|name| job("slow", name, "hangs", false))
        .collect();
    let slow = jobs.iter().map(|job| webhooks.review(VALIDATE, job, None));
    let mut slow = Box::pin(futures_util::future::join_all(slow));
    // Requests of another namespace are answered while those of this one wait.
    let jobs: Vec<_> = (0..4)
        .map(|at| job("other", &format!("job-{at}"), "plain", false))
        .collect();
    let others = jobs.iter().map(|job| webhooks.review(VALIDATE, job, None));
    tokio::select! {
        biased;
        _ = &mut slow => panic!("nothing has ended the calls"),
        responses = futures_util::future::join_all(others) => responses.iter().for_each(admitted),
    }
    open(&gate);
    slow.await.iter().for_each(admitted);
    webhooks.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_that_take_longer_than_the_deadline_refuse_nothing() {
    let cluster = Cluster::new();
    cluster.put(runtime("hangs", &["hangs"]));
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let deadline = Duration::from_millis(500);
    let plugins = vec![hanging(&gate)];
    let webhooks = Webhooks::start_with_deadline(&cluster, plugins, deadline).await;
    let jobs: Vec<_> = (0..36)
        .map(|at| job("slow", &format!("job-{at}"), "hangs", false))
        .collect();
    let slow = jobs.iter().map(|job| webhooks.review(VALIDATE, job, None));
    for response in futures_util::future::join_all(slow).await {
        let warning = warning(&response);
        assert!(
            warning.contains("the check did not end within 0.5 s"),
            "{warning}"
        );
    }
    open(&gate);
    webhooks.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runtime_that_the_watch_has_not_shown_yet_is_read() {
    let cluster = Cluster::new();
    let mut strict = runtime("old", &[]);
    let job_of_node = &mut strict["spec"]["template"]["spec"]["replicatedJobs"][0];
    job_of_node["name"] = "worker".into();
    cluster.put(strict);
    // The watch shows nothing after its first list.
    cluster.set_rule(|_, when, call, _| match (when, call) {
        (When::Before, ("watch", "clustertrainingruntimes")) => Act::Hang,
        _ => Act::GoOn,
    });
    let webhooks = Webhooks::start(&cluster, Vec::new()).await;
    webhooks.until_probe(|answer| answer.ends_with("ok")).await;
    let new = job("a", "job", "new", false);
    let response = webhooks.review(VALIDATE, &new, None).await;
    let wanted = "spec.runtimeRef.name: there is no ClusterTrainingRuntime `new`; create it first, or reference one that exists";
    assert_eq!(denial(&response), wanted);
    cluster.put(runtime("new", &[]));
    admitted(&webhooks.review(VALIDATE, &new, None).await);
    // A TrainJob that the known state of its runtime refuses is checked with the current one.
    let mut patched = job("a", "job", "old", false);
    let jobs = json!([{"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}}}]);
    patched["spec"]["runtimePatches"] = json!([{
        "manager": "a.io/b", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
    }]);
    let response = webhooks.review(VALIDATE, &patched, None).await;
    assert!(
        denial(&response).starts_with("spec.runtimePatches[0]."),
        "{response}"
    );
    cluster.put(runtime("old", &[]));
    admitted(&webhooks.review(VALIDATE, &patched, None).await);
    // A TrainJob whose runtime was deleted can be changed.
    let mut suspended = job("a", "job", "gone", true);
    let stored = suspended.clone();
    suspended["spec"]["trainer"] = json!({"numNodes": 2});
    let response = webhooks.review(VALIDATE, &suspended, Some(&stored)).await;
    let warning = warning(&response);
    assert!(
        warning.contains("there is no ClusterTrainingRuntime `gone`"),
        "{warning}"
    );
    webhooks.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_started_is_compared_with_its_snapshot_and_not_rendered() {
    let cluster = Cluster::new();
    cluster.put(runtime("counts", &["counts"]));
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let counts = plugin("counts", &[], move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    cluster.put(job("a", "job", "counts", false));
    let webhooks = Webhooks::start(&cluster, vec![counts]).await;
    let is_created = |cluster: &Cluster| cluster.count("jobsets") == 1;
    cluster.until("there is a JobSet", is_created).await;
    let counts = json!([{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}]);
    cluster.merge(
        "jobsets",
        "a",
        "job",
        &json!({"status": {"replicatedJobsStatus": counts}}),
    );
    let has_run = |cluster: &Cluster| {
        let job = cluster.get("trainjobs", "a", "job").unwrap();
        job["status"]["jobsStatus"][0]["active"] == 1
    };
    cluster.until("it has run", has_run).await;
    cluster.merge("trainjobs", "a", "job", &json!({"spec": {"suspend": true}}));
    let is_suspended = |cluster: &Cluster| {
        let job_set = cluster.get("jobsets", "a", "job").unwrap();
        job_set["spec"]["suspend"] == true
    };
    cluster.until("its JobSet is suspended", is_suspended).await;
    let stored = cluster.get("trainjobs", "a", "job").unwrap();
    let patch = |target: &str| {
        let mut patched = stored.clone();
        let jobs = json!([{"name": target, "template": {"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}}}]);
        patched["spec"]["runtimePatches"] = json!([{
            "manager": "a.io/b", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
        }]);
        patched
    };
    let response = webhooks
        .review(VALIDATE, &patch("node"), Some(&stored))
        .await;
    assert!(
        denial(&response).contains("have active Jobs: node;"),
        "{response}"
    );
    let ended = json!([{"name": "node", "ready": 0, "succeeded": 0, "failed": 1, "active": 0, "suspended": 0}]);
    cluster.merge(
        "jobsets",
        "a",
        "job",
        &json!({"status": {"replicatedJobsStatus": ended}}),
    );
    let has_ended = |cluster: &Cluster| {
        let job = cluster.get("trainjobs", "a", "job").unwrap();
        job["status"]["jobsStatus"][0]["active"] == 0
    };
    cluster.until("its pods have ended", has_ended).await;
    // The runtime of its snapshot counts, even if the current one has changed or is gone.
    let called = calls.load(Ordering::SeqCst);
    let stored = cluster.get("trainjobs", "a", "job").unwrap();
    admitted(
        &webhooks
            .review(VALIDATE, &patch("node"), Some(&stored))
            .await,
    );
    let response = webhooks
        .review(VALIDATE, &patch("other"), Some(&stored))
        .await;
    assert!(
        denial(&response).starts_with("spec.runtimePatches[0]."),
        "{response}"
    );
    assert_eq!(calls.load(Ordering::SeqCst), called);
    webhooks.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runtimes_are_refused_for_the_rules_of_the_reference() {
    let webhooks = Webhooks::start(&Cluster::new(), Vec::new()).await;
    let mut valid = runtime("torch", &[]);
    let labels = json!({"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"});
    let node = &mut valid["spec"]["template"]["spec"]["replicatedJobs"][0];
    node["template"]["metadata"] = json!({"labels": labels});
    admitted(&webhooks.review(VALIDATE_RUNTIME, &valid, None).await);
    let mut two = valid.clone();
    two["spec"]["template"]["spec"]["replicatedJobs"][0]["replicas"] = 2.into();
    let response = webhooks.review(VALIDATE_RUNTIME, &two, None).await;
    assert!(
        denial(&response).contains("replicas: is 2, but must be 1"),
        "{response}"
    );
    let response = webhooks.review(VALIDATE_RUNTIME, &two, Some(&valid)).await;
    assert!(
        denial(&response).contains("replicas: is 2, but must be 1"),
        "{response}"
    );
    // One that is stored already can be labeled and deleted.
    admitted(&webhooks.review(VALIDATE_RUNTIME, &two, Some(&two)).await);
    let mut deleted = two.clone();
    deleted["metadata"]["deletionTimestamp"] = "2026-11-27T00:00:00Z".into();
    admitted(
        &webhooks
            .review(VALIDATE_RUNTIME, &deleted, Some(&valid))
            .await,
    );
    let mut other = valid.clone();
    let job = &mut other["spec"]["template"]["spec"]["replicatedJobs"][0];
    job["template"]["spec"]["template"]["spec"]["containers"][0]["name"] = "main".into();
    let response = webhooks.review(VALIDATE_RUNTIME, &other, None).await;
    assert!(
        denial(&response).contains("must include a container `node`"),
        "{response}"
    );
    let mut unknown = valid.clone();
    unknown["spec"]["mlPolicies"] = json!({});
    let response = webhooks.review(VALIDATE_RUNTIME, &unknown, None).await;
    assert!(
        denial(&response).contains("unknown field \"spec.mlPolicies\""),
        "{response}"
    );
    let mut deprecated = valid.clone();
    deprecated["metadata"]["labels"] = json!({"trainer.kubeflow.org/support": "deprecated"});
    let response = webhooks.review(VALIDATE_RUNTIME, &deprecated, None).await;
    assert!(
        warning(&response).contains("`torch` is deprecated"),
        "{response}"
    );
    // A plugin may be loaded after the runtimes that use it are installed.
    let later = runtime("later", &["later"]);
    let response = webhooks.review(VALIDATE_RUNTIME, &later, None).await;
    assert!(
        warning(&response).contains("no loaded plugin has the name `later`"),
        "{response}"
    );
    webhooks.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generated_name_is_checked_before_it_is_known() {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    let webhooks = Webhooks::start(&cluster, Vec::new()).await;
    let mut new = job("a", "", "plain", false);
    new["metadata"] = json!({"namespace": "a", "generateName": "job-"});
    admitted(&webhooks.review(VALIDATE, &new, None).await);
    new["metadata"]["generateName"] = format!("{}-", "j".repeat(70)).into();
    let response = webhooks.review(VALIDATE, &new, None).await;
    assert!(!denial(&response).is_empty());
    webhooks.stop().await;
}
