//! Certificates of a directory, in which a Secret is mounted.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustls::{
    crypto::{CryptoProvider, ring},
    sign::CertifiedKey,
};
use thiserror::Error;
use tokio::{task::spawn_blocking, time::sleep};

use super::{
    READINESS, Served, ServedCertificate,
    pem::{self, AUTHORITIES, CERTIFICATE, KEY, Problem},
};
use crate::serve::Readiness;

/// How often the files are read. A Secret that is mounted changes about a minute after it was written, long before a certificate expires.
const EVERY: Duration = Duration::from_secs(2);

/// Why a certificate cannot be served.
#[derive(Debug, Error)]
enum CertificateError {
    #[error("{}: {source}; mount a Secret with {CERTIFICATE} and {KEY} there", .path.display())]
    Read { path: PathBuf, source: io::Error },
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
    /// The file may be missing or empty.
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
        let of = directory.to_owned();
        let read = spawn_blocking(move || {
            let read = |name| {
                let path = of.join(name);
                fs::read(&path).map_err(|source| CertificateError::Read { path, source })
            };
            let authority = match read(AUTHORITIES) {
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
        read.await.unwrap_or_else(|stopped| {
            Err(CertificateError::Read {
                path: directory.to_owned(),
                source: stopped.into(),
            })
        })
    }

    /// Returns the certificate with its key, if they belong together.
    fn parse(&self, directory: &Path) -> Result<Served, CertificateError> {
        let invalid = |name: &str, what: &str, problem| CertificateError::Invalid {
            path: directory.join(name),
            problem: match problem {
                Problem::Missing => format!("has no {what}"),
                Problem::Invalid(why) => format!("is not valid PEM: {why}"),
            },
        };
        let certificates = |name, text| {
            pem::certificates(text).map_err(|problem| invalid(name, "certificate", problem))
        };
        let chain = certificates(CERTIFICATE, &self.certificate)?;
        let authority = match &self.authority {
            None => None,
            Some(text) => {
                certificates(AUTHORITIES, text)?;
                Some(String::from_utf8_lossy(text).into())
            }
        };
        let key = pem::private_key(&self.key);
        let key = key.map_err(|problem| invalid(KEY, "private key", problem))?;
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
