//! Where the calls of clients go.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;
use tower::{BoxError, Service};

/// What a service in this process answers.
pub type InProcessAnswer = BoxFuture<'static, Result<Response<axum::body::Body>, BoxError>>;

/// An API server.
#[derive(Clone)]
pub enum ApiServer {
    /// The one that a configuration names, over the network.
    Remote(Box<kube::Config>),
    /// A service in this process. A paused clock does not wait for a network, so tests of failures and timeouts use one.
    InProcess(InProcess),
}

impl ApiServer {
    /// Returns the default namespace, in which the controller keeps its own objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        match self {
            Self::Remote(config) => &config.default_namespace,
            Self::InProcess(service) => &service.namespace,
        }
    }
}

impl From<kube::Config> for ApiServer {
    fn from(config: kube::Config) -> Self {
        Self::Remote(Box::new(config))
    }
}

/// A service in this process that answers calls.
#[derive(Clone)]
pub struct InProcess {
    namespace: Arc<str>,
    answer: Arc<dyn Fn(Request<Body>) -> InProcessAnswer + Send + Sync>,
}

impl InProcess {
    /// Returns a service with this default namespace.
    pub fn new(
        namespace: &str,
        answer: impl Fn(Request<Body>) -> InProcessAnswer + Send + Sync + 'static,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            answer: Arc::new(answer),
        }
    }

    pub(super) fn namespace(&self) -> String {
        self.namespace.to_string()
    }
}

impl Service<Request<Body>> for InProcess {
    type Response = Response<axum::body::Body>;
    type Error = BoxError;
    type Future = InProcessAnswer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> InProcessAnswer {
        (self.answer)(request)
    }
}
