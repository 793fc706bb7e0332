//! Forwards one call through the proxy.

use std::{convert::Infallible, error::Error, future, sync::Arc};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use kube::core::response::Status;
use serde_json::json;
use thiserror::Error;

use super::{
    Flow, Shared,
    rule::{Act, Call, writes},
};

/// The answer to a client.
pub(super) type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// The reason why a client gets no answer and its connection is closed.
#[derive(Debug, Error)]
pub(super) enum Closed {
    #[error("cut by the rule of a test")]
    Cut,
    #[error("no answer of the API server")]
    Upstream(#[from] hyper_util::client::legacy::Error),
    #[error("a call that cannot be forwarded")]
    Malformed(#[source] Box<dyn Error + Send + Sync>),
}

/// Handles a call by the rule.
pub(super) async fn handle(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Closed> {
    let (number, act) = decide(&shared, &request).await?;
    let response = match act {
        Act::Forward => forward(&shared, request).await?,
        Act::CutAfter(then) => {
            let answer = forward(&shared, request).await;
            // The client does not get the answer, even if parts of it have arrived.
            let mut state = shared.state.lock().await;
            shared.cut(&mut state, then).await;
            drop(answer);
            return Err(Closed::Cut);
        }
        Act::Answer(status) => answer(&status)?,
        Act::Hang => future::pending().await,
        Act::CutBefore(_) => return Err(Closed::Cut),
    };
    let mut state = shared.state.lock().await;
    // The recorded calls may have been cleared meanwhile.
    let call = state.calls.iter_mut().find(|call| call.number == number);
    if let Some(call) = call {
        call.answer = Some(response.status());
    }
    Ok(response)
}

/// Records the call and evaluates the rule. Actions that must precede all later calls run here.
async fn decide(shared: &Shared, request: &Request<Incoming>) -> Result<(usize, Act), Closed> {
    let mut state = shared.state.lock().await;
    let writes = writes(request.method());
    let path = request.uri().path_and_query().map(ToString::to_string);
    let written = state.calls.iter().filter_map(|call| call.write).max();
    let call = Call {
        number: state.calls.len() + 1,
        write: writes.then(|| written.unwrap_or_default() + 1),
        method: request.method().clone(),
        path: path.unwrap_or_default(),
        answer: None,
    };
    state.calls.push(call.clone());
    match (state.rule)(&call) {
        Act::CutBefore(then) => {
            shared.cut(&mut state, then).await;
            Err(Closed::Cut)
        }
        act => Ok((call.number, act)),
    }
}

async fn forward(
    shared: &Shared,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Closed> {
    let malformed = |error: http::Error| Closed::Malformed(error.into());
    let mut flow = shared.flow.subscribe();
    open(&mut flow).await;
    let mut uri = Uri::builder()
        .scheme("https")
        .authority(shared.upstream.as_str());
    if let Some(path) = request.uri().path_and_query() {
        uri = uri.path_and_query(path.clone());
    }
    let watching = is_watch(request.uri()).then(|| Arc::clone(&shared.watching));
    *request.uri_mut() = uri.build().map_err(malformed)?;
    let response = shared.client.request(request).await?;
    open(&mut flow).await;
    Ok(response.map(|body| {
        let frames = BodyStream::new(body).then(move |frame| {
            // It is counted until its answer is dropped.
            let _ = &watching;
            let mut flow = flow.clone();
            async move {
                open(&mut flow).await;
                frame
            }
        });
        StreamBody::new(frames).boxed_unsync()
    }))
}

fn is_watch(uri: &Uri) -> bool {
    let mut parameters = uri.query().unwrap_or_default().split('&');
    parameters.any(|parameter| matches!(parameter, "watch=true" | "watch=1"))
}

/// Waits while the proxy is hanging.
async fn open(flow: &mut tokio::sync::watch::Receiver<Flow>) {
    // Otherwise the proxy was dropped, and this call with it.
    let _ = flow.wait_for(|flow| *flow == Flow::Open).await;
}

fn answer(status: &Status) -> Result<Response<Body>, Closed> {
    let text = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "code": status.code,
        "reason": status.reason,
        "message": status.message,
        "details": status.details,
    });
    let code =
        StatusCode::from_u16(status.code).map_err(|error| Closed::Malformed(error.into()))?;
    let body = Full::new(Bytes::from(text.to_string())).map_err(|never: Infallible| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    let seconds = status.details.as_ref();
    if let Some(seconds) = seconds.map(|details| details.retry_after_seconds) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    Ok(response)
}
