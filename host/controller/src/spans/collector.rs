//! The HTTP client for a collector. It is that of the API server, for another server and without its credentials, so TLS is the same.

use std::{
    error::Error,
    fmt,
    iter::successors,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use http_body_util::{BodyExt as _, Limited};
use kube::client::{Body, ClientBuilder};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::time::timeout;
use trainyard_model::text::clean_to;

use super::{Endpoint, SpanExportError};

/// The environment variable with the file of the authorities that are trusted.
const CERTIFICATE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";

/// The most bytes of an answer that are read, and how long they may take.
const LARGEST_ANSWER: usize = 64 << 10;
const ANSWER: Duration = Duration::from_secs(1);

/// The most characters of an error.
const LONGEST_ERROR: usize = 512;

/// The client.
pub(super) struct Collector {
    client: kube::Client,
    failure: LastFailure,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").finish_non_exhaustive()
    }
}

/// Why the last request had no answer. The library only says that the network failed.
#[derive(Debug, Clone, Default)]
pub(super) struct LastFailure(Arc<Mutex<Option<String>>>);

impl LastFailure {
    /// Returns it, once.
    pub(super) fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, error: &(dyn Error + 'static)) {
        let causes = successors(Some(error), |error| (*error).source());
        let mut texts: Vec<_> = causes.map(ToString::to_string).collect();
        // Many errors repeat their causes.
        texts.dedup_by(|cause, error| error.contains(&**cause));
        let text = clean_to(&texts.join(": "), LONGEST_ERROR);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }
}

/// Returns the client for a collector, and why its last request failed. Nothing is connected yet.
pub(super) fn connect(
    endpoint: &Endpoint,
    connect_timeout: Duration,
) -> Result<(Collector, LastFailure), SpanExportError> {
    let mut config = kube::Config::new(endpoint.server());
    config.connect_timeout = Some(connect_timeout);
    config.default_retry = false;
    if endpoint.is_tls() {
        config.root_cert_file = std::env::var_os(CERTIFICATE)
            .filter(|file| !file.is_empty())
            .map(Into::into);
    } else {
        // Without TLS, the certificates of the system are not needed, and images may have none.
        config.root_cert = Some(Vec::new());
    }
    let client = ClientBuilder::try_from(config).map_err(|source| SpanExportError::Client {
        endpoint: endpoint.clone(),
        source: Box::new(source),
    })?;
    let failure = LastFailure::default();
    let collector = Collector {
        client: client.build(),
        failure: failure.clone(),
    };
    Ok((collector, failure))
}

impl Collector {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.client.send(request.map(Body::from)).await?;
        let (parts, body) = answer.into_parts();
        // The status says whether the collector took the spans. Sent again because of a broken body, they would be there twice.
        let body = timeout(ANSWER, Limited::new(body, LARGEST_ANSWER).collect()).await;
        let body = match body {
            Ok(Ok(body)) => body.to_bytes(),
            _ => Bytes::new(),
        };
        Ok(Response::from_parts(parts, body))
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // Only the last attempt says why a batch was not accepted.
        self.failure.take();
        let answered = self.send(request).await;
        answered.inspect_err(|error| self.failure.set(&**error))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    fn request(endpoint: &Endpoint) -> Request<Bytes> {
        let request = Request::post(endpoint.traces());
        request.body(Bytes::from_static(b"spans")).unwrap()
    }

    #[tokio::test]
    async fn an_answer_replaces_the_failure_of_an_earlier_attempt() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let endpoint: Endpoint = url.parse().unwrap();
        let server = async {
            drop(listener.accept().await.unwrap());
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await.unwrap();
            let answer = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            stream
        };
        let (collector, failure) = connect(&endpoint, Duration::from_secs(60)).unwrap();
        let client = async {
            assert!(collector.send_bytes(request(&endpoint)).await.is_err());
            assert!(failure.0.lock().unwrap().is_some());
            let answer = collector.send_bytes(request(&endpoint)).await.unwrap();
            assert_eq!(answer.status(), 401);
            assert_eq!(failure.take(), None);
        };
        tokio::join!(server, client);
    }
}
