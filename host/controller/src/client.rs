//! How the process talks to the API server: own timeouts, no hidden retries, every call counted.
//!
//! kube's own client retries 429, 503 and 504 fifteen times with up to 1,000 s between, and waits
//! for an answer forever. Here a call that fails, fails soon, and who called it decides when to try
//! again.

use std::{
    borrow::Cow,
    future::Future,
    num::NonZeroU32,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Bytes, HttpBody};
use governor::{DefaultDirectRateLimiter, Quota};
use http::{
    Method, Request, Response,
    header::{ACCEPT, CONTENT_TYPE, HeaderValue},
};
use http_body_util::{BodyExt as _, Either, Full, Limited};
use kube::{
    client::{Body, ClientBuilder},
    core::Status,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use thiserror::Error;
use tokio::time::{Instant, timeout_at};
use tower::{BoxError, Service};
use trainyard_model::text::clean;

use crate::{metrics::Metrics, wire};

/// How long a connection, and then the whole answer to a call, may take unless told otherwise.
const ANSWER: Duration = Duration::from_secs(10);

/// How long a page of a list may take: it is larger than other answers.
const LIST: Duration = Duration::from_secs(60);

/// The most bytes of an answer that is held in memory. The largest object that an API server stores is a fraction of it, and of a
/// list a smaller page is asked for instead.
const LARGEST_ANSWER: usize = 64 << 20;

/// How long the start of a watch may take. Once it runs it has no deadline here: who reads it ends one that hangs.
const WATCH_START: Duration = Duration::from_secs(30);

/// What a client is held to.
#[derive(Debug, Clone, Copy)]
pub struct ClientOptions {
    /// How long a connection, and then the whole answer to a call, may take. Watches have no end, only their start is bounded.
    pub answer: Duration,
    /// The same for a page of a list.
    pub list: Duration,
    /// How many calls it makes; without it as many as it is asked to.
    pub rate: Option<Rate>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            answer: ANSWER,
            list: LIST,
            rate: None,
        }
    }
}

/// How many calls a client makes.
#[derive(Debug, Clone, Copy)]
pub struct Rate(Quota);

impl Rate {
    /// So many calls a second, and so many at once after a pause (at least one); none where `qps` is no positive number.
    #[must_use]
    pub fn new(qps: f64, burst: u32) -> Option<Self> {
        if qps <= 0.0 {
            return None;
        }
        let period = Duration::try_from_secs_f64(1.0 / qps).ok()?;
        let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
        // A rate beyond one call a nanosecond is none.
        Some(Self(Quota::with_period(period)?.allow_burst(burst)))
    }
}

/// Why there is no client.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The configuration (certificates, credentials, proxy) is of no use.
    #[error("the API server can't be reached with this configuration: {0}")]
    Configuration(#[source] Box<kube::Error>),
}

/// A call that was not answered in time. It arrives as the source of a `kube::Error::Service`.
#[derive(Debug, Error)]
#[error("{verb} {path}: no answer from the API server within {after:?}")]
pub struct NoAnswer {
    /// The verb, as in RBAC; server-side apply is `apply`.
    pub verb: &'static str,
    /// The path that was called.
    pub path: String,
    /// How long it was waited for.
    pub after: Duration,
}

/// The call that was not answered in time, if that is what is wrong.
pub(crate) fn no_answer(error: &kube::Error) -> Option<&NoAnswer> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// Whether a call may go well when it is made again: there was no answer, or the server is too busy or broken.
#[must_use]
pub fn is_transient(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_) => true,
        _ => false,
    }
}

/// The error without what an answer holds: one that can't be decoded is quoted by serde_json, a whole value of any length.
pub(crate) fn without_content(error: kube::Error) -> kube::Error {
    match error {
        kube::Error::SerdeError(error) => {
            let place = format!(
                "the answer cannot be decoded at line {}, column {}",
                error.line(),
                error.column()
            );
            kube::Error::SerdeError(serde::de::Error::custom(place))
        }
        other => other,
    }
}

/// What an error says, for people: of an answer of the API server its message, which its own text has twice.
pub(crate) fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.message.is_empty() => {
            format!(
                "the API server answered {} {}",
                status.code,
                clean(&status.reason)
            )
        }
        kube::Error::Api(status) => clean(&status.message),
        other => other.to_string(),
    }
}

/// The most bytes of a refusal that is read: an object may be quoted in it.
const LARGEST_REFUSAL: usize = 64 << 10;

