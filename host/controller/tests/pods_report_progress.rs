//! What a pod reports is written to its TrainJob as the reference writes it, and nothing else of the TrainJob changes. Pods trust the
//! certificate authority of the server also after it has changed.

use serde_json::{Value, json};
use tracing::Level;

use crate::stub::{
    cluster::Cluster,
    log::CapturedLog,
    progress::{HALF, StatusServer, path, put_pod, put_train_job, refusal, token, unlimited},
};

const POD: &str = "bert-node-0-0-abcde";

/// Starts a controller with a TrainJob `ml/bert` that has a pod. Returns the pod's token.
async fn start(cluster: &Cluster) -> (StatusServer, String) {
    put_train_job(cluster, "ml", "bert");
    let server = StatusServer::start(cluster, unlimited()).await;
    put_pod(cluster, "ml", POD, "bert");
    let token = token(cluster, "ml", POD, "bert");
    (server, token)
}

fn train_job(cluster: &Cluster) -> Value {
    cluster.get("trainjobs", "ml", "bert").unwrap()
}

#[tokio::test]
async fn updates_are_written_and_answered_as_by_the_reference() {
    let cluster = Cluster::new();
    let (server, token) = start(&cluster).await;
    let whole = json!({"trainerStatus": {
        "progressPercentage": 42, "estimatedRemainingSeconds": 120,
        "metrics": [{"name": "loss", "value": "0.123"}, {"name": "accuracy", "value": "0.95"}],
        "lastUpdatedTime": "2026-11-27T09:00:00Z",
    }});
    let (path, body) = (path("ml", "bert"), whole.to_string());
    assert_eq!(
        server.post(&path, &token, &body).await,
        (200, whole.clone())
    );
    assert_eq!(
        train_job(&cluster)["status"]["trainerStatus"],
        whole["trainerStatus"]
    );
    // An update replaces all of the earlier one.
    let (code, answer) = server.post(&path, &token, HALF).await;
    assert_eq!(
        (code, &answer["trainerStatus"]["progressPercentage"]),
        (200, &json!(50))
    );
    let half: Value = serde_json::from_str(HALF).unwrap();
    assert_eq!(
        train_job(&cluster)["status"]["trainerStatus"],
        half["trainerStatus"]
    );
    // An empty one changes nothing.
    let writes = cluster.traffic("patch", "trainjobs").calls;
    assert_eq!(server.post(&path, &token, "{}").await, (200, json!({})));
    assert_eq!(cluster.traffic("patch", "trainjobs").calls, writes);
    let metrics = server.metrics.text().unwrap();
    let counted = "trainyard_status_requests_total{code=\"200\"} 3";
    assert!(metrics.contains(counted), "{metrics}");
    server.stop().await;
}

/// Pods report often. Their reports are no reason to reconcile, and the controller's own writes do not remove them.
#[tokio::test]
async fn reconciles_and_reports_do_not_disturb_each_other() {
    let cluster = Cluster::new();
    let (server, token) = start(&cluster).await;
    let path = path("ml", "bert");
    let reconciles = || {
        let text = server.metrics.text().unwrap();
        let of = |line: &&str| line.starts_with("controller_runtime_reconcile_total");
        let counts = text.lines().filter(of);
        let counts = counts.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
        counts.sum::<u64>()
    };
    assert_eq!(server.post(&path, &token, HALF).await.0, 200);
    // A change of the JobSet, after which the status is written.
    let running = json!({"status": {"replicatedJobsStatus": [{"name": "node", "active": 1}]}});
    cluster.merge("jobsets", "ml", "bert", &running);
    let is_noted = |cluster: &Cluster| {
        let status = &cluster.get("trainjobs", "ml", "bert").unwrap()["status"];
        status["jobsStatus"][0]["active"] == 1
    };
    cluster.until("the status is written", is_noted).await;
    assert_eq!(
        train_job(&cluster)["status"]["trainerStatus"]["progressPercentage"],
        50
    );
    let before = reconciles();
    for _ in 0..5 {
        assert_eq!(server.post(&path, &token, HALF).await.0, 200);
    }
    // The watch has shown all of them before it shows this change.
    let more = json!({"status": {"replicatedJobsStatus": [{"name": "node", "active": 2}]}});
    cluster.merge("jobsets", "ml", "bert", &more);
    let is_noted = |cluster: &Cluster| {
        let status = &cluster.get("trainjobs", "ml", "bert").unwrap()["status"];
        status["jobsStatus"][0]["active"] == 2
    };
    cluster.until("the status is written again", is_noted).await;
    // One of the JobSet, and one after the controller's own write or a conflict with a report.
    assert!(
        reconciles() - before <= 4,
        "{} reconciles",
        reconciles() - before
    );
    server.stop().await;
}

