//! The client of the API server: explicit timeouts, no hidden retries, every call counted.
//!
//! kube's own client retries 429, 503 and 504 fifteen times with up to 1,000 s in between, and has no read timeout. Here a call fails soon,
//! and the caller decides when to retry.

mod calls;
mod server;

use std::{error::Error, iter::successors, num::NonZeroU32, sync::Arc, time::Duration};

use axum::body::{Bytes, HttpBody};
use governor::{DefaultDirectRateLimiter, Quota};
use http::{
    Request, Response,
    header::{ACCEPT, HeaderValue},
};
use http_body_util::{BodyExt as _, LengthLimitError};
use kube::{
    client::{Body, ClientBuilder},
    core::Status,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use thiserror::Error;
use tower::{BoxError, Service};
use trainyard_model::text::clean;

use self::calls::BoundedService;
pub use self::server::{ApiServer, InProcess, InProcessAnswer};
use crate::metrics::Metrics;

/// The default timeout of a connection, and of the whole answer to a call.
const ANSWER: Duration = Duration::from_secs(10);

/// The timeout of a page of a list, which is larger than other answers.
const LIST: Duration = Duration::from_secs(60);

/// The most bytes of an answer in memory. Objects are much smaller; a page of a list that is larger is requested again with fewer objects.
const LARGEST_ANSWER: usize = 64 << 20;

/// The timeout for the start of a watch. A running watch has no deadline here; its reader ends one that hangs.
const WATCH_START: Duration = Duration::from_secs(30);

/// Whether the answer to a call had more than 64 MiB. A list can be requested again with fewer objects on a page.
#[must_use]
pub fn is_too_large(error: &kube::Error) -> bool {
    let causes = successors(Some(error as &dyn Error), |error| (*error).source());
    causes.into_iter().any(<dyn Error>::is::<LengthLimitError>)
}

/// The limits of a client.
#[derive(Debug, Clone, Copy)]
pub struct ClientOptions {
    /// The timeout of a connection, and of the whole answer to a call. For a watch it applies to the start.
    pub answer: Duration,
    /// The same for a page of a list.
    pub list: Duration,
    /// The rate limit; `None` for no limit.
    pub rate: Option<Rate>,
    /// Which calls are sent.
    pub access: Access,
}

/// Which calls a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Any.
    Any,
    /// Only those that read: `get`, `list` and `watch`. Any other call fails before it is sent.
    Read,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            answer: ANSWER,
            list: LIST,
            rate: None,
            access: Access::Any,
        }
    }
}

/// A rate limit of calls.
#[derive(Debug, Clone, Copy)]
pub struct Rate(Quota);

impl Rate {
    /// Returns a limit whose burst is by default twice the calls per second; `None` if `qps` is not positive.
    #[must_use]
    pub fn with_burst(qps: f64, burst: Option<u32>) -> Option<Self> {
        // The conversion saturates at the maximum of a u32.
        let twice = NonZeroU32::new((qps * 2.0).ceil() as u32);
        let burst = burst.and_then(NonZeroU32::new).or(twice);
        Self::new(qps, burst.map_or(1, NonZeroU32::get))
    }

    pub(crate) const fn quota(self) -> Quota {
        self.0
    }

    /// Returns a limit of `qps` calls per second and bursts of `burst` calls, but at least one; `None` if `qps` is not positive.
    #[must_use]
    pub fn new(qps: f64, burst: u32) -> Option<Self> {
        if qps <= 0.0 {
            return None;
        }
        let period = Duration::try_from_secs_f64(1.0 / qps).ok()?;
        let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
        // A rate of more than one call per nanosecond is no limit.
        Some(Self(Quota::with_period(period)?.allow_burst(burst)))
    }
}

/// Why a client cannot be created.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The configuration (certificates, credentials, proxy) is invalid.
    #[error("cannot connect to the API server with this configuration: {0}")]
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
    /// The timeout.
    pub after: Duration,
}

/// A call that writes, by a client that only reads. It was not sent. It arrives as the source of a `kube::Error::Service`.
#[derive(Debug, Error)]
#[error("{verb} {path}: not sent, because this command only reads; this is a bug of the program")]
pub struct NotSent {
    /// The verb, as in RBAC.
    pub verb: &'static str,
    /// The path that would have been called.
    pub path: String,
}

