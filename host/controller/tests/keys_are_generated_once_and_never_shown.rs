//! The keys of a TrainJob's Secret are generated once, when it is created. They are reused after a restart and if another controller
//! created them, and lost keys are not replaced while pods use them. No part of a key appears in the log, Events, metrics, snapshots or any
//! other object.

#[path = "../../../tests/cluster/tests/common/parts.rs"]
mod parts;

use std::sync::{Arc, Mutex};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tracing::Level;
use trainyard_controller::metrics::Metrics;
use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    plugin::Plugin,
};

use self::parts::Parts;
use crate::stub::{
    cluster::{Act, Cluster, When},
    controller::{Controller, job, runtime},
    log::CapturedLog,
    plugin::builder,
};

const SECRET: &str = "job-keys";

/// A plugin that emits a Secret with a key of each kind.
fn keys() -> Arc<dyn Plugin> {
    fn emit(call: &mut Call) -> Result<(), Fault> {
        let objects = handle::Objects(0);
        let secret = call.objects_emit(objects, "v1", "Secret", "-keys", None)?;
        let ssh = call.objects_key_pair(objects, "ssh", "ecdsa-p521")?;
        let curve = call.objects_key_pair(objects, "curve", "curve25519")?;
        for (key, text) in [
            ("sec1", call.key_pair_private(ssh, "sec1-pem")?),
            ("pkcs8", call.key_pair_private(ssh, "pkcs8-pem")?),
            ("public", call.key_pair_public(ssh, "openssh")?),
            ("curve", call.key_pair_private(curve, "z85")?),
            ("token", call.objects_random(objects, "token", 64, "hex")?),
        ] {
            call.object_append_secret(secret, key, text)?;
        }
        call.object_append(secret, "plain", "of the plugin")
    }
    builder("keys", &["objects[v1/Secret/-keys]"], |call| {
        Ok(emit(call)?)
    })
}

/// All metrics of the controllers of a test.
static METRICS: Mutex<Vec<Arc<Metrics>>> = Mutex::new(Vec::new());

async fn started(cluster: &Cluster) -> Controller {
    let metrics = |queue: &_| {
        let metrics = Arc::new(Metrics::new(queue));
        METRICS.lock().unwrap().push(metrics.clone());
        metrics
    };
    Controller::start(cluster, metrics, |_| vec![keys()]).await
}

fn cluster() -> Cluster {
    let cluster = Cluster::new();
    cluster.put(runtime("with-keys", &["keys"]));
    cluster
}

fn secret(cluster: &Cluster) -> Value {
    cluster.get("secrets", "a", SECRET).unwrap_or_default()
}

fn has_job_set(cluster: &Cluster) -> bool {
    cluster.get("jobsets", "a", "job").is_some()
}

fn is_reported(cluster: &Cluster, text: &str) -> bool {
    let events = cluster.all("events");
    let mut messages = events.iter().filter_map(|event| event["message"].as_str());
    messages.any(|message| message.contains(text))
}

/// Returns everything that a controller wrote, except for the Secrets.
fn outputs(cluster: &Cluster, log: &CapturedLog) -> Vec<(&'static str, String)> {
    let mut outputs = vec![("log", log.text())];
    for plural in ["events", "configmaps", "jobsets", "trainjobs"] {
        outputs.push((plural, json!(cluster.all(plural)).to_string()));
    }
    for metrics in METRICS.lock().unwrap().iter() {
        outputs.push(("metrics", metrics.text().unwrap()));
    }
    outputs
}

#[tokio::test]
async fn keys_survive_a_restart_and_are_never_shown() {
    let log = CapturedLog::start(Level::TRACE);
    let cluster = cluster();
    cluster.put(job("a", "job", "with-keys", true));
    let controller = started(&cluster).await;
    cluster.until("there is a JobSet", has_job_set).await;
    controller.stop().await;
    let made = secret(&cluster);
    let data = &made["data"];
    let text = |key: &str| {
        let bytes = BASE64_STANDARD.decode(data[key].as_str().unwrap()).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    assert!(text("sec1").starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
    assert!(text("public").starts_with("ecdsa-sha2-nistp521 AAAA"));
    assert_eq!((text("curve").len(), text("token").len()), (40, 128));
    assert_eq!(text("plain"), "of the plugin");
    let uid = cluster.get("trainjobs", "a", "job").unwrap()["metadata"]["uid"].clone();
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], uid);

    // Tests in other threads may have switched off lines of the debug level before this one captured them.
    tracing::callsite::rebuild_interest_cache();
    // The next one requests it again, since the TrainJob has changed.
    let controller = started(&cluster).await;
    let labels = json!({"spec": {"suspend": false, "labels": {"label": "new"}}});
    cluster.merge("trainjobs", "a", "job", &labels);
    let follows = |cluster: &Cluster| {
        let job_set = cluster.get("jobsets", "a", "job").unwrap();
        job_set["spec"]["suspend"] == false
    };
    cluster.until("the JobSet follows", follows).await;
    controller.stop().await;
    assert_eq!(cluster.traffic("create", "secrets").calls, 1);
    assert_eq!(secret(&cluster), made);

    // Of the answers, none holds a key.
    let verbs = cluster.all_traffic();
    let asked = verbs.iter().filter(|((_, plural), _)| plural == "secrets");
    for ((verb, _), asked) in asked {
        assert!(["create", "get"].contains(&verb.as_str()), "{verb}");
        assert!(asked.bytes / asked.calls < 700, "{verb}: {asked:?}");
    }
    let parts = Parts::of(&made);
    assert!(parts.are_in(&made.to_string()));
    for (place, text) in outputs(&cluster, &log) {
        assert!(!text.is_empty() && !parts.are_in(&text), "{place}");
    }
    assert!(log.text().contains("TRACE") || log.text().contains("DEBUG"));
}

