//! A minimal stub of an API server.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

pub(crate) mod clock;
pub(crate) mod cluster;
pub(crate) mod collector;
pub(crate) mod conditions;
pub(crate) mod controller;
pub(crate) mod declared;
#[path = "../../../../tests/common/function_plugin.rs"]
pub(crate) mod function_plugin;
pub(crate) mod log;
pub(crate) mod plugin;
pub(crate) mod progress;
pub(crate) mod replica;
pub(crate) mod train_job;
pub(crate) mod webhooks;

use std::sync::Arc;

use axum::{Router, extract::Request, response::Response};
use futures_util::future::BoxFuture;
use trainyard_controller::{
    metrics::Metrics,
    queue::{Backoff, Queue},
};

/// Serves on a free port for as long as the test lasts.
pub(crate) async fn serve<F>(handler: F) -> kube::Config
where
    F: Fn(Request) -> BoxFuture<'static, Response> + Clone + Send + Sync + 'static,
{
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let app = Router::new().fallback(move |request: Request| handler(request));
        axum::serve(listener, app).await.unwrap();
    });
    kube::Config::new(format!("http://{address}").parse().unwrap())
}

/// A client whose calls never leave the process, so that a test's clock may be paused.
pub(crate) fn client<F>(handler: F) -> kube::Client
where
    F: Fn(Request) -> BoxFuture<'static, Response> + Clone + Send + Sync + 'static,
{
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let answer = handler(request.map(axum::body::Body::new));
        async move { Ok::<_, std::convert::Infallible>(answer.await) }
    });
    kube::Client::new(service, "default")
}

/// The body of a request.
pub(crate) async fn json(request: Request) -> serde_json::Value {
    let bytes = axum::body::to_bytes(request.into_body(), 1 << 20)
        .await
        .unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// An answer.
pub(crate) fn answer(code: u16, body: &serde_json::Value) -> Response {
    Response::builder()
        .status(code)
        .header("content-type", "application/json")
        .body(body.to_string().into())
        .unwrap()
}

/// An error as the API server words it.
pub(crate) fn status(code: u16, reason: &str) -> Response {
    answer(
        code,
        &serde_json::json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure",
            "code": code, "reason": reason, "message": reason
        }),
    )
}

/// Metrics of a process with an empty queue.
pub(crate) fn metrics() -> Arc<Metrics> {
    Arc::new(Metrics::new(&Queue::new(Backoff::default())))
}