/// Creates an object that holds secrets. Of the answer, the metadata is asked for alone, and only the message of an error is read.
pub(crate) async fn created(
    client: &kube::Client,
    mut request: Request<Body>,
) -> Result<(), kube::Error> {
    let accept = HeaderValue::from_static(METADATA);
    request.headers_mut().insert(ACCEPT, accept);
    let answer = client.send(request).await?;
    let code = answer.status();
    if code.is_success() {
        return Ok(());
    }
    let body = answer.into_body().collect().await?.to_bytes();
    Err(refusal(code.as_u16(), &message(&body)))
}

fn message(body: &[u8]) -> String {
    if body.len() > LARGEST_REFUSAL {
        return format!("the answer has {} bytes, and is not shown", body.len());
    }
    match serde_json::from_slice::<Status>(body) {
        Ok(status) if !status.message.is_empty() => status.message,
        _ => String::from_utf8_lossy(body).trim().to_owned(),
    }
}

/// An answer of the API server by which it refuses a call.
pub(crate) fn refusal(code: u16, message: &str) -> kube::Error {
    kube::Error::Api(Status::failure(message, "").with_code(code).boxed())
}

/// The request of a watch, whose answer goes on: a client lets it take as long as it wants and be as large as it wants, and who reads
/// it has to bound it. Any other request is held to its deadline and to the largest answer, whatever its address asks for.
#[must_use]
pub fn watching<B>(mut request: Request<B>) -> Request<B> {
    request.extensions_mut().insert(Watching);
    request
}

/// What tells the request of a watch from any other.
#[derive(Debug, Clone, Copy)]
struct Watching;

/// The answer that holds an object's metadata and nothing else of it.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// What does not stand for itself in a path, beside letters and digits.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

/// A name as a segment of a path: the client library takes it as it is.
pub(crate) fn segment(name: &str) -> String {
    utf8_percent_encode(name, ESCAPED).to_string()
}

/// A client for that server, whose calls are counted.
///
/// # Errors
/// A configuration that is of no use.
pub fn client(
    mut config: kube::Config,
    options: ClientOptions,
    metrics: Arc<Metrics>,
) -> Result<kube::Client, ClientError> {
    config.default_retry = false;
    config.connect_timeout = Some(options.answer);
    config.write_timeout = Some(options.answer);
    // Bounded per call, below: this one would count for watches too.
    config.read_timeout = None;
    let limiter = options
        .rate
        .map(|Rate(quota)| Arc::new(DefaultDirectRateLimiter::direct(quota)));
    let builder = ClientBuilder::try_from(config)
        .map_err(|error| ClientError::Configuration(Box::new(error)))?;
    let layer = tower::layer::layer_fn(|inner| Watched {
        inner,
        answer: options.answer,
        list: options.list,
        limiter: limiter.clone(),
        metrics: Arc::clone(&metrics),
    });
    Ok(builder.with_layer(&layer).build())
}

/// Limits, bounds and counts the calls of the client below it.
#[derive(Debug, Clone)]
struct Watched<S> {
    inner: S,
    answer: Duration,
    list: Duration,
    limiter: Option<Arc<DefaultDirectRateLimiter>>,
    metrics: Arc<Metrics>,
}

type Answer<B> = Response<Either<Full<Bytes>, B>>;

impl<S, B> Service<Request<Body>> for Watched<S>
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
        let after = match call.verb {
            WATCH => WATCH_START.max(self.answer),
            LIST_VERB => self.list,
            _ => self.answer,
        };
        // Nothing is sent before this is polled.
        let answer = self.inner.call(request);
        let limiter = self.limiter.clone();
        let metrics = Arc::clone(&self.metrics);
        Box::pin(async move {
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
            let answer = answer?;
            if call.verb == WATCH {
                return Ok(answer.map(Either::Right));
            }
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, LARGEST_ANSWER).collect();
            let body = timeout_at(deadline, body).await;
            let body = body.map_err(no_answer)??.to_bytes();
            // The objects of a list are split first.
            let body = if call.verb == LIST_VERB {
                body
            } else {
                without_managed_fields(body)
            };
            Ok(Response::from_parts(parts, Either::Left(Full::new(body))))
        })
    }
}

/// The same object without its managed fields; any other text as it is.
fn without_managed_fields(body: Bytes) -> Bytes {
    match std::str::from_utf8(&body).map(wire::without_managed_fields) {
        Ok(Cow::Owned(cut)) => cut.into(),
        _ => body,
    }
}

const WATCH: &str = "watch";
const LIST_VERB: &str = "list";

/// What a request asks for, in RBAC's words.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    verb: &'static str,
    /// The plural, with its subresource: `trainjobs/status`. `discovery` for what names no kind.
    kind: String,
}

