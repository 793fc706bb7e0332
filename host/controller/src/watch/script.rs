//! An API server for tests that gives the answers of a list, one after the other.
#![allow(clippy::unwrap_used)]

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::body::{Body, Bytes};
use futures_util::{StreamExt as _, stream};
use http::{Request, Response};
use kube::Client;

/// One answer.
pub(crate) struct Answer {
    code: u16,
    body: String,
    /// How long the body lasts.
    lasts: Duration,
}

impl Answer {
    pub(crate) fn ok(body: String) -> Self {
        Self {
            code: 200,
            body,
            lasts: Duration::ZERO,
        }
    }

    /// An error, as the API server words it.
    pub(crate) fn status(code: u16) -> Self {
        Self {
            code,
            body: format!(
                r#"{{"kind":"Status","status":"Failure","code":{code},"message":"{code}"}}"#
            ),
            lasts: Duration::ZERO,
        }
    }

    /// A watch that ends at the requested time.
    pub(crate) fn watch(body: String) -> Self {
        Self {
            code: 200,
            body,
            lasts: Duration::from_secs(60),
        }
    }

    /// A body that never ends.
    pub(crate) fn hangs(body: String) -> Self {
        Self {
            code: 200,
            body,
            lasts: Duration::MAX,
        }
    }
}

/// The text of a page of a list.
pub(crate) fn page(items: &[&str], version: u64, next: &str) -> String {
    format!(
        r#"{{"metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":[{}]}}"#,
        items.join(",")
    )
}

/// The remaining answers, and the requests so far. Requests after the last answer are not answered.
#[derive(Clone)]
pub(crate) struct Script {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Script {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            requests: Arc::default(),
        }
    }

    /// The path and query of each request.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// A client whose calls never leave the process, so that a test's clock may be paused.
    pub(crate) fn client(&self) -> Client {
        let script = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let script = script.clone();
            async move { Ok::<_, Infallible>(script.answer(request.uri().to_string()).await) }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, uri: String) -> Response<Body> {
        let answer = self.answers.lock().unwrap().pop_front();
        let Some(Answer { code, body, lasts }) = answer else {
            return std::future::pending().await;
        };
        self.requests.lock().unwrap().push(uri);
        let start = stream::iter([Ok::<_, Infallible>(Bytes::from(body))]);
        let end = stream::once(tokio::time::sleep(lasts)).map(|()| Ok(Bytes::new()));
        let body = Body::from_stream(start.chain(end));
        Response::builder().status(code).body(body).unwrap()
    }
}
