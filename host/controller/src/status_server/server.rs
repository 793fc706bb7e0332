//! The HTTPS server.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};

use axum::{
    Extension, Router,
    extract::{Path, Request},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::FutureExt as _;
use governor::Quota;
use http::{
    StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER},
};
use kube::Client;
use serde_json::json;
use thiserror::Error;
use tokio::time::timeout;
use tracing::Instrument as _;
use trainyard_model::{names::is_dns_label, text::clean};

use super::{
    StatusServerSettings,
    authorizer::{AuthError, Authorizer, Target},
    update::StatusUpdate,
};
use crate::{
    client::{Rate, message_of},
    fair::FairSemaphore,
    keyed_limit::KeyedLimit,
    kubernetes::code,
    metrics::Metrics,
    queue::NamespacedName,
    reconcile::Stores,
    serve::{
        Peer,
        body::{self, BodyError},
        turns::Turns,
    },
    spans,
};

/// The path of the reference, which is that of the API server.
const PATH: &str =
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{name}/status";

/// The most bytes of a body, as in the reference.
const LARGEST: usize = 64 << 10;

/// How many bodies are in memory at once, and how many of one namespace. Only the bodies of authorized requests are read.
const BODIES: usize = 64;
const BODIES_OF_A_NAMESPACE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);

/// How long a client may take to send a body.
const BODY: Duration = Duration::from_secs(10);

/// How long a request may wait for its turn and for the API server. Clients give up after 10 seconds.
const ANSWER: Duration = Duration::from_secs(8);

/// How often one TrainJob may report: once per second, with bursts of ten. Clients report every five seconds at most.
const OF_A_TRAIN_JOB: Quota =
    Quota::per_second(NonZeroU32::MIN).allow_burst(NonZeroU32::MIN.saturating_add(9));

/// What the handlers of requests share.
pub(super) struct Server {
    client: Client,
    authorizer: Authorizer,
    bodies: FairSemaphore,
    of_train_jobs: KeyedLimit,
    /// The turns of namespaces to write.
    writes: Turns,
    /// What the watch knows of TrainJobs.
    stores: Arc<Stores>,
    metrics: Arc<Metrics>,
}

/// Why a request is not answered as its client wants.
#[derive(Debug, Error)]
enum RequestError {
    #[error("Not found")]
    NoSuchPath,
    #[error("Forbidden: {0}")]
    Forbidden(#[source] AuthError),
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error("Invalid payload: {0}")]
    Payload(#[source] serde_json::Error),
    /// What the API server says about the values.
    #[error("{0}")]
    Invalid(String),
    #[error("Train job not found")]
    Gone,
    #[error("{0}; report less often, or try again later")]
    Busy(&'static str),
    /// The API server does not answer, or refuses the controller.
    #[error("a call to the API server failed: {}", message_of(.0))]
    Api(#[source] kube::Error),
    #[error("Internal Server Error")]
    Panicked,
}

impl RequestError {
    /// Returns the code, and the reason as Kubernetes has it.
    const fn status(&self) -> (StatusCode, &'static str) {
        match self {
            Self::NoSuchPath | Self::Gone => (StatusCode::NOT_FOUND, "NotFound"),
            Self::Forbidden(_) => (StatusCode::FORBIDDEN, "Forbidden"),
            Self::Body(BodyError::TooLarge(_)) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge")
            }
            Self::Body(BodyError::TooSlow(_)) => (StatusCode::REQUEST_TIMEOUT, "Timeout"),
            Self::Body(_) | Self::Payload(_) | Self::Invalid(_) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "Invalid")
            }
            Self::Busy(_) => (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"),
            Self::Api(_) | Self::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
        }
    }
}

impl From<AuthError> for RequestError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Api(error) => Self::Api(error),
            error => Self::Forbidden(error),
        }
    }
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        let (code, reason) = self.status();
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            // Errors of clients of the API server may quote it.
            "message": match &self {
                Self::Api(_) => "Internal error".to_owned(),
                error => clean(&error.to_string()),
            },
            "reason": reason, "code": code.as_u16(),
        });
        let json = (CONTENT_TYPE, "application/json");
        if matches!(self, Self::Busy(_)) {
            if let Some(status) = status.as_object_mut() {
                status.insert("details".to_owned(), json!({"retryAfterSeconds": 5}));
            }
            return (code, [json, (RETRY_AFTER, "5")], status.to_string()).into_response();
        }
        (code, [json], status.to_string()).into_response()
    }
}

impl Server {
    pub(super) fn new(
        client: Client,
        settings: &StatusServerSettings,
        (stores, metrics): (Arc<Stores>, Arc<Metrics>),
    ) -> Self {
        Self {
            authorizer: Authorizer::new(client.clone()),
            client,
            bodies: FairSemaphore::new(BODIES, BODIES_OF_A_NAMESPACE),
            of_train_jobs: KeyedLimit::new(OF_A_TRAIN_JOB),
            writes: Turns::new(Rate::with_burst(settings.qps, settings.burst)),
            stores,
            metrics,
        }
    }

