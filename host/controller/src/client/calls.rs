//! The service beneath the client: it limits, bounds and counts calls.

use std::{
    borrow::Cow,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Bytes, HttpBody};
use governor::DefaultDirectRateLimiter;
use http::{Method, Request, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Either, Full, Limited};
use kube::client::Body;
use tokio::time::{Instant, timeout_at};
use tower::{BoxError, Service};
use tracing::Instrument as _;

use super::{Access, LARGEST_ANSWER, NoAnswer, NotSent, WATCH_START, Watching};
use crate::{metrics::Metrics, spans, wire};

/// A service that limits and counts the calls of the client below it.
#[derive(Debug, Clone)]
pub(super) struct BoundedService<S> {
    pub(super) inner: S,
    pub(super) answer: Duration,
    pub(super) list: Duration,
    pub(super) access: Access,
    pub(super) limiter: Option<Arc<DefaultDirectRateLimiter>>,
    pub(super) metrics: Arc<Metrics>,
}

pub(super) type Answer<B> = Response<Either<Full<Bytes>, B>>;

impl<S, B> Service<Request<Body>> for BoundedService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Answer<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let call = Call::of(&request);
        let path = request.uri().path().to_owned();
        if self.access == Access::Read && *request.method() != Method::GET {
            let verb = call.verb;
            return Box::pin(async move { Err(NotSent { verb, path }.into()) });
        }
        let after = match call.verb {
            WATCH => WATCH_START.max(self.answer),
            LIST_VERB => self.list,
            _ => self.answer,
        };
        // The future is lazy: nothing is sent before it is polled.
        let answer = self.inner.call(request);
        let limiter = self.limiter.clone();
        let metrics = Arc::clone(&self.metrics);
        let span = tracing::trace_span!(
            "api call",
            otel.kind = "client",
            verb = call.verb,
            kind = call.kind
        );
        let ending = span.clone();
        let answered = async move {
            if let Some(limiter) = limiter {
                limiter.until_ready().await;
            }
            let no_answer = |_| NoAnswer {
                verb: call.verb,
                path: path.clone(),
                after,
            };
            let deadline = Instant::now() + after;
            let answer: Result<_, BoxError> = match timeout_at(deadline, answer).await {
                Ok(answer) => answer.map_err(Into::into),
                Err(elapsed) => Err(no_answer(elapsed).into()),
            };
            let code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
            metrics.api_called(call.verb, &call.kind, code);
            match code {
                Some(code) => spans::end(&ending, ("code", i64::from(code)), code >= 500),
                None => spans::end(&ending, ("code", "<error>"), true),
            }
            let answer = answer?;
            if call.verb == WATCH {
                return Ok(answer.map(Either::Right));
            }
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, LARGEST_ANSWER).collect();
            let body = timeout_at(deadline, body).await;
            let body = body.map_err(no_answer)??.to_bytes();
            // Lists are split into objects first.
            let body = if call.verb == LIST_VERB {
                body
            } else {
                without_managed_fields(body)
            };
            Ok(Response::from_parts(parts, Either::Left(Full::new(body))))
        };
        Box::pin(answered.instrument(span))
    }
}

/// Returns an object without its managed fields, and any other text unchanged.
fn without_managed_fields(body: Bytes) -> Bytes {
    match std::str::from_utf8(&body).map(wire::without_managed_fields) {
        Ok(Cow::Owned(cut)) => cut.into(),
        _ => body,
    }
}

const WATCH: &str = "watch";
const LIST_VERB: &str = "list";

/// The verb and resource of a request, as in RBAC.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) verb: &'static str,
    /// The plural with its subresource, such as `trainjobs/status`; `discovery` for a path without a kind.
    pub(super) kind: String,
}

impl Call {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let parts: Vec<&str> = request
            .uri()
            .path()
            .split('/')
            .filter(|part| !part.is_empty())
            .collect();
        let below = match parts.as_slice() {
            ["api", _, below @ ..] | ["apis", _, _, below @ ..] => below,
            _ => &[],
        };
        let (kind, name) = match below {
            ["namespaces", _, plural] => ((*plural).to_owned(), None),
            // A subresource of a namespace has the same path as a kind in it.
            ["namespaces", _, plural, name] => ((*plural).to_owned(), Some(*name)),
            ["namespaces", _, plural, name, sub @ ..] => {
                (format!("{plural}/{}", sub.join("/")), Some(*name))
            }
            [plural] => ((*plural).to_owned(), None),
            [plural, name] => ((*plural).to_owned(), Some(*name)),
            [plural, name, sub @ ..] => (format!("{plural}/{}", sub.join("/")), Some(*name)),
            [] => ("discovery".to_owned(), Some("")),
        };
        let verb = verb(request, name.is_some());
        Self { verb, kind }
    }
}

fn verb<B>(request: &Request<B>, named: bool) -> &'static str {
    match *request.method() {
        Method::GET if request.extensions().get::<Watching>().is_some() => WATCH,
        Method::GET if named => "get",
        Method::GET => LIST_VERB,
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => {
            let media = request.headers().get(CONTENT_TYPE);
            if media.is_some_and(|media| media.as_bytes().starts_with(b"application/apply-patch")) {
                "apply"
            } else {
                "patch"
            }
        }
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => "other",
    }
}
