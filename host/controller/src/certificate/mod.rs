//! The certificate that all TLS servers of the process share.
//!
//! [`ServedCertificate`] is the only place that says which one is served. Whatever provides certificates sets it there, and connections from
//! then on have the new one. [`mounted`] reads it from a directory, in which a Secret is mounted.

mod mounted;

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use rustls::{
    ServerConfig,
    crypto::ring,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use crate::serve::Readiness;

/// The part of readiness.
pub(crate) const READINESS: &str = "certificate";

/// Where certificates come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A directory with `tls.crt` and `tls.key`, and `ca.crt` if clients have to trust a certificate authority of its own.
    Mounted(PathBuf),
}

/// The certificate that is served. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ServedCertificate(Arc<RwLock<Option<Served>>>);

/// A certificate, and what its clients have to trust.
#[derive(Clone)]
struct Served {
    certificate: Arc<CertifiedKey>,
    /// The certificates of its certificate authorities, as PEM.
    authority: Option<Arc<str>>,
}

impl fmt::Debug for ServedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedCertificate").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.served()?.certificate)
    }
}

impl ServedCertificate {
    /// Returns what accepts connections with this certificate.
    ///
    /// # Errors
    /// The protocol versions are not supported.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Returns the certificates of the certificate authorities that clients have to trust now, as PEM; `None` if there is no certificate yet,
    /// or if it came without them.
    pub(crate) fn authority(&self) -> Option<Arc<str>> {
        self.served()?.authority
    }

    /// Whether there is a certificate.
    pub(crate) fn is_there(&self) -> bool {
        self.served().is_some()
    }

    /// Serves the certificates of `source` until the task is dropped. Until there is a valid one, the process is not ready.
    pub(crate) fn follow(
        &self,
        source: Source,
        readiness: Arc<Readiness>,
    ) -> AbortOnDropHandle<()> {
        readiness.set(READINESS, false);
        let served = self.clone();
        AbortOnDropHandle::new(tokio::spawn(async move {
            match source {
                Source::Mounted(directory) => mounted::follow(&served, directory, &readiness).await,
            }
        }))
    }

    fn served(&self) -> Option<Served> {
        let served = self.0.read();
        served.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, next: Served) {
        let mut served = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *served = Some(next);
    }
}
