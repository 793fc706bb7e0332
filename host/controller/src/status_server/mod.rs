//! The status server, to which the pods of TrainJobs report progress, as to the reference's.
//!
//! A request passes through these files:
//!
//! 1. [`server`] has the path of the reference, over TLS. It bounds the body, and answers with a `Status` of Kubernetes.
//! 2. [`token`] reads what the token says, and [`authorizer`] asks the API server whether that is true, and whether the pod belongs to the
//!    TrainJob.
//! 3. [`update`] reads the body, and writes `status.trainerStatus` of the TrainJob.
//!
//! [`turns`](crate::serve::turns) bounds the calls to the API server. Clients that are not known yet take turns by their addresses, and the others by their
//! namespaces, so that none of them delays those of others by more than its turn.
//!
//! The plugin `train-job-status` passes the URL, the token and the certificate authority to the pods. [`authority`] keeps the latter current.

mod authority;
mod authorizer;
mod server;
mod token;
mod update;

use std::{sync::Arc, time::Duration};

use authority::{ConfigMaps, publish, publish_now};
use server::Server;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    certificate::ServedCertificate,
    rbac,
    serve::{BindAddress, Limits, LingeringServer, ServeError},
    work::Work,
};

/// The port of the reference's status server.
const PORT: u16 = 10443;

/// The settings of the status server.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusServerSettings {
    /// The address. Default `:10443`.
    pub bind_address: BindAddress,
    /// The maximum average rate of writes per second; 0 means no limit. Default 5, as in the reference.
    pub qps: f64,
    /// The maximum burst of writes. Default 10.
    pub burst: Option<u32>,
    /// How long requests are still answered after the process was told to stop, because pods learn only then that they have to connect to
    /// another replica. Default 5 s.
    pub linger: Duration,
}

impl Default for StatusServerSettings {
    fn default() -> Self {
        Self {
            bind_address: BindAddress::all_interfaces(PORT),
            qps: 5.0,
            burst: Some(10),
            linger: Duration::from_secs(5),
        }
    }
}

/// Returns the URL of the status server of a controller in that namespace, up to the path.
#[must_use]
pub fn url(namespace: &str) -> String {
    StatusServerSettings::default().url(namespace)
}

impl StatusServerSettings {
    /// Returns the URL of the status server of a controller in that namespace, up to the path.
    #[must_use]
    pub fn url(&self, namespace: &str) -> String {
        let port = match self.bind_address {
            BindAddress::At { port, .. } => port,
            BindAddress::Off => PORT,
        };
        format!("https://{}.{namespace}.svc:{port}", rbac::NAME)
    }
}

/// The clients of a status server, each with its own rate.
pub(crate) struct Clients {
    /// For requests, which take turns before they call the API server.
    pub(crate) requests: kube::Client,
    /// For the ConfigMaps with certificate authorities.
    pub(crate) config_maps: kube::Client,
}

impl Clients {
    /// The maximum rate of the latter, so that a new authority for thousands of TrainJobs delays nobody.
    pub(crate) const CONFIG_MAPS: (f64, u32) = (20.0, 20);
}

/// The running status server.
pub(crate) struct StatusServer {
    server: LingeringServer,
    /// Keeps the fact current with which TrainJobs are rendered.
    _publishes: AbortOnDropHandle<()>,
    config_maps: ConfigMaps,
}

impl StatusServer {
    /// Serves status updates until some time after `stop`.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub(crate) async fn start(
        settings: &StatusServerSettings,
        clients: Clients,
        certificate: ServedCertificate,
        work: &Work,
        stop: &CancellationToken,
    ) -> Result<Self, ServeError> {
        let server = Server::new(
            clients.requests,
            settings,
            (work.stores.clone(), work.metrics.clone()),
        );
        let app = Arc::new(server).router();
        let tls = certificate.acceptor().map_err(ServeError::Tls)?;
        let (address, over) = (&settings.bind_address, (tls, Limits::STATUS));
        let server = LingeringServer::start(address, over, app, settings.linger, stop).await?;
        let facts = work.reconciler.host_facts().clone();
        let publishes = tokio::spawn(publish(certificate.clone(), facts.clone()));
        Ok(Self {
            server,
            _publishes: AbortOnDropHandle::new(publishes),
            config_maps: ConfigMaps {
                client: clients.config_maps,
                certificate,
                facts,
                stores: work.stores.clone(),
            },
        })
    }

    /// Waits until there is a certificate, and renderings know its authorities. Without them, pods could not report.
    pub(crate) async fn until_ready(&self) {
        let ConfigMaps {
            certificate, facts, ..
        } = &self.config_maps;
        let mut changes = certificate.changes();
        while !publish_now(certificate, facts) {
            changes.next().await;
        }
    }

    /// Keeps the certificate authorities of running pods current, as the leader, until the task is dropped.
    pub(crate) fn follow(&self) -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(tokio::spawn(self.config_maps.clone().follow()))
    }

    /// Waits until all requests are answered.
    pub(crate) async fn ended(self) {
        self.server.ended().await;
    }
}
