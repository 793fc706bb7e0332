//! The HTTPS server of the webhooks.

use std::{
    num::NonZeroUsize,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Extension, Router,
    extract::Request,
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::FutureExt as _;
use http::{StatusCode, header::CONTENT_TYPE};
use tokio::{sync::Semaphore, time::timeout};
use tracing::{Instrument as _, Span};

use super::{
    Webhook,
    checks::Checks,
    review::{Body, ReviewError},
};
use crate::{
    fair::FairSemaphore,
    metrics::Metrics,
    serve::{
        Peer,
        body::{self, BodyError},
    },
    spans,
    watch::decoded,
};

/// The most bytes of a body. A request has the object, and an update the stored one, too; the API server accepts 3 MiB of each. It is the
/// limit of controller-runtime.
const LARGEST: usize = 7 << 20;

/// The most bytes of all large bodies that are in memory at once. Parsed and compared, one takes up to about a hundred times as much memory.
const LARGE_BODIES: usize = 8 << 20;

/// The same of small bodies, which do not wait for large ones: those of one namespace could otherwise delay all others.
const SMALL_BODIES: usize = 4 << 20;

/// The most bytes of a small body.
const SMALL: usize = 64 << 10;

/// The bytes of one permit for bodies, which is also the least that a body counts.
const PERMIT: usize = 16 << 10;

/// How long a client may take to send a body, including the wait for others. An API server has given up by then.
const BODY: Duration = Duration::from_secs(10);

/// What the handlers of requests share.
pub(super) struct Server {
    checks: Checks,
    metrics: Arc<Metrics>,
    large: Room,
    small: Room,
}

/// The room for bodies of one size.
struct Room {
    /// A permit for each [`PERMIT`] bytes of bodies.
    bodies: Arc<Semaphore>,
    /// The places of clients that send bodies, for which they take turns by their address, so that slow ones do not delay others.
    readers: FairSemaphore,
}

impl Room {
    fn new(bytes: usize, (readers, share): (usize, NonZeroUsize)) -> Self {
        Self {
            bodies: Arc::new(Semaphore::new(bytes / PERMIT)),
            readers: FairSemaphore::new(readers, share),
        }
    }
}

/// Why a request has no verdict.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error(transparent)]
    Review(#[from] ReviewError),
    #[error("the check panicked; this is a bug in Trainyard, please report it with the object")]
    Panicked,
}

impl RequestError {
    const fn status(&self) -> StatusCode {
        match self {
            Self::Body(error) => error.status(),
            Self::Review(_) => StatusCode::BAD_REQUEST,
            Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl Server {
    pub(super) fn new(checks: Checks, metrics: Arc<Metrics>) -> Self {
        Self {
            checks,
            metrics,
            large: Room::new(LARGE_BODIES, (2, NonZeroUsize::MIN)),
            small: Room::new(SMALL_BODIES, (64, NonZeroUsize::MIN.saturating_add(31))),
        }
    }

    pub(super) fn router(self: Arc<Self>) -> Router {
        let mut router = Router::new();
        for webhook in Webhook::ALL {
            let server = self.clone();
            let handler = post(
                async move |Extension(peer): Extension<Peer>, request: Request| {
                    server.answer(webhook, (peer, request)).await
                },
            );
            router = router.route(webhook.path(), handler);
        }
        router
    }

    async fn answer(&self, webhook: Webhook, request: (Peer, Request)) -> Response {
        let started = Instant::now();
        let answered = AssertUnwindSafe(self.review(webhook, request)).catch_unwind();
        let name = webhook.name();
        let span = tracing::trace_span!("admission request", otel.kind = "server", webhook = name);
        let answered = answered.instrument(span.clone()).await;
        let answered = answered.unwrap_or(Err(RequestError::Panicked));
        let word = answered.as_ref().map_or("error", |(word, _)| word);
        spans::end(&span, ("verdict", word), answered.is_err());
        self.metrics.admitted(name, word, started.elapsed());
        match answered {
            Ok((_, answer)) => ([(CONTENT_TYPE, "application/json")], answer).into_response(),
            Err(error) => {
                tracing::warn!(webhook = name, %error, "a request to a webhook is not answered");
                (error.status(), error.to_string()).into_response()
            }
        }
    }

    /// Returns the answer to a request, with the word for its verdict.
    async fn review(
        &self,
        webhook: Webhook,
        (peer, request): (Peer, Request),
    ) -> Result<(&'static str, String), RequestError> {
        let read = async {
            let length = body::length(&request, LARGEST)?;
            let Room { bodies, readers } = match length <= SMALL {
                true => &self.small,
                false => &self.large,
            };
            let _reads = readers.acquire(&peer.key(), 1).await;
            let permits = u32::try_from(length.div_ceil(PERMIT).max(1)).unwrap_or(u32::MAX);
            // The semaphores are never closed.
            let held = bodies.clone().acquire_many_owned(permits).await.ok();
            let text = body::text(request, LARGEST).await?;
            Ok::<_, BodyError>((text, held))
        };
        let read = timeout(BODY, read)
            .await
            .map_err(|_| BodyError::TooSlow(BODY.as_secs()))?;
        let (text, held) = read?;
        // Decoding goes on if the client goes away, so it holds the permits.
        let body = decoded(text, move |text| (Body::read(webhook, text), held)).await;
        let (body, _held) = body.map_err(|_| RequestError::Panicked)?;
        let body = body?;
        let (namespace, name) = body.object();
        spans::note(&Span::current(), "namespace", namespace.to_owned());
        spans::note(&Span::current(), "name", name.to_owned());
        let verdict = self.checks.verdict(webhook, &body).await;
        Ok((verdict.word(), body.answer(verdict).to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_panics_is_reported_as_a_bug() {
        let error = RequestError::Panicked;
        assert_eq!(
            (error.status(), &*error.to_string()),
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the check panicked; this is a bug in Trainyard, please report it with the object"
            )
        );
    }
}
