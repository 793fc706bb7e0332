//! Probes and metrics are served at their addresses, each can be disabled, and an address in use is a startup error.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use trainyard_controller::serve::{
    BindAddress, MetricsAccess, Readiness, ServeError, Servers, start,
};

use crate::stub;

fn at(text: &str) -> BindAddress {
    text.parse().unwrap()
}

async fn started(
    metrics: &str,
    health: &str,
    readiness: &Arc<Readiness>,
    shutdown: &CancellationToken,
) -> Result<Servers, ServeError> {
    start(
        (&at(metrics), stub::metrics(), MetricsAccess::default()),
        (&at(health), Arc::clone(readiness)),
        shutdown.clone(),
    )
    .await
}

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", address.port()))
        .await
        .unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn process_is_ready_when_all_its_parts_are() {
    let shutdown = CancellationToken::new();
    let readiness = Arc::new(Readiness::new(&["trainjobs", "jobsets"]));
    let servers = started(":0", "127.0.0.1:0", &readiness, &shutdown)
        .await
        .unwrap();
    let (metrics, health) = (servers.metrics.unwrap(), servers.health.unwrap());
    assert!(get(health, "/healthz").await.starts_with("HTTP/1.1 200"));
    let answer = get(health, "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(
        answer.ends_with("not ready: jobsets, trainjobs"),
        "{answer}"
    );
    readiness.note_missing("jobsets", "install JobSet".to_owned());
    let answer = get(health, "/readyz").await;
    assert!(
        answer.ends_with("not ready: jobsets (install JobSet), trainjobs"),
        "{answer}"
    );
    readiness.set("trainjobs", true);
    assert!(get(health, "/readyz").await.starts_with("HTTP/1.1 503"));
    readiness.set("jobsets", true);
    assert!(get(health, "/readyz").await.starts_with("HTTP/1.1 200"));
    assert!(get(health, "/metrics").await.starts_with("HTTP/1.1 404"));

    let answer = get(metrics, "/metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{answer}"
    );
    assert!(
        answer.contains("trainyard_leader 0\n") && answer.ends_with("# EOF\n"),
        "{answer}"
    );

    shutdown.cancel();
    timeout(Duration::from_secs(10), servers.ended())
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn each_endpoint_can_be_disabled() {
    let readiness = Arc::new(Readiness::default());
    let shutdown = CancellationToken::new();
    let servers = started("0", "", &readiness, &shutdown).await.unwrap();
    assert_eq!((servers.metrics, servers.health), (None, None));
    servers.ended().await.unwrap();
    let servers = started("0", "127.0.0.1:0", &readiness, &shutdown)
        .await
        .unwrap();
    assert!(servers.metrics.is_none());
    assert!(
        get(servers.health.unwrap(), "/readyz")
            .await
            .starts_with("HTTP/1.1 200")
    );
}

#[tokio::test]
async fn address_in_use_is_a_startup_error() {
    let readiness = Arc::new(Readiness::default());
    let shutdown = CancellationToken::new();
    let servers = started(":0", "0", &readiness, &shutdown).await.unwrap();
    let taken = format!(":{}", servers.metrics.unwrap().port());
    let error = started("0", &taken, &readiness, &shutdown)
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("health probes: cannot listen on {taken}: ")),
        "{text}"
    );
}

#[test]
fn addresses_are_parsed_as_by_controller_runtime() {
    for off in ["0", ""] {
        assert_eq!(at(off), BindAddress::Off);
    }
    for (text, host, port) in [
        (":8080", "", 8080),
        ("0.0.0.0:1", "0.0.0.0", 1),
        ("localhost:65535", "localhost", 65535),
        ("[::1]:8081", "::1", 8081),
    ] {
        let host = host.to_owned();
        assert_eq!(at(text), BindAddress::At { host, port });
        assert_eq!(at(text).to_string(), text);
    }
    for wrong in [
        "8080", ":", ":65536", ":x", "::1:80", "[::1]", "[a]:80", "a:-1",
    ] {
        assert!(wrong.parse::<BindAddress>().is_err(), "{wrong}");
    }
}

/// Returns a connection that has sent half a request.
async fn half_sent(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", address.port()))
        .await
        .unwrap();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: ")
        .await
        .unwrap();
    stream
}

/// Whether the server has closed the connection.
fn is_closed(stream: &TcpStream) -> bool {
    match stream.try_read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

#[tokio::test]
async fn partial_requests_block_no_others_and_leak_no_file_descriptors() {
    const CONNECTIONS: usize = 64;
    let readiness = Arc::new(Readiness::default());
    let shutdown = CancellationToken::new();
    let servers = started("0", "127.0.0.1:0", &readiness, &shutdown)
        .await
        .unwrap();
    let health = servers.health.unwrap();
    let mut half_sent_ones = Vec::new();
    for _ in 0..2 * CONNECTIONS {
        half_sent_ones.push(half_sent(health).await);
    }
    assert!(get(health, "/healthz").await.starts_with("HTTP/1.1 200"));
    // The last ones wait for the rest of their request; all others were closed for them.
    let open = async || {
        loop {
            let open = half_sent_ones
                .iter()
                .filter(|stream| !is_closed(stream))
                .count();
            if open <= CONNECTIONS {
                return open;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(Duration::from_secs(60), open()).await.unwrap() <= CONNECTIONS);
    shutdown.cancel();
    // A client that sends half a request does not delay the shutdown for long either.
    timeout(Duration::from_secs(60), servers.ended())
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn unfinished_request_times_out() {
    let readiness = Arc::new(Readiness::default());
    let shutdown = CancellationToken::new();
    let servers = started(":0", "127.0.0.1:0", &readiness, &shutdown)
        .await
        .unwrap();
    for address in [servers.metrics.unwrap(), servers.health.unwrap()] {
        let mut stream = half_sent(address).await;
        let mut answer = String::new();
        // The paused clock advances only while nothing else happens: without a timer of the server this would wait for good.
        let read = timeout(
            Duration::from_secs(3_600),
            stream.read_to_string(&mut answer),
        );
        assert_eq!(read.await.unwrap().unwrap(), 0, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn idle_client_is_disconnected() {
    let readiness = Arc::new(Readiness::default());
    let shutdown = CancellationToken::new();
    let servers = started("0", "127.0.0.1:0", &readiness, &shutdown)
        .await
        .unwrap();
    let port = servers.health.unwrap().port();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    let read = timeout(
        Duration::from_secs(3_600),
        stream.read_to_string(&mut answer),
    );
    read.await.unwrap().unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"),
        "{answer}"
    );
}
