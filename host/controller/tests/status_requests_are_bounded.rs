//! Requests to the status server are bounded in size, number and time, and those of some clients do not delay those of others.

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use trainyard_controller::status_server::StatusServerSettings;

use crate::stub::{
    cluster::{Act, Cluster},
    progress::{
        HALF, StatusServer, audience, claims, path, put_pod, put_train_job, refusal, request,
        token, unlimited,
    },
};

const POD: &str = "bert-node-0-0-abcde";

async fn start(cluster: &Cluster, settings: StatusServerSettings) -> (StatusServer, String) {
    put_train_job(cluster, "ml", "bert");
    let server = StatusServer::start(cluster, settings).await;
    put_pod(cluster, "ml", POD, "bert");
    let token = token(cluster, "ml", POD, "bert");
    (server, token)
}

/// The cases of the reference's tests, and a few more.
#[tokio::test]
async fn requests_that_are_wrong_are_refused_as_by_the_reference() {
    let cluster = Cluster::new();
    let (server, token) = start(&cluster, unlimited()).await;
    let path = path("ml", "bert");
    for (body, why) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("invalid payload", "expected value at line 1 column 1"),
        ("[]", "an array is not an object"),
        (
            r#"{"trainerStatus": 1}"#,
            "invalid type: integer `1`, expected struct TrainerStatus",
        ),
    ] {
        let answer = server.post(&path, &token, body).await;
        let message = refusal(answer, 422, "Invalid");
        assert_eq!(message, format!("Invalid payload: {why}"));
    }
    let large = "a".repeat((64 << 10) + 1);
    // The size is checked first, so that nothing is done for such a request.
    for token in [&*token, "a"] {
        let answer = server.post(&path, token, &large).await;
        let message = refusal(answer, 413, "RequestEntityTooLarge");
        assert_eq!(message, "the body has more than 65536 bytes");
    }
    let chunked = format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
        large.len()
    );
    refusal(server.send(&chunked).await, 413, "RequestEntityTooLarge");
    let header = format!("Bearer {token}");
    for method in ["GET", "PUT", "PATCH", "DELETE"] {
        let answer = server.send(&request(method, &path, &header, HALF)).await;
        assert_eq!(refusal(answer, 404, "NotFound"), "Not found");
    }
    let escaped = path.replace("/ml/", "/ml%2Fa/");
    for other in ["/", "/apis", &format!("{path}/more"), &escaped] {
        let answer = server.post(other, &token, HALF).await;
        assert_eq!(refusal(answer, 404, "NotFound"), "Not found");
    }
    assert!(cluster.get("trainjobs", "ml", "bert").unwrap()["status"]["trainerStatus"].is_null());
    server.stop().await;
}

/// A pod in a loop would otherwise take all writes of its namespace.
#[tokio::test]
async fn a_train_job_that_reports_too_often_is_told_to_wait() {
    let cluster = Cluster::new();
    let (server, token) = start(&cluster, unlimited()).await;
    put_train_job(&cluster, "ml", "gpt");
    let both = |cluster: &Cluster| cluster.count("jobsets") == 2;
    cluster.until("there is a second JobSet", both).await;
    put_pod(&cluster, "ml", "gpt-node-0-0-abcde", "gpt");
    let quiet = crate::stub::progress::token(&cluster, "ml", "gpt-node-0-0-abcde", "gpt");
    let mut refused = None;
    for _ in 0..200 {
        let answer = server.post(&path("ml", "bert"), &token, HALF).await;
        if answer.0 != 200 {
            refused = Some(answer);
            break;
        }
    }
    let (code, body) = refused.unwrap();
    assert_eq!(body["details"]["retryAfterSeconds"], 5);
    assert_eq!(
        refusal((code, body), 429, "TooManyRequests"),
        "the TrainJob has reported too often; report less often, or try again later"
    );
    assert_eq!(server.post(&path("ml", "gpt"), &quiet, HALF).await.0, 200);
    server.stop().await;
}

/// Connections that send nothing, or only a part of a request, and bodies that do not end.
#[tokio::test]
async fn clients_that_stop_halfway_do_not_delay_others() {
    let cluster = Cluster::new();
    let (server, token) = start(&cluster, unlimited()).await;
    let path = path("ml", "bert");
    let mut held = Vec::new();
    for part in [
        "",
        "POST /",
        &request("POST", &path, "Bearer a", "").replace(": 0\r\n", ": 100\r\n"),
    ] {
        for _ in 0..30 {
            let mut stream = server.connect().await;
            stream.write_all(part.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            held.push(stream);
        }
    }
    assert_eq!(server.post(&path, &token, HALF).await.0, 200);
    drop(held);
    server.stop().await;
}

/// Forged tokens look like those of a pod of the TrainJob until the API server is asked.
#[tokio::test]
async fn confirmations_of_forged_tokens_are_limited_and_known_tokens_do_not_wait() {
    let cluster = Cluster::new();
    let (server, token) = start(&cluster, unlimited()).await;
    let path = path("ml", "bert");
    assert_eq!(server.post(&path, &token, HALF).await.0, 200);
    // From now on, the API server does not answer such calls, and those that are sent are counted.
    cluster.set_rule(|_, when, (verb, plural), _| {
        let is_before = when == crate::stub::cluster::When::Before;
        match (verb, plural) {
            ("create", "tokenreviews") if is_before => Act::Hang,
            _ => Act::GoOn,
        }
    });
    let forged = claims(&audience("ml", "bert"), "ml", "forged");
    let mut held = Vec::new();
    for _ in 0..150 {
        let mut stream = server.connect().await;
        let text = request("POST", &path, &format!("Bearer {forged}"), HALF);
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        held.push(stream);
    }
    assert_eq!(server.post(&path, &token, HALF).await.0, 200);
    drop(held);
    cluster.forget_rule();
    server.stop().await;
}

/// The settings `qps` and `burst` limit writes. A namespace that reports much delays another one by one turn.
#[tokio::test]
async fn namespaces_take_turns_at_writing() {
    let cluster = Cluster::new();
    put_train_job(&cluster, "quiet", "bert");
    let settings = StatusServerSettings {
        qps: 2.0,
        burst: Some(1),
        ..unlimited()
    };
    let mut greedy = Vec::new();
    for n in 0..20 {
        let name = format!("job-{n}");
        put_train_job(&cluster, "greedy", &name);
        greedy.push(name);
    }
    let server = StatusServer::start(&cluster, settings).await;
    put_pod(&cluster, "quiet", POD, "bert");
    let quiet = token(&cluster, "quiet", POD, "bert");
    let mut held = Vec::new();
    for name in &greedy {
        let pod = format!("{name}-node-0-0-abcde");
        put_pod(&cluster, "greedy", &pod, name);
        let token = token(&cluster, "greedy", &pod, name);
        let mut stream = server.connect().await;
        let text = request(
            "POST",
            &path("greedy", name),
            &format!("Bearer {token}"),
            HALF,
        );
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        held.push(stream);
    }
    // 20 writes at that rate would take 10 seconds, and a request does not wait that long.
    assert_eq!(
        server.post(&path("quiet", "bert"), &quiet, HALF).await.0,
        200
    );
    let reported = cluster.all("trainjobs").into_iter();
    let reported = reported.filter(|job| job["status"]["trainerStatus"] != json!(null));
    assert!(reported.count() < 20);
    drop(held);
    server.stop().await;
}