    pub(super) fn router(self: Arc<Self>) -> Router {
        let (server, other) = (self.clone(), self);
        let handler = async move |Extension(peer): Extension<Peer>,
                                  Path((namespace, name)): Path<(String, String)>,
                                  request: Request| {
            let [namespace, name] = [namespace, name].map(Into::into);
            let target = Target { namespace, name };
            let answered = AssertUnwindSafe(server.update(peer, &target, request)).catch_unwind();
            let answered = answered.await.unwrap_or(Err(RequestError::Panicked));
            server.answer(answered, Some(&target))
        };
        let unknown = async move || other.answer(Err(RequestError::NoSuchPath), None);
        Router::new()
            .route(PATH, post(handler))
            .method_not_allowed_fallback(unknown.clone())
            .fallback(unknown)
    }

    fn answer(
        &self,
        answered: Result<StatusUpdate, RequestError>,
        target: Option<&Target>,
    ) -> Response {
        let response = match answered {
            Ok(update) => {
                let json = (CONTENT_TYPE, "application/json");
                ([json], json!(update).to_string()).into_response()
            }
            Err(error) => {
                let Target { namespace, name } = target.cloned().unwrap_or_default();
                match &error {
                    // These are the controller's or the API server's fault.
                    RequestError::Api(_) | RequestError::Panicked => {
                        tracing::warn!(%namespace, %name, %error, "progress is not written");
                    }
                    // Anybody can cause as many of these as they want.
                    _ => tracing::debug!(%namespace, %name, %error, "progress is refused"),
                }
                error.into_response()
            }
        };
        self.metrics.status_updated(response.status().as_u16());
        response
    }

    /// Writes what a pod reports, and returns it.
    async fn update(
        &self,
        peer: Peer,
        target: &Target,
        request: Request,
    ) -> Result<StatusUpdate, RequestError> {
        body::length(&request, LARGEST)?;
        let Target { namespace, name } = target;
        // They become parts of paths.
        if !(is_dns_label(namespace) && is_dns_label(name)) {
            return Err(RequestError::NoSuchPath);
        }
        let header = request.headers().get(AUTHORIZATION);
        let header = header.and_then(|header| header.to_str().ok());
        let authorized = self.authorizer.authorize(peer, header, target);
        let authorized = timeout(ANSWER, authorized).await;
        let uid =
            authorized.map_err(|_| RequestError::Busy("too many tokens are being checked"))??;
        // Only pods whose token was checked leave a span, because anybody can send as many other requests, with any path, as they want.
        let (namespace, job) = (&**namespace, &**name);
        let span = tracing::trace_span!("status request", otel.kind = "server", namespace, job);
        let accepted = self
            .accept(target, request, &uid)
            .instrument(span.clone())
            .await;
        let code = accepted.as_ref().err();
        let code = code.map_or(StatusCode::OK, |error| error.status().0);
        spans::end(
            &span,
            ("code", i64::from(code.as_u16())),
            code.is_server_error(),
        );
        accepted
    }

    /// Writes what an authorized pod of the TrainJob with this UID reports, and returns it.
    async fn accept(
        &self,
        target: &Target,
        request: Request,
        uid: &str,
    ) -> Result<StatusUpdate, RequestError> {
        let Target { namespace, name } = target;
        let update = self.read(target, request).await?;
        if update.is_empty() {
            return Ok(update);
        }
        let train_job: Arc<str> = format!("{namespace}/{name}").into();
        if !self.of_train_jobs.allows(&train_job) {
            return Err(RequestError::Busy("the TrainJob has reported too often"));
        }
        let written = async {
            self.writes.take(namespace).await;
            // A pod may outlive its TrainJob, and another one may have its name by now.
            if !self.may_exist(target, uid) {
                return Err(RequestError::Gone);
            }
            let written = update.write(&self.client, (namespace, name)).await;
            written.map_err(refusal)
        };
        let written = timeout(ANSWER, written).await;
        let written = written.map_err(|_| RequestError::Busy("too much progress is reported"))?;
        if matches!(written, Err(RequestError::Gone)) {
            self.authorizer.forget(uid);
        }
        written.map(|()| update)
    }

    /// Whether the TrainJob with this UID may still exist. One that the watch does not know may.
    fn may_exist(&self, target: &Target, uid: &str) -> bool {
        let Target { namespace, name } = target.clone();
        let known = self.stores.jobs.get(&NamespacedName { namespace, name });
        known.is_none_or(|job| *job.uid == *uid)
    }

    /// Reads the body of an authorized request.
    async fn read(&self, target: &Target, request: Request) -> Result<StatusUpdate, RequestError> {
        let read = async {
            let _held = self.bodies.acquire(&target.namespace, 1).await;
            body::text(request, LARGEST).await
        };
        let text = timeout(BODY, read).await;
        let text = text.map_err(|_| BodyError::TooSlow(BODY.as_secs()))??;
        StatusUpdate::read(&text).map_err(RequestError::Payload)
    }
}

/// Returns why the API server has not written an update.
fn refusal(error: kube::Error) -> RequestError {
    match code(&error) {
        // The values are invalid.
        Some(400 | 422) => match error {
            kube::Error::Api(status) => RequestError::Invalid(status.message),
            error => RequestError::Api(error),
        },
        Some(404) => RequestError::Gone,
        Some(429) => RequestError::Busy("the API server is busy"),
        _ => RequestError::Api(error),
    }
}
