//! Bounded connections of a listener: a client could otherwise use up the file descriptors that the watches need.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::IpAddr,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::Router;
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

/// The address of the client of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peer(pub(crate) IpAddr);

impl Peer {
    /// Returns the key by which clients take turns.
    pub(crate) fn key(self) -> Arc<str> {
        self.0.to_string().into()
    }
}

/// The bounds on the connections of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// What is served, for the log.
    pub(super) what: &'static str,
    /// The most connections at once. A further one closes the oldest of the client that has most of them, so clients that send half a
    /// request do not block others, and one with many connections does not close those of others.
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

    /// Those of the status server. Its clients are the pods of all namespaces.
    pub(crate) const STATUS: Self = Self {
        what: "status updates",
        most: 1024,
        head: Duration::from_secs(120),
        lasts: Duration::from_secs(3600),
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
    let mut open = OpenConnections::default();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = running.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            // The address of a client over IPv4 has another form if the listener is one of IPv6.
            Ok((stream, address)) => (stream, Peer(address.ip().to_canonical())),
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
                connection((stream, peer), limits, app, shutdown).await;
            }
        };
        open.add(peer, running.spawn(connection));
    }
    drop(listener);
    while running.join_next().await.is_some() {}
}

/// The open connections of a listener, the oldest first.
#[derive(Default)]
struct OpenConnections(VecDeque<(Peer, AbortHandle)>);

impl OpenConnections {
    fn add(&mut self, peer: Peer, connection: AbortHandle) {
        self.0.push_back((peer, connection));
    }

    /// Closes the oldest connection of the client with most of them, if there are `most` connections. Of clients with as many, it is the
    /// one with the oldest connection.
    fn make_room(&mut self, most: usize) {
        self.0.retain(|(_, connection)| !connection.is_finished());
        if self.0.len() < most {
            return;
        }
        let mut counts: BTreeMap<Peer, usize> = BTreeMap::new();
        for (peer, _) in &self.0 {
            *counts.entry(*peer).or_default() += 1;
        }
        let largest = counts.values().copied().max();
        let mut oldest_first = self.0.iter();
        let closed = oldest_first.position(|(peer, _)| counts.get(peer).copied() == largest);
        if let Some((_, connection)) = closed.and_then(|at| self.0.remove(at)) {
            connection.abort();
        }
    }
}

async fn connection(
    (stream, peer): (impl AsyncRead + AsyncWrite + Unpin + Send, Peer),
    limits: Limits,
    app: Router,
    shutdown: CancellationToken,
) {
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        // A router is always ready.
        app.clone().call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), answer);
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn a_client_with_many_connections_closes_only_its_own() {
        let mut tasks = JoinSet::new();
        let mut open = OpenConnections::default();
        let peer = |last: u8| Peer([10, 0, 0, last].into());
        let (quiet, greedy, late) = (peer(1), peer(2), peer(3));
        let mut connect = |peer| {
            open.make_room(4);
            open.add(peer, tasks.spawn(pending::<()>()));
            tokio::task::yield_now()
        };
        for peer in [quiet, greedy, greedy, greedy, greedy, late, greedy] {
            connect(peer).await;
        }
        let peers: Vec<_> = open.0.iter().map(|(peer, _)| *peer).collect();
        assert_eq!(peers, [quiet, greedy, late, greedy]);
        // Clients with as many connections: the oldest is closed.
        for other in [peer(4), peer(5)] {
            open.make_room(4);
            open.add(other, tasks.spawn(pending::<()>()));
            tokio::task::yield_now().await;
        }
        let peers: Vec<_> = open.0.iter().map(|(peer, _)| *peer).collect();
        assert_eq!(peers, [late, greedy, peer(4), peer(5)]);
    }
}
