//! The certificate of the webhooks. [`ServedCertificate`] is the only place that says which one is served: whatever provides certificates
//! sets
//! it there, and connections from then on have the new one.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use thiserror::Error;
use tokio::{task::spawn_blocking, time::sleep};
use tokio_rustls::TlsAcceptor;

use super::READINESS;
use crate::serve::Readiness;

/// How often the files are read. A Secret that is mounted changes about a minute after it was written, long before a certificate expires.
const EVERY: Duration = Duration::from_secs(2);

/// The files of a Secret of type `kubernetes.io/tls`.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// The certificate that is served. Clones share it.
#[derive(Clone, Default)]
pub(super) struct ServedCertificate(Arc<RwLock<Option<Arc<CertifiedKey>>>>);

impl fmt::Debug for ServedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedCertificate").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Why a certificate cannot be served.
#[derive(Debug, Error)]
enum CertificateError {
    #[error("{}: {source}; mount a Secret with {CERTIFICATE} and {KEY} there", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the files were not read, because the process is stopping")]
    Abandoned,
    #[error("{}: {problem}", .path.display())]
    Invalid { path: PathBuf, problem: String },
    #[error(
        "{CERTIFICATE} and {KEY} in {} do not belong together: {problem}; replace both",
        .directory.display()
    )]
    Mismatch {
        directory: PathBuf,
        problem: rustls::Error,
    },
}

/// The texts of both files.
#[derive(PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl ServedCertificate {
    /// Returns what accepts connections with this certificate.
    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Sets the certificate.
    fn set(&self, certificate: CertifiedKey) {
        let mut served = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *served = Some(Arc::new(certificate));
    }

    /// Serves the certificate of a directory, and a new one as soon as it is there. While the files are invalid, the process is not ready,
    /// and
    /// the last valid certificate is served.
    pub(super) async fn follow(self, directory: PathBuf, readiness: Arc<Readiness>) {
        let mut last = None;
        loop {
            match self.update(&directory, &mut last).await {
                Ok(Update::Same) => {}
                Ok(Update::New) => {
                    readiness.set(READINESS, true);
                    tracing::info!(directory = %directory.display(), "a certificate of the webhooks is loaded");
                }
                Err(error) => {
                    let why = error.to_string();
                    if readiness.reason(READINESS).as_deref() != Some(&why) {
                        tracing::error!(%error, "the certificate of the webhooks is not loaded; the last valid one is used");
                    }
                    readiness.note_missing(READINESS, why);
                    last = None;
                }
            }
            sleep(EVERY).await;
        }
    }

    /// Reads the files, and sets their certificate if they have changed. Files that are replaced while they are read do not belong
    /// together,
    /// so they are read once more.
    async fn update(
        &self,
        directory: &Path,
        last: &mut Option<Files>,
    ) -> Result<Update, CertificateError> {
        let mut files = Files::read(directory).await?;
        if last.as_ref() == Some(&files) {
            return Ok(Update::Same);
        }
        let certificate = match files.parse(directory) {
            Err(CertificateError::Mismatch { .. }) => {
                files = Files::read(directory).await?;
                files.parse(directory)?
            }
            parsed => parsed?,
        };
        self.set(certificate);
        *last = Some(files);
        Ok(Update::New)
    }
}

/// What reading the files has shown.
enum Update {
    Same,
    New,
}

impl Files {
    async fn read(directory: &Path) -> Result<Self, CertificateError> {
        let directory = directory.to_owned();
        let read = spawn_blocking(move || {
            let read = |name| {
                let path = directory.join(name);
                fs::read(&path).map_err(|source| CertificateError::Read { path, source })
            };
            Ok(Self {
                certificate: read(CERTIFICATE)?,
                key: read(KEY)?,
            })
        });
        read.await.unwrap_or(Err(CertificateError::Abandoned))
    }

    /// Returns the certificate with its key, if they belong together.
    fn parse(&self, directory: &Path) -> Result<CertifiedKey, CertificateError> {
        let invalid = |name: &str, problem: String| CertificateError::Invalid {
            path: directory.join(name),
            problem,
        };
        let of_pem = |name, error: pem::Error| invalid(name, format!("is not valid PEM: {error}"));
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.map_err(|error| of_pem(CERTIFICATE, error))?;
        if chain.is_empty() {
            return Err(invalid(CERTIFICATE, "has no certificate".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| match error {
            pem::Error::NoItemsFound => invalid(KEY, "has no private key".to_owned()),
            error => of_pem(KEY, error),
        })?;
        let provider: CryptoProvider = ring::default_provider();
        CertifiedKey::from_der(chain, key, &provider).map_err(|problem| {
            CertificateError::Mismatch {
                directory: directory.to_owned(),
                problem,
            }
        })
    }
}
