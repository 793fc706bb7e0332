//! Servers over TLS that clients reach by a Service. They are served for some time after the process was told to stop, because clients learn
//! only then that they have to connect to another replica.

use std::time::Duration;

use axum::Router;
use tokio::{task::JoinSet, time::sleep};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{BindAddress, Limits, ServeError, Tls, serve_connections};

/// A running server over TLS.
#[derive(Debug, Default)]
pub(crate) struct LingeringServer {
    tasks: JoinSet<()>,
}

impl LingeringServer {
    /// Serves until `linger` after `stop`.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub(crate) async fn start(
        bind_address: &BindAddress,
        (tls, limits): (TlsAcceptor, Limits),
        app: Router,
        linger: Duration,
        stop: &CancellationToken,
    ) -> Result<Self, ServeError> {
        let mut tasks = JoinSet::new();
        let what = limits.what;
        let Some(listener) = bind_address.listen(what).await? else {
            return Ok(Self { tasks });
        };
        let address = listener.local_addr().ok();
        let ends = CancellationToken::new();
        let lingers = {
            let (stop, ends) = (stop.clone(), ends.clone());
            async move {
                stop.cancelled().await;
                sleep(linger).await;
                ends.cancel();
            }
        };
        tasks.spawn(serve_connections(listener, Tls(tls), limits, app, ends));
        tasks.spawn(lingers);
        let address = address.map(|address| address.to_string());
        tracing::info!(address, what, "served over TLS");
        Ok(Self { tasks })
    }

    /// Waits until all requests are answered.
    pub(crate) async fn ended(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}
