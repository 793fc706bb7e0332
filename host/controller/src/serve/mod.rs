//! Liveness, readiness and metrics over HTTP, and what all servers share: the bounds on connections and bodies, and TLS.

mod authorization;
pub(crate) mod bearer;
pub(crate) mod body;
mod connections;
mod lingering;
pub(crate) mod turns;

use std::{
    collections::BTreeMap,
    fmt, io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub use authorization::MetricsAuthorizer;
use axum::{
    Router,
    extract::State,
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::get,
};
pub(crate) use connections::{Limits, Peer, Tls, serve as serve_connections};
use connections::{Plain, Transport};
use http::{StatusCode, header::CONTENT_TYPE};
pub(crate) use lingering::LingeringServer;
use serde::Deserialize;
use thiserror::Error;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::metrics::{self, Metrics};

/// A bind address as in controller-runtime: `:8081` is the port on all interfaces; `0` or an empty text disables the server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum BindAddress {
    /// The server is disabled.
    Off,
    /// The address to listen on.
    At {
        /// A host name or an address; empty for all interfaces.
        host: String,
        /// The port; 0 for any free port.
        port: u16,
    },
}

/// An invalid bind address.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "`{0}` is not an address to listen on; use `HOST:PORT`, `:PORT` for all interfaces, or `0` to disable the server"
)]
pub struct BindAddressError(String);

impl FromStr for BindAddress {
    type Err = BindAddressError;