#[tokio::test]
async fn only_owned_secrets_are_used() {
    let cluster = cluster();
    cluster.put(job("a", "job", "with-keys", true));
    let uid = cluster.get("trainjobs", "a", "job").unwrap()["metadata"]["uid"].clone();
    let with_owner = |owner: &Value| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": "a", "name": SECRET, "ownerReferences": [owner]},
            "data": {"id_rsa": "b2xk"},
        })
    };
    let owner = |uid: &Value, name: &str| {
        json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": name, "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        })
    };
    let foreign = with_owner(&owner(&"another".into(), "another"));
    cluster.put(foreign);
    let foreign = secret(&cluster);
    let controller = started(&cluster).await;
    let reported = format!(
        "Secret `{SECRET}` does not belong to this TrainJob: it is owned by TrainJob another"
    );
    cluster
        .until("it is reported", |it| is_reported(it, &reported))
        .await;
    assert!(!has_job_set(&cluster));
    assert_eq!(secret(&cluster), foreign);

    // As the reference made it: its keys are those of pods that run.
    cluster.put(with_owner(&owner(&uid, "job")));
    let of_the_reference = secret(&cluster);
    cluster.merge(
        "trainjobs",
        "a",
        "job",
        &json!({"spec": {"labels": {"a": "b"}}}),
    );
    cluster.until("there is a JobSet", has_job_set).await;
    controller.stop().await;
    assert_eq!(secret(&cluster), of_the_reference);
}

/// Returns the Secret, owned by the TrainJob with that UID.
fn owned_secret(uid: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"namespace": "a", "name": SECRET, "ownerReferences": [{
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "job", "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }]},
        "type": "Opaque", "data": {"id_rsa": "b2xk"},
    })
}

fn unsuspend(cluster: &Cluster) {
    cluster.merge(
        "trainjobs",
        "a",
        "job",
        &json!({"spec": {"suspend": false}}),
    );
}

fn runs(cluster: &Cluster) -> bool {
    let job_set = cluster.get("jobsets", "a", "job").unwrap_or_default();
    job_set["spec"]["suspend"] == false
}

/// A quota is checked before the API server looks the object up, and counts the attempt.
#[tokio::test]
async fn existing_secret_is_not_created_again_and_needs_no_quota() {
    let cluster = cluster();
    let attempts = Arc::new(Mutex::new(0));
    let counted = attempts.clone();
    cluster.set_rule(move |cluster, when, call, _| {
        if (when, call) != (When::Before, ("create", "secrets")) {
            return Act::GoOn;
        }
        *counted.lock().unwrap() += 1;
        match cluster.count("secrets") {
            0 => Act::GoOn,
            _ => Act::OverQuota,
        }
    });
    cluster.put(job("a", "job", "with-keys", true));
    let controller = started(&cluster).await;
    cluster.until("there is a JobSet", has_job_set).await;
    let made = secret(&cluster);
    unsuspend(&cluster);
    cluster.until("the JobSet runs", runs).await;
    controller.stop().await;
    assert_eq!((secret(&cluster), *attempts.lock().unwrap()), (made, 1));
}

#[tokio::test]
async fn event_quotes_the_api_server_without_client_types() {
    let cluster = cluster();
    cluster.set_rule(|_, when, call, _| match (when, call) {
        (When::Before, ("create", "secrets")) => Act::OverQuota,
        _ => Act::GoOn,
    });
    cluster.put(job("a", "job", "with-keys", false));
    let controller = started(&cluster).await;
    let printed = format!("creating Secret `{SECRET}`: exceeded quota: objects");
    cluster
        .until("it is printed", |it| is_reported(it, &printed))
        .await;
    controller.stop().await;
    assert!(!is_reported(&cluster, "Status {"));
}

