//! A pod reports for its own TrainJob only, whatever tokens it can get. What a token itself shows to be wrong costs the API server nothing.

use serde_json::{Value, json};

use crate::stub::{
    cluster::Cluster,
    progress::{
        HALF, StatusServer, audience, claims, path, put_pod, put_train_job, refusal, request,
        token, unlimited, user,
    },
};

const POD: &str = "bert-node-0-0-abcde";

const NO_TOKEN: &str = "Forbidden: the request has no bearer token; send the one in the file that KUBEFLOW_TRAINER_SERVER_TOKEN names";
const OTHER_TOKEN: &str = "Forbidden: the token is not that of a pod for this TrainJob; send the one in the file that KUBEFLOW_TRAINER_SERVER_TOKEN names";
const INVALID_TOKEN: &str = "Forbidden: the API server does not accept the token; read its file again, because tokens expire";
const OTHER_POD: &str = "Forbidden: the pod of the token does not belong to the TrainJob";

/// Checks that a request is refused, and returns why.
fn why(answer: (u16, Value)) -> String {
    refusal(answer, 403, "Forbidden")
}

async fn start(cluster: &Cluster) -> StatusServer {
    for (namespace, name) in [("ml", "bert"), ("ml", "gpt"), ("other", "bert")] {
        put_train_job(cluster, namespace, name);
    }
    let server = StatusServer::start(cluster, unlimited()).await;
    put_pod(cluster, "ml", POD, "bert");
    put_pod(cluster, "ml", "gpt-node-0-0-abcde", "gpt");
    server
}

fn reviews(cluster: &Cluster) -> u64 {
    cluster.traffic("create", "tokenreviews").calls
}

/// No TrainJob has progress.
fn assert_unchanged(cluster: &Cluster) {
    for job in cluster.all("trainjobs") {
        assert!(job["status"]["trainerStatus"].is_null(), "{job}");
    }
}

