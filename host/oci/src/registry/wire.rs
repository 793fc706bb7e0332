//! Requests and answers: redirects, limits, and the authorization that each request has.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{
    HeaderMap, Method, Request, StatusCode, Uri,
    header::{self, HeaderName, HeaderValue},
};
use tokio::time::timeout;
use trainyard_text::clean;
use zeroize::Zeroizing;

use super::endpoint::{Endpoint, resolved};
use crate::{
    credentials::Credentials,
    error::{Problem, RegistryError},
    limits::{ANSWER_BYTES, Limits, REDIRECTS},
    progress::Progress,
    transport::{Answer, Transport, TransportError, Upload, host, shown_url, with_length},
};

/// The most bytes of an upload that takes no longer than the answer to it.
const QUICK: usize = 64 << 10;

/// The name with which this program introduces itself.
const USER_AGENT: &str = concat!("trainyard/", env!("CARGO_PKG_VERSION"));

/// What all repositories share.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) limits: Limits,
    /// The authorization that each repository accepted last.
    pub(super) authorizations: Mutex<HashMap<String, Authorization>>,
}

/// What authorizes requests.
#[derive(Clone, Debug)]
pub(super) struct Authorization {
    pub(super) value: HeaderValue,
    /// Whether it is a user's, and not the token that everybody gets.
    pub(super) is_of_user: bool,
}

impl Authorization {
    /// Whether a text contains the credential, or the password in it.
    fn is_in(&self, text: &str) -> bool {
        let value = self.value.to_str().unwrap_or_default();
        let credential = value.split_once(' ').map_or(value, |(_, rest)| rest);
        let decoded = STANDARD.decode(credential).map(Zeroizing::new);
        let password = decoded.as_ref().ok().and_then(|bytes| {
            let text = std::str::from_utf8(bytes).ok()?;
            text.split_once(':').map(|(_, password)| password)
        });
        let secrets = [Some(credential), password].into_iter().flatten();
        let mut secrets = secrets.filter(|secret| !secret.is_empty());
        secrets.any(|secret| text.contains(secret))
    }
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) upload: Upload,
}

impl Call {
    pub(super) const fn new(method: Method, uri: Uri) -> Self {
        Self {
            method,
            uri,
            headers: Vec::new(),
            upload: Upload {
                bytes: Bytes::new(),
                progress: Progress::NONE,
            },
        }
    }

    pub(super) fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    pub(super) fn upload(self, bytes: Bytes, progress: Progress) -> Self {
        Self {
            upload: Upload { bytes, progress },
            ..self
        }
    }
}

/// The beginning of an answer.
pub(super) struct Received {
    answer: Answer,
    /// Where it came from, after redirects.
    pub(super) uri: Uri,
    /// Whether that is the registry itself.
    pub(super) is_own: bool,
    /// What was sent to it.
    sent: Option<Authorization>,
}

impl Received {
    /// Returns the answer of a host other than the registry.
    pub(super) const fn of(answer: Answer, uri: Uri) -> Self {
        Self {
            answer,
            uri,
            is_own: false,
            sent: None,
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.answer.status()
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        self.answer.headers()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name)?.to_str().ok()
    }

    /// Returns the length that the answer declares.
    pub(super) fn length(&self) -> Option<u64> {
        self.header(header::CONTENT_LENGTH.as_str())?.parse().ok()
    }
}