    fn from_str(text: &str) -> Result<Self, BindAddressError> {
        if matches!(text, "" | "0") {
            return Ok(Self::Off);
        }
        let wrong = || BindAddressError(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let host = match host.strip_prefix('[') {
            Some(address) => address
                .strip_suffix(']')
                .filter(|address| address.parse::<Ipv6Addr>().is_ok())
                .ok_or_else(wrong)?,
            None if host.contains(':') => return Err(wrong()),
            None => host,
        };
        Ok(Self::At {
            host: host.to_owned(),
            port: port.parse().map_err(|_| wrong())?,
        })
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("0"),
            Self::At { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::At { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

impl TryFrom<String> for BindAddress {
    type Error = BindAddressError;

    fn try_from(text: String) -> Result<Self, BindAddressError> {
        text.parse()
    }
}

impl BindAddress {
    /// Returns the port on all interfaces.
    #[must_use]
    pub const fn all_interfaces(port: u16) -> Self {
        Self::At {
            host: String::new(),
            port,
        }
    }

    pub(crate) async fn listen(
        &self,
        what: &'static str,
    ) -> Result<Option<TcpListener>, ServeError> {
        let Self::At { host, port } = self else {
            return Ok(None);
        };
        let bound = if host.is_empty() {
            // The IPv6 wildcard address accepts IPv4 too.
            match TcpListener::bind((Ipv6Addr::UNSPECIFIED, *port)).await {
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).await
                }
                bound => bound,
            }
        } else {
            TcpListener::bind((host.as_str(), *port)).await
        };
        bound.map(Some).map_err(|source| ServeError::Bind {
            what,
            address: self.clone(),
            source,
        })
    }
}

/// Why a server does not start, or ends.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("{what}: cannot listen on {address}: {source}")]
    Bind {
        /// What is served.
        what: &'static str,
        /// The address.
        address: BindAddress,
        /// The cause.
        source: io::Error,
    },
    /// TLS cannot be used.
    #[error("TLS cannot be used with these options: {0}")]
    Tls(#[source] rustls::Error),
    /// A server ended unexpectedly.
    #[error("a server ended: {0}")]
    Ended(#[source] io::Error),
}

/// The conditions of readiness. Leadership is not one of them.
#[derive(Debug, Default)]
pub struct Readiness {
    parts: Mutex<BTreeMap<&'static str, PartStatus>>,
}

/// Whether a part is ready, and if it is not, the reason if it is known.
#[derive(Debug)]
enum PartStatus {
    Ready,
    NotReady(Option<String>),
}

impl Readiness {
    /// Returns a readiness that requires each of these parts.
    #[must_use]
    pub fn new(parts: &[&'static str]) -> Self {
        Self {
            parts: Mutex::new(
                parts
                    .iter()
                    .map(|part| (*part, PartStatus::NotReady(None)))
                    .collect(),
            ),
        }
    }

    /// Sets whether a part is ready.
    pub fn set(&self, part: &'static str, there: bool) {
        let state = if there {
            PartStatus::Ready
        } else {
            PartStatus::NotReady(None)
        };
        self.parts().insert(part, state);
    }

    /// Notes that a part is not ready, with the reason.
    pub fn note_missing(&self, part: &'static str, why: String) {
        self.parts().insert(part, PartStatus::NotReady(Some(why)));
    }

    /// Returns why a part is not ready, if it is known.
    pub(crate) fn reason(&self, part: &str) -> Option<String> {
        match self.parts().get(part)? {
            PartStatus::NotReady(why) => why.clone(),
            PartStatus::Ready => None,
        }
    }

    /// Returns the parts that are not ready, with their reasons.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let missing = |(part, state): (&&'static str, &PartStatus)| match state {
            PartStatus::Ready => None,
            PartStatus::NotReady(None) => Some((*part).to_owned()),
            PartStatus::NotReady(Some(why)) => Some(format!("{part} ({why})")),
        };
        self.parts().iter().filter_map(missing).collect()
    }

    fn parts(&self) -> MutexGuard<'_, BTreeMap<&'static str, PartStatus>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running servers.
#[derive(Debug)]
pub struct Servers {
    /// The address of the metrics server.
    pub metrics: Option<SocketAddr>,
    /// The address of the probes.
    pub health: Option<SocketAddr>,
    tasks: JoinSet<()>,
}

/// How metrics are protected. By default, they are served over plain HTTP to everybody.
#[derive(Default)]
pub struct MetricsAccess {
    /// What encrypts connections.
    pub tls: Option<TlsAcceptor>,
    /// Who may read them; `None` for everybody.
    pub authorizer: Option<Arc<MetricsAuthorizer>>,
}

impl fmt::Debug for MetricsAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsAccess").finish_non_exhaustive()
    }
}

/// Listens on both addresses, and serves until `shutdown`.
///
/// # Errors
/// An address cannot be listened on.
pub async fn start(
    (metrics_address, metrics, access): (&BindAddress, Arc<Metrics>, MetricsAccess),
    (health_address, readiness): (&BindAddress, Arc<Readiness>),
    shutdown: CancellationToken,
) -> Result<Servers, ServeError> {
    let metrics_listener = metrics_address.listen("metrics").await?;
    let health_listener = health_address.listen("health probes").await?;
    let mut servers = Servers {
        metrics: None,
        health: None,
        tasks: JoinSet::new(),
    };
    if let Some(listener) = metrics_listener {
        let mut app = Router::new()
            .route("/metrics", get(scrape))
            .route("/shadow", get(shadow))
            .route("/plugins", get(plugins))
            .with_state(metrics);
        if let Some(authorizer) = access.authorizer {
            app = app.layer(from_fn_with_state(authorizer, authorization::authorize));
        }
        servers.metrics = match access.tls {
            Some(tls) => servers.spawn(listener, Tls(tls), app, &shutdown),
            None => servers.spawn(listener, Plain, app, &shutdown),
        };
    }
    if let Some(listener) = health_listener {
        let app = Router::new()
            .route("/healthz", get(|| async { "ok" }))
            .route("/readyz", get(ready))
            .with_state(readiness);
        servers.health = servers.spawn(listener, Plain, app, &shutdown);
    }
    Ok(servers)
}

impl Servers {
    fn spawn(
        &mut self,
        listener: TcpListener,
        transport: impl Transport,
        app: Router,
        shutdown: &CancellationToken,
    ) -> Option<SocketAddr> {
        let address = listener.local_addr().ok();
        self.tasks.spawn(connections::serve(
            listener,
            transport,
            Limits::PROBES,
            app,
            shutdown.clone(),
        ));
        address
    }

    /// Waits until all servers have ended.
    ///
    /// # Errors
    /// The first server that ended unexpectedly.
    pub async fn ended(mut self) -> Result<(), ServeError> {
        while let Some(ended) = self.tasks.join_next().await {
            ended.map_err(|panicked| ServeError::Ended(io::Error::other(panicked)))?;
        }
        Ok(())
    }
}

async fn scrape(State(metrics): State<Arc<Metrics>>) -> Response {
    match metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Returns the page of the shadow mode.
async fn shadow(State(metrics): State<Arc<Metrics>>) -> Response {
    match metrics.shadow_page() {
        Some(page) => page.into_response(),
        None => {
            let text = "the controller does not run with --shadow\n";
            (StatusCode::NOT_FOUND, text).into_response()
        }
    }
}

/// Returns the page about the plugins of the cluster.
async fn plugins(State(metrics): State<Arc<Metrics>>) -> Response {
    match metrics.plugins_page() {
        Some(page) => page.into_response(),
        None => {
            let text = "plugins are not declared in the cluster (plugins.source is File)\n";
            (StatusCode::NOT_FOUND, text).into_response()
        }
    }
}

async fn ready(State(readiness): State<Arc<Readiness>>) -> Response {
    let missing = readiness.missing();
    if missing.is_empty() {
        return "ok".into_response();
    }
    let text = format!("not ready: {}", missing.join(", "));
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}