#[tokio::test]
async fn tokens_for_something_else_are_refused_without_a_call() {
    let cluster = Cluster::new();
    let server = start(&cluster).await;
    let own = token(&cluster, "ml", POD, "bert");
    for (namespace, name) in [("ml", "gpt"), ("other", "bert"), ("ml", "none")] {
        let answer = server.post(&path(namespace, name), &own, HALF).await;
        assert_eq!(why(answer), OTHER_TOKEN);
    }
    let path = path("ml", "bert");
    // Of a pod in another namespace, and not bound to a pod.
    let elsewhere = claims(&audience("ml", "bert"), "other", POD);
    let unbound = "e30.eyJhdWQiOiJhIiwia3ViZXJuZXRlcy5pbyI6eyJuYW1lc3BhY2UiOiJtbCJ9fQ.c2ln";
    for wrong in ["a", "a.b.c", &elsewhere, unbound] {
        assert_eq!(why(server.post(&path, wrong, HALF).await), OTHER_TOKEN);
    }
    for wrong in ["", &"a".repeat(9 << 10)] {
        assert_eq!(why(server.post(&path, wrong, HALF).await), NO_TOKEN);
    }
    for header in ["", "Basic dXNlcjpwYXNz", &format!("Bearer {own} {own}")] {
        let answer = server.send(&request("POST", &path, header, HALF)).await;
        assert_eq!(why(answer), NO_TOKEN);
    }
    let headless = format!("POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(why(server.send(&headless).await), NO_TOKEN);
    assert_eq!(reviews(&cluster), 0);
    assert_unchanged(&cluster);
    server.stop().await;
}

#[tokio::test]
async fn tokens_that_the_api_server_does_not_accept_are_refused() {
    let cluster = Cluster::new();
    let server = start(&cluster).await;
    let path = path("ml", "bert");
    let forged = claims(&audience("ml", "bert"), "ml", POD);
    assert_eq!(why(server.post(&path, &forged, HALF).await), INVALID_TOKEN);
    // Accepted, but bound to another pod, to none, or of another namespace.
    let mut unbound = user("ml", POD);
    unbound.as_object_mut().unwrap().remove("extra");
    for user in [user("ml", "another"), unbound, user("other", POD)] {
        cluster.accept(&forged, &audience("ml", "bert"), user);
        assert_eq!(why(server.post(&path, &forged, HALF).await), INVALID_TOKEN);
    }
    // Accepted, but for another audience.
    cluster.accept(&forged, "another", user("ml", POD));
    assert_eq!(why(server.post(&path, &forged, HALF).await), INVALID_TOKEN);
    assert_unchanged(&cluster);
    server.stop().await;
}

/// The author of a pod template can ask for a token of any audience.
#[tokio::test]
async fn pods_of_others_cannot_report_with_tokens_for_the_train_job() {
    let cluster = Cluster::new();
    let server = start(&cluster).await;
    let path = path("ml", "bert");
    let foreign = token(&cluster, "ml", "gpt-node-0-0-abcde", "bert");
    assert_eq!(why(server.post(&path, &foreign, HALF).await), OTHER_POD);
    // A pod without a JobSet, one of an earlier JobSet, and one that is gone.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "ml", "name": "plain", "uid": "uid-of-plain"}});
    cluster.put(pod);
    put_pod(&cluster, "ml", "earlier", "bert");
    let labels = json!({"metadata": {"labels": {"jobset.sigs.k8s.io/jobset-uid": "another"}}});
    cluster.merge("pods", "ml", "earlier", &labels);
    // Another pod with the name of the token's pod.
    put_pod(&cluster, "ml", "replaced", "bert");
    cluster.merge(
        "pods",
        "ml",
        "replaced",
        &json!({"metadata": {"uid": "another"}}),
    );
    for pod in ["plain", "earlier", "gone", "replaced"] {
        let token = token(&cluster, "ml", pod, "bert");
        assert_eq!(
            why(server.post(&path, &token, HALF).await),
            OTHER_POD,
            "{pod}"
        );
    }
    // A JobSet that does not belong to the TrainJob.
    let own = token(&cluster, "ml", POD, "bert");
    cluster.merge(
        "jobsets",
        "ml",
        "bert",
        &json!({"metadata": {"ownerReferences": []}}),
    );
    assert_eq!(why(server.post(&path, &own, HALF).await), OTHER_POD);
    assert_unchanged(&cluster);
    server.stop().await;
}

/// The pods of a TrainJob that was deleted may outlive it for a while.
#[tokio::test]
async fn pods_of_a_deleted_train_job_do_not_report_for_its_successor() {
    let cluster = Cluster::new();
    let server = start(&cluster).await;
    let own = token(&cluster, "ml", POD, "bert");
    let path = path("ml", "bert");
    assert_eq!(server.post(&path, &own, HALF).await.0, 200);
    cluster.delete("trainjobs", "ml", "bert");
    cluster.delete("jobsets", "ml", "bert");
    for config_map in ["bert-runtime-snapshot", "bert-tls-config"] {
        cluster.delete("configmaps", "ml", config_map);
    }
    put_train_job(&cluster, "ml", "bert");
    let is_created = |cluster: &Cluster| cluster.count("jobsets") == 3;
    cluster.until("there is another JobSet", is_created).await;
    // The token is remembered for a TrainJob of another UID, and then it is checked again.
    refusal(server.post(&path, &own, HALF).await, 404, "NotFound");
    refusal(server.post(&path, &own, HALF).await, 403, "Forbidden");
    let job = cluster.get("trainjobs", "ml", "bert").unwrap();
    assert!(job["status"]["trainerStatus"].is_null(), "{job}");
    server.stop().await;
}

/// A pod keeps its token for an hour, and reports every few seconds.
#[tokio::test]
async fn a_token_is_confirmed_once_for_many_reports() {
    let cluster = Cluster::new();
    let server = start(&cluster).await;
    let own = token(&cluster, "ml", POD, "bert");
    let path = path("ml", "bert");
    for _ in 0..5 {
        assert_eq!(server.post(&path, &own, HALF).await.0, 200);
    }
    assert_eq!(reviews(&cluster), 1);
    // Another token of the pod is not confirmed with it.
    let forged = format!("{own}x");
    refusal(server.post(&path, &forged, HALF).await, 403, "Forbidden");
    assert_eq!(reviews(&cluster), 2);
    server.stop().await;
}
