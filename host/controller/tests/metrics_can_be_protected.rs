//! With `metrics.auth.enabled`, the API server decides who may read metrics. TLS options are obeyed, and protection requires a certificate.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::extract::Request;
use futures_util::FutureExt as _;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;
use trainyard_controller::{
    metrics::Metrics,
    serve::{BindAddress, MetricsAccess, MetricsAuthorizer, Readiness, start},
    settings::{SecureServing, Settings},
};

use crate::stub::{self, cluster::Cluster, controller::Controller};

/// An API server that knows the tokens `reader` and `other`, of which only the first may read metrics.
async fn reviews(count: &Arc<AtomicUsize>, broken: bool) -> kube::Client {
    let count = count.clone();
    let config = stub::serve(move |request: Request| {
        let count = count.clone();
        async move {
            if broken {
                return stub::status(403, "Forbidden");
            }
            count.fetch_add(1, Ordering::SeqCst);
            let path = request.uri().path().to_owned();
            let mut body = stub::json(request).await;
            body["status"] = if path.ends_with("/tokenreviews") {
                let token = body["spec"]["token"].as_str().unwrap().to_owned();
                let is_known = ["reader", "other"].contains(&token.as_str());
                json!({"authenticated": is_known, "user": {"username": token, "groups": ["g"]}})
            } else {
                assert!(path.ends_with("/subjectaccessreviews"), "{path}");
                let wanted = json!({"path": "/metrics", "verb": "get"});
                assert_eq!(body["spec"]["nonResourceAttributes"], wanted);
                assert_eq!(body["spec"]["groups"], json!(["g"]));
                json!({"allowed": body["spec"]["user"] == "reader"})
            };
            stub::answer(201, &body)
        }
        .boxed()
    })
    .await;
    kube::Client::try_from(config).unwrap()
}

async fn get(address: SocketAddr, authorization: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", address.port()))
        .await
        .unwrap();
    let request =
        format!("GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn served(client: kube::Client) -> SocketAddr {
    let access = MetricsAccess {
        tls: None,
        authorizer: Some(Arc::new(MetricsAuthorizer::new(client))),
    };
    let any = ":0".parse().unwrap();
    let servers = start(
        (&any, stub::metrics(), access),
        (&BindAddress::Off, Arc::new(Readiness::default())),
        CancellationToken::new(),
    );
    let servers = servers.await.unwrap();
    let address = servers.metrics.unwrap();
    tokio::spawn(servers.ended());
    address
}

#[tokio::test]
async fn the_api_server_decides_who_may_read_metrics() {
    let count = Arc::new(AtomicUsize::new(0));
    let address = served(reviews(&count, false).await).await;
    for (authorization, code) in [
        ("", 401),
        ("Authorization: Basic reader\r\n", 401),
        ("Authorization: Bearer\r\n", 401),
        ("Authorization: Bearer nobody\r\n", 401),
        ("Authorization: Bearer other\r\n", 403),
        ("Authorization: Bearer reader\r\n", 200),
        ("Authorization: bearer reader\r\n", 200),
    ] {
        let answer = get(address, authorization).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {code} ")),
            "{authorization}: {answer}"
        );
        assert_eq!(code == 200, answer.contains("trainyard_leader"), "{answer}");
        assert_eq!(
            code == 401,
            answer.contains("www-authenticate: Bearer"),
            "{answer}"
        );
    }
    // One TokenReview for each token, and a SubjectAccessReview for each user.
    assert_eq!(count.load(Ordering::SeqCst), 5);
    let long = format!("Authorization: Bearer {}\r\n", "a".repeat(9 << 10));
    assert!(get(address, &long).await.starts_with("HTTP/1.1 401 "));
    assert_eq!(count.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn invented_tokens_do_not_displace_the_answers_about_others() {
    let count = Arc::new(AtomicUsize::new(0));
    let address = served(reviews(&count, false).await).await;
    let reader = "Authorization: Bearer reader\r\n";
    assert!(get(address, reader).await.contains(" 200 "));
    for index in 0..600 {
        let answer = get(address, &format!("Authorization: Bearer x{index}\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    }
    let asked = count.load(Ordering::SeqCst);
    assert!(get(address, reader).await.contains(" 200 "));
    assert_eq!(count.load(Ordering::SeqCst), asked);
}

#[tokio::test]
async fn nobody_may_read_metrics_if_the_api_server_does_not_answer() {
    let address = served(reviews(&Arc::default(), true).await).await;
    for _ in 0..2 {
        let answer = get(address, "Authorization: Bearer reader\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
        assert!(
            answer.ends_with("the API server did not say whether the user may get metrics"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn protection_without_a_certificate_is_a_startup_error() {
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    for (secure_serving, auth, wanted) in [
        (
            SecureServing::Always,
            false,
            "metrics.secureServing: it requires a certificate; ",
        ),
        (
            SecureServing::WithCertificate,
            true,
            "metrics.auth.enabled: it requires a certificate; ",
        ),
    ] {
        let settings = Settings {
            metrics_bind_address: BindAddress::Off,
            health_probe_bind_address: BindAddress::Off,
            metrics_secure_serving: secure_serving,
            metrics_auth: auth,
            ..Settings::default()
        };
        let cluster = Cluster::new();
        let controller = Controller::start_with(&cluster, settings, metrics, |_| Vec::new());
        let error = controller.await.ended().await.to_string();
        assert!(error.starts_with(wanted), "{error}");
    }
}
