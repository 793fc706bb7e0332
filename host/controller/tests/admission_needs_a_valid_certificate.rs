//! Webhooks are served with the last valid certificate of their directory. Requests that cannot be answered get an HTTP error, and harm no other
//! request.

use std::fs;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::stub::{
    cluster::Cluster,
    controller::{job, runtime},
    webhooks::{Certificates, UNLIMITED, Webhooks, answer, own_address},
};

const VALIDATE: &str = "/validate-trainer-kubeflow-org-v1alpha1-trainjob";

fn cluster() -> Cluster {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    cluster
}

/// Whether an ordinary request is answered.
async fn admits(webhooks: &Webhooks) -> bool {
    let job = job("a", "job", "plain", false);
    webhooks.review(VALIDATE, &job, None).await["allowed"] == true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_certificate_is_served_without_a_restart() {
    let mut webhooks = Webhooks::start(&cluster(), Vec::new()).await;
    assert!(admits(&webhooks).await);
    let mut open = webhooks.connect().await.unwrap();
    webhooks.certificates.replace();
    webhooks.until_trusted().await;
    assert!(admits(&webhooks).await);
    // Connections from before are kept.
    let request = format!("GET {VALIDATE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    open.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut open).await.0, 405);
    webhooks.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_certificate_makes_the_process_not_ready_and_the_last_one_is_kept() {
    let cluster = cluster();
    let mut webhooks = Webhooks::start(&cluster, Vec::new()).await;
    webhooks.until_probe(|answer| answer.ends_with("ok")).await;
    let directory = webhooks.certificates.directory.path().to_owned();
    let other = Certificates::new();
    let key = other.directory.path().join("tls.key");
    fs::copy(key, directory.join("tls.key")).unwrap();
    webhooks
        .until_probe(|answer| {
            answer.starts_with("HTTP/1.1 503")
                && answer.contains(&format!(
                    "certificate (tls.crt and tls.key in {} do not belong together: ",
                    directory.display()
                ))
                && answer.contains("; replace both)")
        })
        .await;
    assert!(admits(&webhooks).await);
    fs::write(directory.join("tls.crt"), "text").unwrap();
    let no_certificate = |answer: &str| answer.contains("tls.crt: has no certificate)");
    webhooks.until_probe(no_certificate).await;
    assert!(admits(&webhooks).await);
    fs::remove_file(directory.join("tls.crt")).unwrap();
    let missing =
        |answer: &str| answer.contains("; mount a Secret with tls.crt and tls.key there)");
    webhooks.until_probe(missing).await;
    assert!(admits(&webhooks).await);
    webhooks.certificates.replace();
    webhooks.until_probe(|answer| answer.ends_with("ok")).await;
    webhooks.until_trusted().await;
    webhooks.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_without_a_certificate_is_ready_once_it_is_mounted() {
    let certificates = Certificates::new();
    let key = certificates.directory.path().join("tls.key");
    fs::remove_file(&key).unwrap();
    let mut webhooks = Webhooks::start_with(&cluster(), Vec::new(), certificates, UNLIMITED).await;
    let missing = |answer: &str| answer.contains("not ready: certificate (");
    webhooks.until_probe(missing).await;
    assert!(webhooks.connect().await.is_err());
    webhooks.certificates.replace();
    webhooks.until_probe(|answer| answer.ends_with("ok")).await;
    assert!(admits(&webhooks).await);
    webhooks.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_requests_get_an_error_and_harm_no_other() {
    let webhooks = Webhooks::start(&cluster(), Vec::new()).await;
    // A body that never ends.
    let mut slow = webhooks.connect().await.unwrap();
    let head = format!("POST {VALIDATE} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{{");
    slow.write_all(head.as_bytes()).await.unwrap();
    let review = |request| json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    let of_pod = json!({
        "uid": "1", "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE", "userInfo": {}, "object": {"metadata": {}},
    });
    let mut no_object = of_pod.clone();
    no_object["kind"]["kind"] = "TrainJob".into();
    no_object["object"] = json!(null);
    let large = vec![b' '; (7 << 20) + 1];
    let deep = "[".repeat(100_000);
    let no_review = |why: &str| {
        let what = "the body is not an AdmissionReview of admission.k8s.io/v1";
        format!("{what}: {why}")
    };
    let bodies: [(Vec<u8>, u16, String); 9] = [
        (b"".to_vec(), 400, no_review("EOF while parsing a value at line 1 column 0")),
        (b"text".to_vec(), 400, no_review("expected ident at line 1 column 2")),
        (b"\xff\xfe".to_vec(), 400, "the body is not UTF-8".to_owned()),
        (deep.into_bytes(), 400, no_review("invalid type: sequence, expected struct AdmissionReview at line 1 column 0")),
        (
            b"{\"kind\": \"Pod\", \"apiVersion\": \"v1\"}".to_vec(),
            400,
            no_review("it is a Pod of v1"),
        ),
        (
            review(json!(null)).to_string().into_bytes(),
            400,
            no_review("it has no request"),
        ),
        (
            review(of_pod).to_string().into_bytes(),
            400,
            "the request of the AdmissionReview is about a Pod, but this path is for TrainJob; correct the rules of the webhook configuration".to_owned(),
        ),
        (
            review(no_object).to_string().into_bytes(),
            400,
            no_review("its request has no object"),
        ),
        (large, 413, "the body has more than 7340032 bytes".to_owned()),
    ];
    for (body, wanted, why) in bodies {
        let answer = webhooks.post(VALIDATE, &body).await;
        assert_eq!(answer, (wanted, why));
        assert!(admits(&webhooks).await);
    }
    let mut broken = webhooks.connect().await.unwrap();
    let chunks = format!(
        "POST {VALIDATE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n"
    );
    broken.write_all(chunks.as_bytes()).await.unwrap();
    broken.flush().await.unwrap();
    let (code, text) = answer(&mut broken).await;
    assert!(
        code == 400 && text.starts_with("the body cannot be read: "),
        "{code} {text}"
    );
    assert_eq!(webhooks.post("/other", b"{}").await.0, 404);
    let late = "the body was not received within 10 s".to_owned();
    assert_eq!(answer(&mut slow).await, (408, late));
    let metrics = webhooks.metrics.text().unwrap();
    let counted = "trainyard_admission_requests_total{webhook=\"validator.trainjob.trainer.kubeflow.org\",verdict=\"error\"} 11";
    assert!(metrics.contains(counted), "{metrics}");
    webhooks.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_opens_many_connections_closes_only_its_own() {
    let webhooks = Webhooks::start(&cluster(), Vec::new()).await;
    let mut api_server = webhooks.connect().await.unwrap();
    let (mut others, address) = (Vec::new(), own_address());
    // More than the most that are open at once.
    for _ in 0..600 {
        others.push(webhooks.connect_from(address).await.unwrap());
    }
    assert!(admits(&webhooks).await);
    let request = format!("GET {VALIDATE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    api_server.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut api_server).await.0, 405);
    webhooks.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_do_not_delay_small_ones() {
    let webhooks = Webhooks::start(&cluster(), Vec::new()).await;
    let mut large = [
        webhooks.connect().await.unwrap(),
        webhooks.connect().await.unwrap(),
    ];
    let length = 7 << 20;
    let head = format!(
        "POST {VALIDATE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{{"
    );
    for stream in &mut large {
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
    let [first, second] = &mut large;
    tokio::select! {
        biased;
        (code, text) = answer(first) => panic!("the first large body is answered: {code} {text}"),
        (code, text) = answer(second) => panic!("the second large body is answered: {code} {text}"),
        admitted = admits(&webhooks) => assert!(admitted),
    }
    webhooks.abandon();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_send_slowly_do_not_delay_others() {
    let webhooks = Webhooks::start(&cluster(), Vec::new()).await;
    let address = own_address();
    // More of each size than there is room for.
    let mut slow = Vec::new();
    for at in 0..200 {
        let length = if at < 190 { 64 << 10 } else { 7 << 20 };
        let head = format!(
            "POST {VALIDATE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{{"
        );
        let stream = webhooks.connect_from(address).await.unwrap();
        let mut stream = webhooks.secured(stream).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        slow.push(stream);
    }
    let [first, .., last] = &mut slow[..] else {
        panic!("there are 200");
    };
    tokio::select! {
        biased;
        (code, text) = answer(first) => panic!("the first body is answered: {code} {text}"),
        (code, text) = answer(last) => panic!("the last body is answered: {code} {text}"),
        admitted = admits(&webhooks) => assert!(admitted),
    }
    webhooks.abandon();
}
