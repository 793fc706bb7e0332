//! The certificate that all TLS servers of the process share.
//!
//! [`ServedCertificate`] is the only place that says which one is served. Whatever provides certificates sets it there, and connections from
//! then on have the new one. [`mounted`] reads it from a directory, in which a Secret is mounted, and [`managed`] creates it.

mod clock;
mod managed;
mod mounted;
mod pem;
mod tls;

use std::{fmt, future::pending, path::PathBuf, sync::Arc};

pub use clock::{Clock, SystemClock};
pub(crate) use managed::Managed;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
pub use tls::{CipherSuite, TlsSettings, TlsVersion};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use crate::serve::Readiness;

/// The part of readiness.
pub(crate) const READINESS: &str = "certificate";

/// The settings of certificates that the controller creates, with the names of the reference's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertManagement {
    /// Whether the controller creates its certificate, if none is mounted. Default false.
    pub enable: bool,
    /// The Service of the webhooks. Default `kubeflow-trainer-webhooks`.
    pub webhook_service_name: String,
    /// The Secret with the certificate, in the namespace of the process. Default `kubeflow-trainer-webhook-cert`.
    pub webhook_secret_name: String,
}

impl Default for CertManagement {
    fn default() -> Self {
        Self {
            enable: false,
            webhook_service_name: "kubeflow-trainer-webhooks".to_owned(),
            webhook_secret_name: "kubeflow-trainer-webhook-cert".to_owned(),
        }
    }
}

/// Where certificates come from.
pub(crate) enum Source {
    /// A directory with `tls.crt` and `tls.key`, and `ca.crt` if clients have to trust a certificate authority of its own.
    Mounted(PathBuf),
    /// A Secret that the controller writes.
    Managed(Managed),
}

/// The certificate that is served, with the options of TLS. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ServedCertificate {
    settings: Arc<TlsSettings>,
    served: watch::Sender<Option<Served>>,
}

/// The changes of the certificate that is served.
pub(crate) struct Changes(watch::Receiver<Option<Served>>);

impl Changes {
    /// Waits for a change since the last one.
    pub(crate) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // Nobody can change it any more.
            pending::<()>().await;
        }
    }
}

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
    /// Returns one that is not there yet.
    pub(crate) fn new(settings: TlsSettings) -> Self {
        Self {
            settings: Arc::new(settings),
            served: watch::Sender::default(),
        }
    }

    /// Returns what accepts connections with this certificate.
    ///
    /// # Errors
    /// The options contradict each other.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, rustls::Error> {
        let config = self.settings.server(Arc::new(self.clone()))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Returns the certificates of the certificate authorities that clients have to trust now, as PEM; `None` if there is no certificate yet,
    /// or if it came without them.
    pub(crate) fn authority(&self) -> Option<Arc<str>> {
        self.served()?.authority
    }

    /// Whether there is a certificate.
    pub(crate) fn is_there(&self) -> bool {
        self.served.borrow().is_some()
    }

    /// Returns the changes from now on.
    pub(crate) fn changes(&self) -> Changes {
        Changes(self.served.subscribe())
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
                Source::Managed(managed) => managed::follow(&served, managed, &readiness).await,
            }
        }))
    }

    fn served(&self) -> Option<Served> {
        self.served.borrow().clone()
    }

    fn set(&self, next: Served) {
        self.served.send_replace(Some(next));
    }
}