/// What the API server says about the values is passed on, and its own failures are not.
#[tokio::test]
async fn refusals_of_the_api_server_are_passed_on() {
    let log = CapturedLog::start(Level::WARN);
    let cluster = Cluster::new();
    let (server, token) = start(&cluster).await;
    let path = path("ml", "bert");
    cluster.set_rule(|_, _, (verb, plural), body| {
        use crate::stub::cluster::Act;
        match (verb, plural) {
            ("patch", "trainjobs") if body["status"]["trainerStatus"].is_object() => Act::Refuse,
            _ => Act::GoOn,
        }
    });
    let answer = server.post(&path, &token, HALF).await;
    assert_eq!(refusal(answer, 500, "InternalError"), "Internal error");
    let [line] = &log.lines_with("progress is not written")[..] else {
        panic!("not logged once: {}", log.text());
    };
    assert!(line.contains("a call to the API server failed: "), "{line}");
    cluster.forget_rule();
    cluster.delete("trainjobs", "ml", "bert");
    let answer = server.post(&path, &token, HALF).await;
    assert_eq!(refusal(answer, 404, "NotFound"), "Train job not found");
    assert_eq!(cluster.count("trainjobs"), 0);
    server.stop().await;
}

/// The authority of the certificate in the ConfigMap of a TrainJob.
fn authority(cluster: &Cluster, name: &str) -> String {
    let config_map = cluster.get("configmaps", "ml", &format!("{name}-tls-config"));
    let config_map = config_map.unwrap_or_default();
    config_map["data"]["ca.crt"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn pods_get_the_authority_and_its_successors() {
    let cluster = Cluster::new();
    let (mut server, _) = start(&cluster).await;
    let file = |server: &StatusServer| {
        let file = server.certificates.directory.path().join("ca.crt");
        std::fs::read_to_string(file).unwrap()
    };
    let first = file(&server);
    assert_eq!(authority(&cluster, "bert"), first);
    let pod = &cluster.get("jobsets", "ml", "bert").unwrap()["spec"]["replicatedJobs"][0];
    let pod = &pod["template"]["spec"]["template"]["spec"];
    let token = &pod["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"];
    assert_eq!(
        token["audience"],
        json!(path("ml", "bert").trim_start_matches("/apis/"))
    );
    let url = pod["containers"][0]["env"][0]["value"].as_str().unwrap();
    assert!(url.ends_with(&path("ml", "bert")), "{url}");
    // An object of another owner is never changed.
    let mut foreign = cluster.get("configmaps", "ml", "bert-tls-config").unwrap();
    put_train_job(&cluster, "ml", "other");
    foreign["metadata"] = json!({"namespace": "ml", "name": "other-tls-config"});
    cluster.put(foreign);
    server.certificates.replace();
    server.certificates.write_authority();
    let second = file(&server);
    assert_ne!(first, second);
    let has_changed = |cluster: &Cluster| authority(cluster, "bert") == second;
    cluster
        .until("the ConfigMap has the new authority", has_changed)
        .await;
    assert_eq!(authority(&cluster, "other"), first);
    put_train_job(&cluster, "ml", "late");
    let is_created = |cluster: &Cluster| authority(cluster, "late") == second;
    cluster
        .until("a new TrainJob has the new authority", is_created)
        .await;
    server.stop().await;
}