impl Wire {
    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        credentials: Credentials,
        limits: Limits,
    ) -> Self {
        Self {
            transport,
            credentials: Arc::new(credentials),
            limits,
            authorizations: Mutex::default(),
        }
    }

    pub(super) fn accepted(&self, key: &str) -> Option<Authorization> {
        let all = self.authorizations.lock();
        all.unwrap_or_else(PoisonError::into_inner)
            .get(key)
            .cloned()
    }

    pub(super) fn accept(&self, key: String, authorization: Authorization) {
        let all = self.authorizations.lock();
        all.unwrap_or_else(PoisonError::into_inner)
            .insert(key, authorization);
    }

    /// Sends a request, and follows redirects of requests that read. The authorization goes to the registry alone.
    pub(super) async fn exchange(
        &self,
        endpoint: &Endpoint,
        call: &Call,
        authorization: Option<&Authorization>,
    ) -> Result<Received, Problem> {
        let mut uri = call.uri.clone();
        let reads = matches!(call.method, Method::GET | Method::HEAD);
        for _ in 0..=REDIRECTS {
            let is_own = endpoint.has(&uri);
            let authorization = authorization.filter(|_| is_own);
            let value = authorization.map(|authorization| &authorization.value);
            let answer = self.send(call, &uri, value).await?;
            if !(reads && answer.status().is_redirection()) {
                return Ok(Received {
                    answer,
                    uri,
                    is_own,
                    sent: authorization.cloned(),
                });
            }
            uri = redirect(endpoint, &uri, answer.headers())?;
        }
        Err(RegistryError::Redirects {
            host: endpoint.host(),
            limit: REDIRECTS,
        }
        .into())
    }

    /// Sends a request to one host.
    pub(super) async fn send(
        &self,
        call: &Call,
        uri: &Uri,
        authorization: Option<&HeaderValue>,
    ) -> Result<Answer, Problem> {
        let mut request = Request::new(call.upload.clone());
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = uri.clone();
        let headers = request.headers_mut();
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        headers.extend(call.headers.iter().cloned());
        if let Some(authorization) = authorization {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        let request = with_length(request);
        // The answer to an upload begins when all of it was sent.
        let after = if call.upload.bytes.len() <= QUICK {
            self.limits.answer
        } else {
            self.limits.total
        };
        let answer = timeout(after, self.transport.send(request)).await;
        let silent = |_| TransportError::Silent {
            host: host(uri),
            after,
        };
        Ok(answer.map_err(silent)??)
    }

    /// Reads the rest of an answer, up to a limit.
    pub(super) async fn read(
        &self,
        received: Received,
        what: &'static str,
        limit: u64,
        progress: &Progress,
    ) -> Result<Vec<u8>, Problem> {
        let host = host(&received.uri);
        let mut body = received.answer.into_body();
        let mut bytes = Vec::new();
        let after = self.limits.answer;
        loop {
            let piece = timeout(after, body.next()).await;
            let piece = piece.map_err(|_| TransportError::Silent {
                host: host.clone(),
                after,
            })?;
            let Some(piece) = piece else {
                return Ok(bytes);
            };
            let piece = piece?;
            // What is refused was sent, too.
            progress.advance(piece.len());
            if (bytes.len() + piece.len()) as u64 > limit {
                return Err(RegistryError::TooLarge { host, what, limit }.into());
            }
            bytes.extend_from_slice(&piece);
        }
    }

    /// Returns the error of an answer that is not the expected one.
    pub(super) async fn refused(&self, received: Received, what: String) -> Problem {
        let (status, host) = (received.status(), host(&received.uri));
        if status == StatusCode::NOT_FOUND {
            return RegistryError::NotFound { host, what }.into();
        }
        // Where a registry redirects to is not the registry, whose messages are for users.
        let message = if received.is_own {
            let sent = received.sent.clone();
            let body = self
                .read(received, "an error", ANSWER_BYTES, &Progress::NONE)
                .await;
            let message = body.ok().and_then(|body| message(&body));
            // Some registries repeat what they got.
            message.filter(|text| !sent.is_some_and(|sent| sent.is_in(text)))
        } else {
            None
        };
        let message = message.map_or_else(String::new, |message| format!(": {}", clean(&message)));
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            RegistryError::Unavailable {
                host,
                status,
                message,
            }
        } else {
            RegistryError::Refused {
                host,
                status,
                message,
            }
        }
        .into()
    }
}

/// Returns where a redirect leads, if it may be followed.
fn redirect(endpoint: &Endpoint, from: &Uri, headers: &HeaderMap) -> Result<Uri, RegistryError> {
    let location = headers.get(header::LOCATION);
    let location = location
        .and_then(|location| location.to_str().ok())
        .unwrap_or_default();
    let failure = |reason| RegistryError::Redirect {
        host: host(from),
        to: shown_url(location),
        reason,
    };
    let uri = resolved(from, location).ok_or_else(|| failure("it is not a URL"))?;
    match uri.scheme_str() {
        _ if endpoint.may_send_to(&uri) => Ok(uri),
        Some("http") => Err(failure("it is not https")),
        _ => Err(failure("it is neither https nor http")),
    }
}

/// Returns the message of a registry's error.
fn message(body: &[u8]) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let error = body.get("errors")?.get(0)?;
    let text = |name| error.get(name).and_then(serde_json::Value::as_str);
    text("message").or(text("code")).map(str::to_owned)
}
