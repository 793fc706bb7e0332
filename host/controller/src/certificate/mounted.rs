//! Certificates of a directory, in which a Secret is mounted.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustls::{
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject as _},
    sign::CertifiedKey,
};
use thiserror::Error;
use tokio::{task::spawn_blocking, time::sleep};

use super::{READINESS, Served, ServedCertificate};
use crate::serve::Readiness;

/// How often the files are read. A Secret that is mounted changes about a minute after it was written, long before a certificate expires.
const EVERY: Duration = Duration::from_secs(2);

/// The files of a Secret of type `kubernetes.io/tls`.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// The file in which cert-manager has the certificate authority. It may be missing or empty.
const AUTHORITY: &str = "ca.crt";

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

/// The texts of the files.
#[derive(PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Option<Vec<u8>>,
}

/// Serves the certificate of a directory, and a new one as soon as it is there. While the files are invalid, the process is not ready, and
/// the last valid certificate is served.
pub(super) async fn follow(
    served: &ServedCertificate,
    directory: PathBuf,
    readiness: &Arc<Readiness>,
) {
    let mut last = None;
    loop {
        match update(served, &directory, &mut last).await {
            Ok(Update::Same) => {}
            Ok(Update::New) => {
                readiness.set(READINESS, true);
                tracing::info!(directory = %directory.display(), "a certificate is loaded");
            }
            Err(error) => {
                let why = error.to_string();
                if readiness.reason(READINESS).as_deref() != Some(&why) {
                    tracing::error!(%error, "the certificate is not loaded; the last valid one is used");
                }
                readiness.note_missing(READINESS, why);
                last = None;
            }
        }
        sleep(EVERY).await;
    }
}

/// Reads the files, and serves their certificate if they have changed. Files that are replaced while they are read do not belong together,
/// so they are read once more.
async fn update(
    served: &ServedCertificate,
    directory: &Path,
    last: &mut Option<Files>,
) -> Result<Update, CertificateError> {
    let mut files = Files::read(directory).await?;
    if last.as_ref() == Some(&files) {
        return Ok(Update::Same);
    }
    let next = match files.parse(directory) {
        Err(CertificateError::Mismatch { .. }) => {
            files = Files::read(directory).await?;
            files.parse(directory)?
        }
        parsed => parsed?,
    };
    served.set(next);
    *last = Some(files);
    Ok(Update::New)
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
            let authority = match read(AUTHORITY) {
                Err(CertificateError::Read { source, .. })
                    if source.kind() == io::ErrorKind::NotFound =>
                {
                    None
                }
                read => Some(read?).filter(|text| !text.is_empty()),
            };
            Ok(Self {
                certificate: read(CERTIFICATE)?,
                key: read(KEY)?,
                authority,
            })
        });
        read.await.unwrap_or(Err(CertificateError::Abandoned))
    }

    /// Returns the certificate with its key, if they belong together.
    fn parse(&self, directory: &Path) -> Result<Served, CertificateError> {
        let invalid = |name: &str, problem: String| CertificateError::Invalid {
            path: directory.join(name),
            problem,
        };
        let of_pem = |name, error: pem::Error| {
            let problem = super::pem::problem(&error);
            invalid(name, format!("is not valid PEM: {problem}"))
        };
        let certificates = |name, text| {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
            let chain = chain.map_err(|error| of_pem(name, error))?;
            if chain.is_empty() {
                return Err(invalid(name, "has no certificate".to_owned()));
            }
            Ok(chain)
        };
        let chain = certificates(CERTIFICATE, &self.certificate)?;
        let authority = match &self.authority {
            None => None,
            Some(text) => {
                certificates(AUTHORITY, text)?;
                Some(String::from_utf8_lossy(text).into())
            }
        };
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| match error {
            pem::Error::NoItemsFound => invalid(KEY, "has no private key".to_owned()),
            error => of_pem(KEY, error),
        })?;
        let provider: CryptoProvider = ring::default_provider();
        let certificate = CertifiedKey::from_der(chain, key, &provider).map_err(|problem| {
            CertificateError::Mismatch {
                directory: directory.to_owned(),
                problem,
            }
        })?;
        Ok(Served {
            certificate: Arc::new(certificate),
            authority,
        })
    }
}
