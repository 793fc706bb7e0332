//! Who may read metrics, by the API server's authentication and authorization.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Extension,
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{AUTHORIZATION, WWW_AUTHENTICATE},
};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::{Api, Client, api::PostParams};
use tokio::{sync::Semaphore, time::Instant};

use super::{Peer, bearer, turns::Turns};
use crate::{client::Rate, kubernetes::code};

/// How long an answer is used again. Rights that were taken away last for as long.
const ALLOWED: Duration = Duration::from_secs(60);
const REFUSED: Duration = Duration::from_secs(10);

/// The most answers that are cached.
const MOST: usize = 256;

/// The most questions to the API server at once, so that clients with invalid tokens do not load it.
const AT_ONCE: usize = 4;

/// The maximum rate of questions per second, and of their bursts. Clients take turns by their address.
const QUESTIONS: (f64, u32) = (20.0, 40);

/// What a client has to be allowed to get. The page of the shadow mode says as much as metrics.
const METRICS: &str = "/metrics";

/// Whether a client may read metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Allowed,
    Unknown,
    Forbidden,
}

/// Asks the API server about the tokens of clients.
pub struct MetricsAuthorizer {
    client: Client,
    /// By the digest of the token.
    answers: Mutex<HashMap<[u8; 32], (Verdict, Instant)>>,
    questions: Semaphore,
    turns: Turns,
}

impl fmt::Debug for MetricsAuthorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsAuthorizer").finish_non_exhaustive()
    }
}

impl MetricsAuthorizer {
    /// Returns an authorizer that asks with that client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            answers: Mutex::default(),
            questions: Semaphore::new(AT_ONCE),
            turns: Turns::new(Rate::new(QUESTIONS.0, QUESTIONS.1)),
        }
    }

    async fn verdict(&self, peer: Peer, headers: &HeaderMap) -> Result<Verdict, kube::Error> {
        let header = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let Some(token) = header.and_then(bearer::bearer) else {
            return Ok(Verdict::Unknown);
        };
        let digest = bearer::digest(token);
        if let Some(known) = self.known(&digest) {
            return Ok(known);
        }
        self.turns.take(&peer.key()).await;
        // The semaphore is never closed.
        let _question = self.questions.acquire().await.ok();
        if let Some(known) = self.known(&digest) {
            return Ok(known);
        }
        let verdict = self.ask(token).await?;
        self.remember(digest, verdict);
        Ok(verdict)
    }

    fn known(&self, digest: &[u8; 32]) -> Option<Verdict> {
        let (verdict, until) = *self.answers().get(digest)?;
        (Instant::now() < until).then_some(verdict)
    }

    fn remember(&self, digest: [u8; 32], verdict: Verdict) {
        let now = Instant::now();
        let lasts = match verdict {
            Verdict::Allowed => ALLOWED,
            Verdict::Unknown | Verdict::Forbidden => REFUSED,
        };
        let mut answers = self.answers();
        answers.retain(|_, (_, until)| now < *until);
        if answers.len() >= MOST {
            // Those that are allowed are kept: tokens that clients invent do not displace them.
            answers.retain(|_, (verdict, _)| *verdict == Verdict::Allowed);
        }
        if answers.len() < MOST {
            answers.insert(digest, (verdict, now + lasts));
        }
    }

    async fn ask(&self, token: &str) -> Result<Verdict, kube::Error> {
        let status = bearer::review(&self.client, token, None).await?;
        let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
            return Ok(Verdict::Unknown);
        };
        let access = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                groups: user.groups,
                uid: user.uid,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(METRICS.to_owned()),
                    verb: Some("get".to_owned()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews = Api::<SubjectAccessReview>::all(self.client.clone());
        let access = reviews.create(&PostParams::default(), &access).await?;
        Ok(match access.status {
            Some(status) if status.allowed => Verdict::Allowed,
            _ => Verdict::Forbidden,
        })
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<[u8; 32], (Verdict, Instant)>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers requests of clients that may read the path.
pub(super) async fn authorize(
    State(authorizer): State<std::sync::Arc<MetricsAuthorizer>>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    match authorizer.verdict(peer, request.headers()).await {
        Ok(Verdict::Allowed) => next.run(request).await,
        Ok(Verdict::Unknown) => {
            let bearer = [(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
            let text = "send the token of a ServiceAccount as `Authorization: Bearer TOKEN`";
            (StatusCode::UNAUTHORIZED, bearer, text).into_response()
        }
        Ok(Verdict::Forbidden) => {
            let text = format!("the user may not get the nonResourceURL {METRICS}");
            (StatusCode::FORBIDDEN, text).into_response()
        }
        Err(error) => {
            // Its message could quote the token.
            tracing::warn!(
                code = code(&error),
                "a client of metrics cannot be authorized; the controller has to create TokenReviews and SubjectAccessReviews"
            );
            let text = "the API server did not say whether the user may get metrics";
            (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        }
    }
}
