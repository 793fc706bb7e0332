//! Bounded connections of a listener: a client could otherwise use up the file descriptors that the watches need.

use std::{collections::HashMap, io, net::IpAddr, pin::pin, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;

/// The bounds on the connections of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// What is served, for the log.
    what: &'static str,
    /// The most connections at once. A further one closes the oldest of the address that has the most, so neither clients that send half a
    /// request nor one that opens many connections block others.
    most: usize,
    /// How long a client may take to send the head of a request, from the start of the connection or the last answer.
    head: Duration,
    /// How long a connection may last. Without this, a client that does not read could keep it open forever.
    lasts: Duration,
    /// How long an unfinished answer may take after that.
    last_answer: Duration,
}

impl Limits {
    /// Those of metrics and probes.
    pub(crate) const PROBES: Self = Self {
        what: "metrics or probes",
        most: 64,
        head: Duration::from_secs(5),
        lasts: Duration::from_secs(60),
        last_answer: Duration::from_secs(5),
    };

    /// Those of webhooks. API servers keep idle connections for 90 seconds, and a request on a connection that is just being closed fails: the
    /// client has to be the first to close one.
    pub(crate) const WEBHOOKS: Self = Self {
        what: "webhooks",
        most: 512,
        head: Duration::from_secs(120),
        lasts: Duration::from_secs(24 * 3600),
        last_answer: Duration::from_secs(10),
    };
}

/// How long a client may take for the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How the bytes of connections are read and written.
pub(crate) trait Transport: Clone + Send + Sync + 'static {
    /// The connection that requests are read from.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send;

    /// Returns the connection; `None` if the client is not allowed to connect, or does not finish a handshake.
    fn accept(&self, stream: TcpStream) -> impl Future<Output = Option<Self::Stream>> + Send;
}

/// Connections without encryption.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

impl Transport for Plain {
    type Stream = TcpStream;

    async fn accept(&self, stream: TcpStream) -> Option<TcpStream> {
        Some(stream)
    }
}

/// Connections over TLS.
#[derive(Clone)]
pub(crate) struct Tls(pub(crate) TlsAcceptor);

impl Transport for Tls {
    type Stream = TlsStream<TcpStream>;

    async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        let accepted = timeout(HANDSHAKE, self.0.accept(stream)).await.ok()?;
        // Also logged if there is no certificate yet, or the client does not trust it.
        let failed = |error: &io::Error| tracing::debug!(%error, "a TLS handshake failed");
        accepted.inspect_err(failed).ok()
    }
}

/// The most bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;

/// The pause after a connection could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves until `shutdown`, and then finishes the running requests.
pub(crate) async fn serve(
    listener: TcpListener,
    transport: impl Transport,
    limits: Limits,
    app: Router,
    shutdown: CancellationToken,
) {
    let mut running = JoinSet::new();
    let mut open = Open::default();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = running.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let (stream, client) = match accepted {
            Ok((stream, client)) => (stream, client.ip()),
            Err(error) => {
                if !is_of_one_client(&error) {
                    tracing::warn!(%error, "a connection to {} cannot be accepted", limits.what);
                    sleep(ACCEPT_AGAIN).await;
                }
                continue;
            }
        };
        open.make_room(limits.most);
        let (transport, app, shutdown) = (transport.clone(), app.clone(), shutdown.clone());
        let connection = async move {
            if let Some(stream) = transport.accept(stream).await {
                connection(stream, limits, app, shutdown).await;
            }
        };
        open.oldest_first.push((client, running.spawn(connection)));
    }
    drop(listener);
    while running.join_next().await.is_some() {}
}

/// The open connections of a listener, with the address of each client.
#[derive(Default)]
struct Open {
    oldest_first: Vec<(IpAddr, AbortHandle)>,
}

impl Open {
    /// Closes a connection if there are already `most`.
    fn make_room(&mut self, most: usize) {
        self.oldest_first
            .retain(|(_, connection)| !connection.is_finished());
        if self.oldest_first.len() < most {
            return;
        }
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for (client, _) in &self.oldest_first {
            *counts.entry(*client).or_default() += 1;
        }
        let has_most = |(client, _): &(IpAddr, AbortHandle)| counts.get(client);
        let most = self.oldest_first.iter().filter_map(has_most).max();
        let is_oldest = |it: &(IpAddr, AbortHandle)| has_most(it) == most;
        if let Some(at) = self.oldest_first.iter().position(is_oldest) {
            let (_, connection) = self.oldest_first.remove(at);
            connection.abort();
        }
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    limits: Limits,
    app: Router,
    shutdown: CancellationToken,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    let mut connection = pin!(connection);
    // Errors of a client are ignored, such as a closed connection or a request that is not HTTP.
    tokio::select! {
        _ = &mut connection => return,
        () = shutdown.cancelled() => {}
        () = sleep(limits.lasts) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(limits.last_answer, connection).await;
}

/// Whether a client closed its connection before it was accepted.
fn is_of_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}