impl Call {
    fn of<B>(request: &Request<B>) -> Self {
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
            // Subresources of a namespace itself look like its kinds.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn call(method: &str, uri: &str) -> (&'static str, String) {
        let request = Request::builder().uri(uri);
        let request = match method {
            "WATCH" => watching(request.body(()).unwrap()),
            method => request.method(method).body(()).unwrap(),
        };
        let Call { verb, kind } = Call::of(&request);
        (verb, kind)
    }

    #[test]
    fn calls_have_the_verbs_and_kinds_of_rbac() {
        let jobs = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/a/trainjobs";
        for (method, uri, verb, kind) in [
            ("GET", jobs, "list", "trainjobs"),
            (
                "GET",
                &format!("{jobs}?&watch=true&limit=1"),
                "list",
                "trainjobs",
            ),
            (
                "WATCH",
                &format!("{jobs}?&watch=true&limit=1"),
                "watch",
                "trainjobs",
            ),
            ("GET", &format!("{jobs}/one"), "get", "trainjobs"),
            (
                "PATCH",
                &format!("{jobs}/one/status?"),
                "patch",
                "trainjobs/status",
            ),
            ("DELETE", jobs, "deletecollection", "trainjobs"),
            (
                "GET",
                "/apis/jobset.x-k8s.io/v1alpha2/jobsets?watch=1",
                "list",
                "jobsets",
            ),
            (
                "POST",
                "/api/v1/namespaces/a/configmaps?",
                "create",
                "configmaps",
            ),
            (
                "DELETE",
                "/api/v1/namespaces/a/secrets/b",
                "delete",
                "secrets",
            ),
            ("GET", "/api/v1/namespaces/a", "get", "namespaces"),
            (
                "GET",
                "/api/v1/namespaces?watch=false",
                "list",
                "namespaces",
            ),
            (
                "PUT",
                "/apis/coordination.k8s.io/v1/namespaces/a/leases/b",
                "update",
                "leases",
            ),
            (
                "GET",
                "/apis/trainer.kubeflow.org/v1alpha1",
                "get",
                "discovery",
            ),
            ("GET", "/version", "get", "discovery"),
        ] {
            assert_eq!(call(method, uri), (verb, kind.to_owned()), "{method} {uri}");
        }
    }

    #[test]
    fn a_name_stays_one_segment_of_a_path() {
        for (name, segment_of_it) in [
            ("job-1.a_b~c", "job-1.a_b~c"),
            ("system:admin", "system:admin"),
            ("a?watch=true&x=", "a%3Fwatch%3Dtrue%26x%3D"),
            ("../b%2F#é", "..%2Fb%252F%23%C3%A9"),
        ] {
            assert_eq!(segment(name), segment_of_it);
        }
    }

    #[test]
    fn an_error_quotes_nothing_of_an_answer() {
        let answer = format!(r#"{{"code": "{}"}}"#, "secret".repeat(1_000));
        let error = serde_json::from_str::<kube::core::Status>(&answer).unwrap_err();
        let quoting = kube::Error::SerdeError(error);
        assert!(quoting.to_string().contains("secretsecret"), "{quoting}");
        let error = without_content(quoting).to_string();
        assert!(
            !error.contains("secret") && error.contains("line 1, column"),
            "{error}"
        );
    }

    #[test]
    fn of_an_answer_the_message_alone_is_said() {
        let error = |message: &str| {
            kube::Error::Api(Status::failure(message, "Forbidden").with_code(403).boxed())
        };
        for (message, said_of_it) in [
            ("exceeded quota", "exceeded quota"),
            ("", "the API server answered 403 Forbidden"),
        ] {
            assert_eq!(said(&error(message)), said_of_it);
        }
    }

    #[test]
    fn a_refusal_is_read_up_to_a_bound() {
        let status = |message: &str| serde_json::json!({"message": message}).to_string();
        for (body, expected) in [
            (status("exceeded quota"), "exceeded quota"),
            (" no JSON ".to_owned(), "no JSON"),
            (status(""), r#"{"message":""}"#),
            (
                status(&"x".repeat(64 << 10)),
                "the answer has 65550 bytes, and is not shown",
            ),
        ] {
            assert_eq!(message(body.as_bytes()), expected);
        }
    }

    #[test]
    fn a_rate_is_a_positive_number() {
        for qps in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            assert!(Rate::new(qps, 1).is_none(), "{qps}");
        }
        assert!(Rate::new(0.5, 0).is_some());
    }
}