/// The Secret of the other controller uses up the quota after this controller has read it.
#[tokio::test]
async fn secret_created_concurrently_is_used() {
    for answer in [Act::OverQuota, Act::GoOn] {
        let cluster = cluster();
        cluster.set_rule(move |cluster, when, call, _| {
            if (when, call) != (When::Before, ("create", "secrets")) {
                return Act::GoOn;
            }
            let job = cluster.get("trainjobs", "a", "job").unwrap();
            cluster.put(owned_secret(&job["metadata"]["uid"]));
            answer
        });
        cluster.put(job("a", "job", "with-keys", false));
        let controller = started(&cluster).await;
        cluster.until("the JobSet runs", runs).await;
        controller.stop().await;
        assert_eq!(secret(&cluster)["data"], json!({"id_rsa": "b2xk"}));
        assert!(cluster.all("events").is_empty());
    }
}

#[tokio::test]
async fn job_set_does_not_run_with_a_secret_being_deleted() {
    let cluster = cluster();
    cluster.put(job("a", "job", "with-keys", true));
    let controller = started(&cluster).await;
    cluster.until("there is a JobSet", has_job_set).await;
    // Another controller's finalizer keeps it.
    let deleting = json!({"metadata": {
        "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/keeps"],
    }});
    cluster.merge("secrets", "a", SECRET, &deleting);
    let (deleted, looks) = (secret(&cluster), cluster.traffic("get", "secrets").calls);
    unsuspend(&cluster);
    let looked = |cluster: &Cluster| cluster.traffic("get", "secrets").calls > looks + 2;
    cluster.until("it was looked at", looked).await;
    assert!(!runs(&cluster));
    cluster.delete("secrets", "a", SECRET);
    cluster.until("the JobSet runs", runs).await;
    controller.stop().await;
    assert_ne!(secret(&cluster)["data"], deleted["data"]);
}

#[tokio::test]
async fn lost_keys_are_replaced_once_no_pod_uses_them() {
    let cluster = cluster();
    cluster.put(job("a", "job", "with-keys", false));
    let controller = started(&cluster).await;
    cluster.until("there is a JobSet", has_job_set).await;
    let first = secret(&cluster);
    assert!(first["data"]["sec1"].is_string(), "{first:#}");
    cluster.delete("secrets", "a", SECRET);
    let change = |spec: &Value| cluster.merge("trainjobs", "a", "job", &json!({"spec": spec}));
    change(&json!({"labels": {"any": "change"}}));
    let reported = format!("Secret `{SECRET}` is missing while its JobSet runs");
    cluster
        .until("it is reported", |it| is_reported(it, &reported))
        .await;
    assert_eq!(secret(&cluster), Value::Null);

    // Nor while it is suspended: the old one may still be restored.
    let is_suspended = |suspend: bool| {
        move |cluster: &Cluster| {
            cluster.get("jobsets", "a", "job").unwrap()["spec"]["suspend"] == suspend
        }
    };
    change(&json!({"suspend": true}));
    cluster.until("it waits", is_suspended(true)).await;
    assert_eq!(secret(&cluster), Value::Null);
    change(&json!({"suspend": false}));
    cluster.until("it is reconciled", is_suspended(false)).await;
    controller.stop().await;
    let second = secret(&cluster);
    assert!(second["data"]["sec1"].is_string(), "{second:#}");
    assert_ne!(second["data"], first["data"]);
}

#[tokio::test]
async fn secret_data_quoted_by_a_webhook_is_not_reported() {
    let log = CapturedLog::start(Level::TRACE);
    let cluster = cluster();
    let refused: Arc<Mutex<Vec<Value>>> = Arc::default();
    let recorded = refused.clone();
    cluster.set_rule(move |_, when, call, body| {
        if (when, call) == (When::Before, ("create", "secrets")) {
            recorded.lock().unwrap().push(body.clone());
            return Act::Quote;
        }
        Act::GoOn
    });
    cluster.put(job("a", "job", "with-keys", true));
    let controller = started(&cluster).await;
    let reported = format!("creating Secret `{SECRET}`: ");
    cluster
        .until("it is reported", |it| is_reported(it, &reported))
        .await;
    let hidden = "the answer quotes a key, and is not shown";
    assert!(is_reported(&cluster, hidden));
    controller.stop().await;
    for secret in refused.lock().unwrap().iter() {
        let parts = Parts::of(secret);
        for (place, text) in outputs(&cluster, &log) {
            assert!(!parts.are_in(&text), "{place}");
        }
    }
}
