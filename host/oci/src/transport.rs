//! How requests are sent: HTTP/1.1 over TLS, with the machine's certificate authorities and the operator's.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, future::BoxFuture, stream};
use http::{Request, Response, header, uri::Authority};
use http_body_util::{BodyExt as _, Empty, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use thiserror::Error;
use trainyard_text::clean;

use crate::{progress::Progress, registries::Registries};

/// Docker Hub answers under another name.
pub(crate) const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// The size of the pieces in which content is sent, in bytes.
const PIECE: usize = 64 << 10;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum TransportError {
    /// The host does not exist, refuses connections, or has a certificate that is not trusted.
    #[error(
        "cannot reach {host}: {reason}; check the name, the network, and with --ca-file the certificate authority"
    )]
    Unreachable {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The answer broke off.
    #[error("the connection to {host} broke off: {reason}; try again")]
    BrokeOff {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The host does not answer, or not on.
    #[error(
        "{host} sent nothing for {after:?}; try again, or check whether the registry is overloaded"
    )]
    Silent {
        /// The host.
        host: String,
        /// The limit.
        after: Duration,
    },
}

/// The content of a request.
#[derive(Clone, Debug, Default)]
pub struct Upload {
    /// The content.
    pub bytes: Bytes,
    /// Gets what was sent.
    pub progress: Progress,
}

/// The content of an answer.
pub type AnswerBody = Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>;

/// An answer.
pub type Answer = Response<AnswerBody>;

/// Sends requests. It follows no redirects, and has no limits: the caller does.
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends a request, whose URI is absolute, and returns the beginning of the answer.
    fn send(&self, request: Request<Upload>) -> BoxFuture<'_, Result<Answer, TransportError>>;
}

/// Why there can be no client.
#[derive(Debug, Error)]
pub enum HttpsError {
    /// The file of certificate authorities cannot be read.
    #[error("{}: cannot be read as certificates in PEM: {reason}; pass a file with CERTIFICATE blocks", .file.display())]
    Authorities {
        /// The file.
        file: PathBuf,
        /// The reason, without content.
        reason: String,
    },
    /// TLS does not work.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

type HttpsClient = Client<HttpsConnector<HttpConnector>, Body>;

/// The transport of programs: TLS, or plain HTTP where the URI says so.
pub struct Https {
    /// The clients of hosts that have certificate authorities of their own, by host and port.
    of_hosts: BTreeMap<String, HttpsClient>,
    of_others: HttpsClient,
}

impl fmt::Debug for Https {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Https")
    }
}

impl Https {
    /// Returns a transport that trusts this machine's certificate authorities, those of these files, and for each host those that the
    /// operator's registries have for it alone.
    ///
    /// # Errors
    /// A file is not a list of certificates.
    pub fn new(
        registries: &Registries,
        ca_files: &[PathBuf],
        connect: Duration,
    ) -> Result<Self, HttpsError> {
        let mut roots = RootCertStore::empty();
        // Without any, only files and plain HTTP work; connections then say that the issuer is unknown.
        let of_machine = rustls_native_certs::load_native_certs().certs;
        roots.add_parsable_certificates(of_machine);
        for file in ca_files {
            add(&mut roots, file)?;
        }
        let client = |file: Option<&Path>| {
            let mut roots = roots.clone();
            if let Some(file) = file {
                add(&mut roots, file)?;
            }
            client(roots, connect)
        };
        let of_hosts = registries
            .hosts()
            .map(|(host, file)| Ok((with_port(&host), client(file)?)));
        Ok(Self {
            of_hosts: of_hosts.collect::<Result<_, HttpsError>>()?,
            of_others: client(registries.ca_file_of_others())?,
        })
    }

    fn client(&self, uri: &http::Uri) -> &HttpsClient {
        let host = uri.authority().map(with_port);
        let own = host.and_then(|host| self.of_hosts.get(&host));
        own.unwrap_or(&self.of_others)
    }
}

/// Returns a host with its port, by which clients are found.
fn with_port(host: &Authority) -> String {
    let port = host.port_u16().unwrap_or(443);
    let name = host.host().to_ascii_lowercase();
    // Docker Hub answers under another name.
    let (hub, answers) = DOCKER_HUB;
    let name = if name == hub { answers } else { &name };
    format!("{name}:{port}")
}

fn client(roots: RootCertStore, connect: Duration) -> Result<HttpsClient, HttpsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_connect_timeout(Some(connect));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(http);
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

fn add(roots: &mut RootCertStore, file: &Path) -> Result<(), HttpsError> {
    let failure = |reason: String| HttpsError::Authorities {
        file: file.to_owned(),
        reason,
    };
    let read = CertificateDer::pem_file_iter(file).map_err(|error| failure(error.to_string()))?;
    let mut certificates = 0;
    for certificate in read {
        let certificate = certificate.map_err(|error| failure(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| failure(error.to_string()))?;
        certificates += 1;
    }
    if certificates == 0 {
        return Err(failure("it has none".to_owned()));
    }
    Ok(())
}

impl Transport for Https {
    fn send(&self, request: Request<Upload>) -> BoxFuture<'_, Result<Answer, TransportError>> {
        let host = host(request.uri());
        let request = request.map(body);
        Box::pin(async move {
            let answer = self.client(request.uri()).request(request).await;
            let answer = answer.map_err(|error| TransportError::Unreachable {
                host: host.clone(),
                reason: clean(&causes(&error)),
            })?;
            Ok(answer.map(|body| -> AnswerBody {
                Box::pin(body.into_data_stream().map(move |piece| {
                    piece.map_err(|error| TransportError::BrokeOff {
                        host: host.clone(),
                        reason: clean(&causes(&error)),
                    })
                }))
            }))
        })
    }
}

/// Returns the host of a URI, for messages.
pub(crate) fn host(uri: &http::Uri) -> String {
    uri.authority().map_or_else(String::new, host_of)
}

/// Returns a host with its port, without a user.
pub(crate) fn host_of(authority: &Authority) -> String {
    clean(after_user(authority.as_str()))
}

/// Returns a URL for messages: without a user, and without a query, which may be a signature.
pub(crate) fn shown_url(url: &str) -> String {
    clean(after_user(url.split('?').next().unwrap_or_default()))
}

fn after_user(text: &str) -> &str {
    text.rsplit_once('@').map_or(text, |(_, rest)| rest)
}

/// Sends content in pieces, so that progress can be seen.
fn body(upload: Upload) -> Body {
    let Upload {
        mut bytes,
        progress,
    } = upload;
    if bytes.is_empty() {
        return UnsyncBoxBody::new(Empty::new());
    }
    let pieces = std::iter::from_fn(move || {
        let piece = bytes.split_to(bytes.len().min(PIECE));
        progress.advance(piece.len());
        (!piece.is_empty()).then(|| Ok(Frame::data(piece)))
    });
    UnsyncBoxBody::new(StreamBody::new(stream::iter(pieces)))
}

/// Returns an error with its causes, of which the first alone often says nothing.
fn causes(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = Vec::new();
    for text in chain.map(ToString::to_string) {
        if !texts.iter().any(|earlier| earlier.contains(&text)) {
            texts.push(text);
        }
    }
    texts.join(": ")
}

/// Sets the length, without which content in pieces would be sent with an unknown length.
pub(crate) fn with_length(mut request: Request<Upload>) -> Request<Upload> {
    let length = request.body().bytes.len();
    if length > 0 || request.method() != http::Method::GET {
        request
            .headers_mut()
            .insert(header::CONTENT_LENGTH, length.into());
    }
    request
}