/// Returns the timeout among the causes of an error.
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

/// Whether a retry may succeed: there was no answer, or the API server is overloaded or failed internally.
#[must_use]
pub fn is_transient(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_) => true,
        _ => false,
    }
}

/// Returns the error without any content of the answer, which serde_json would quote.
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

/// Returns an error's message for users. `kube::Error` would show the message of the API server twice.
#[must_use]
pub fn message_of(error: &kube::Error) -> String {
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

/// The most bytes of a refusal that is parsed. It may quote an object.
const LARGEST_REFUSAL: usize = 64 << 10;

/// Writes an object that holds secrets. Requests only the metadata in the answer, and reads only the message of an error.
pub(crate) async fn written(
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
        return format!("the answer has {} bytes and is not shown", body.len());
    }
    match serde_json::from_slice::<Status>(body) {
        Ok(status) if !status.message.is_empty() => status.message,
        _ => String::from_utf8_lossy(body).trim().to_owned(),
    }
}

/// Returns an error as if the API server had refused a call with it.
pub(crate) fn refusal(code: u16, message: &str) -> kube::Error {
    kube::Error::Api(Status::failure(message, "").with_code(code).boxed())
}

/// Marks a request as a watch. Its answer has neither a deadline nor a size limit here, so its reader has to bound it. All other requests
/// have both, even if their query asks for a watch.
#[must_use]
pub fn watching<B>(mut request: Request<B>) -> Request<B> {
    request.extensions_mut().insert(Watching);
    request
}

/// The mark of a watch's request.
#[derive(Debug, Clone, Copy)]
struct Watching;

/// The media type of an answer with only the metadata of an object.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The characters that are escaped in a path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

/// Escapes a name, which may be a tenant's text, as a segment of a path. kube does not.
#[must_use]
pub fn segment(name: &str) -> String {
    utf8_percent_encode(name, ESCAPED).to_string()
}

/// Returns a client for that API server, whose calls are limited and counted.
///
/// # Errors
/// The configuration is invalid.
pub fn client(
    server: impl Into<ApiServer>,
    options: ClientOptions,
    metrics: Arc<Metrics>,
) -> Result<kube::Client, ClientError> {
    match server.into() {
        ApiServer::InProcess(service) => {
            let namespace = service.namespace();
            let builder = ClientBuilder::new(service, namespace);
            Ok(bounded(builder, options, metrics))
        }
        ApiServer::Remote(mut config) => {
            config.default_retry = false;
            config.connect_timeout = Some(options.answer);
            config.write_timeout = Some(options.answer);
            // Timeouts are set per call below; this one would apply to watches too.
            config.read_timeout = None;
            let builder = ClientBuilder::try_from(*config)
                .map_err(|error| ClientError::Configuration(Box::new(error)))?;
            Ok(bounded(builder, options, metrics))
        }
    }
}

/// Returns a client of a service, whose calls are limited and counted.
fn bounded<S, B>(
    builder: ClientBuilder<S>,
    options: ClientOptions,
    metrics: Arc<Metrics>,
) -> kube::Client
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let limiter = options
        .rate
        .map(|Rate(quota)| Arc::new(DefaultDirectRateLimiter::direct(quota)));
    let layer = tower::layer::layer_fn(|inner| BoundedService {
        inner,
        answer: options.answer,
        list: options.list,
        access: options.access,
        limiter: limiter.clone(),
        metrics: Arc::clone(&metrics),
    });
    builder.with_layer(&layer).build()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{calls::Call, *};

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
    fn only_the_message_of_an_answer_is_shown() {
        let error = |message: &str| {
            kube::Error::Api(Status::failure(message, "Forbidden").with_code(403).boxed())
        };
        for (message, shown) in [
            ("exceeded quota", "exceeded quota"),
            ("", "the API server answered 403 Forbidden"),
        ] {
            assert_eq!(message_of(&error(message)), shown);
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
                "the answer has 65550 bytes and is not shown",
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
