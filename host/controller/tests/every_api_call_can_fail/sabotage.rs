//! Faults in the controller, which the tests have to find. They are made between the controller and the API server.

use axum::{
    body::{Body, to_bytes},
    response::Response,
};
use futures_util::FutureExt as _;
use http::{Method, Request, StatusCode};
use serde_json::Value;
use trainyard_controller::client::InProcess;

use crate::stub::{answer, cluster::Cluster};

/// A fault in the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sabotage {
    /// It writes a Secret after the JobSet.
    SecretLast,
    /// It goes on after a conflict.
    IgnoresConflicts,
    /// It creates an object under another name if the answer to a creation was lost.
    CreatesTwice,
}

/// Longer than it takes to create a JobSet.
const LATER: std::time::Duration = std::time::Duration::from_secs(5);

impl Sabotage {
    /// Returns the service with which a controller seems to have this fault.
    pub(super) fn between(self, cluster: &Cluster) -> InProcess {
        let cluster = cluster.clone();
        InProcess::new("default", move |request| {
            let cluster = cluster.clone();
            async move { self.answer(cluster, request.map(Body::new)).await }.boxed()
        })
    }

    async fn answer(
        self,
        cluster: Cluster,
        request: Request<Body>,
    ) -> Result<Response, tower::BoxError> {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await?;
        let again = |body: Vec<u8>| Request::from_parts(parts.clone(), Body::from(body));
        let is_secret = parts.method == Method::POST && parts.uri.path().ends_with("/secrets");
        let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
        if self == Self::SecretLast && is_secret {
            let later = again(body.to_vec());
            tokio::spawn(async move {
                tokio::time::sleep(LATER).await;
                drop(cluster.answer(later).await);
            });
            return Ok(answer(201, &sent));
        }
        let answered = cluster.answer(again(body.to_vec())).await?;
        let code = answered.status();
        if self == Self::IgnoresConflicts && code == StatusCode::CONFLICT {
            let read = Request::get(parts.uri.clone()).body(Body::empty())?;
            return Ok(cluster.answer(read).await?);
        }
        if self == Self::CreatesTwice && is_secret && code.is_server_error() {
            let mut second = sent;
            let name = second["metadata"]["name"].as_str().unwrap_or_default();
            second["metadata"]["name"] = format!("{name}-2").into();
            return Ok(cluster
                .answer(again(second.to_string().into_bytes()))
                .await?);
        }
        Ok(answered)
    }
}
