//! The controller connects to a collector of OpenTelemetry only with an endpoint, from the flag or the standard environment variable, and
//! sends the rest of its spans when it stops.
#![cfg(unix)]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
};

use crate::common::{api_server::write_kubeconfig, command};

/// Returns a controller without an API server, whose calls fail.
fn controller(folder: &Path) -> Command {
    write_kubeconfig(folder, &[("none", "http://127.0.0.1:9")]);
    let mut controller = command(&[
        "controller",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
    ]);
    controller
        .arg("--kubeconfig")
        .arg(folder.join("kubeconfig"));
    controller.env_remove("TRAINYARD_LOG");
    controller.env_remove("OTEL_EXPORTER_OTLP_ENDPOINT");
    controller
}

/// Runs a controller until a call has failed, stops it, and returns its log.
fn run(mut controller: Command) -> String {
    let mut controller = controller.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(controller.stderr.take().unwrap()).lines();
    let mut log = String::new();
    for line in lines.by_ref().map_while(Result::ok) {
        log += &line;
        log.push('\n');
        if line.contains("failed; retrying") {
            break;
        }
    }
    let pid = controller.id().to_string();
    let signaled = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(signaled.success());
    log.extend(lines.map_while(Result::ok));
    let status = controller.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{status}: {log}");
    log
}

/// Returns a collector's listener and its URL.
fn collector() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

/// Reads a request, accepts it, and returns its head and its body.
fn accept(stream: TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).unwrap() > 2 {}
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    reader.get_mut().write_all(answer).unwrap();
    (head, body)
}

#[test]
fn spans_reach_the_collector_of_the_flag_or_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    for is_flag in [true, false] {
        let (listener, url) = collector();
        let mut controller = controller(folder.path());
        match is_flag {
            true => controller.arg(format!("--tracing-endpoint={url}")),
            false => controller.env("OTEL_EXPORTER_OTLP_ENDPOINT", url),
        };
        controller
            .env("HOSTNAME", "pod-0")
            .env(
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Bearer%20hidden",
            )
            .env("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=north");
        let server = std::thread::spawn(move || accept(listener.accept().unwrap().0));
        let log = run(controller);
        assert!(!log.contains("hidden"), "{log}");
        let (head, body) = server.join().unwrap();
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("authorization: Bearer hidden\r\n"), "{head}");
        let text = String::from_utf8_lossy(&body);
        for expected in ["trainyard-controller", "pod-0", "north", "api call"] {
            assert!(text.contains(expected), "no {expected}: {text:?}");
        }
    }
}

/// The variable of the library for spans alone does not turn the export on either.
#[test]
fn nothing_is_connected_without_an_endpoint() {
    let folder = tempfile::tempdir().unwrap();
    let (listener, url) = collector();
    let mut controller = controller(folder.path());
    controller
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "")
        .env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url);
    run(controller);
    listener.set_nonblocking(true).unwrap();
    let connected = listener.accept().map_err(|error| error.kind());
    assert_eq!(connected.unwrap_err(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn wrong_endpoints_are_refused_without_their_password() {
    let folder = tempfile::tempdir().unwrap();
    let url = "http://user:hidden@otel";
    for name in ["OTEL_EXPORTER_OTLP_ENDPOINT", "--tracing-endpoint"] {
        let mut controller = controller(folder.path());
        match name.starts_with('-') {
            true => controller.arg(format!("{name}={url}")),
            false => controller.env(name, url),
        };
        let output = controller.output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        let expected = format!("error: {name}: must be a URL without a user name");
        assert!(
            error.contains(&expected) && !error.contains("hidden"),
            "{error}"
        );
    }
}
