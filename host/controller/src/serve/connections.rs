//! Bounded connections of a listener: a client could otherwise use up the file descriptors that the watches need.

use std::{collections::VecDeque, io, pin::pin, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// The most connections at once. A further one closes the oldest, so clients that send half a request do not block probes.
const MOST: usize = 64;

/// How long a client may take to send the head of a request, from the start of the connection or the last answer.
const HEAD: Duration = Duration::from_secs(5);

/// How long a connection may last. Without this, a client that does not read could keep it open forever.
const LASTS: Duration = Duration::from_secs(60);

/// How long an unfinished answer may take after that.
const LAST_ANSWER: Duration = Duration::from_secs(5);

/// The most bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;

/// The pause after a connection could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves until `shutdown`, and then finishes the running requests.
pub(super) async fn serve(listener: TcpListener, app: Router, shutdown: CancellationToken) {
    let mut running = JoinSet::new();
    let mut oldest_first: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = running.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                if !is_of_one_client(&error) {
                    tracing::warn!(%error, "a connection to metrics or probes cannot be accepted");
                    sleep(ACCEPT_AGAIN).await;
                }
                continue;
            }
        };
        oldest_first.retain(|connection| !connection.is_finished());
        if oldest_first.len() >= MOST
            && let Some(oldest) = oldest_first.pop_front()
        {
            oldest.abort();
        }
        let connection = connection(stream, app.clone(), shutdown.clone());
        oldest_first.push_back(running.spawn(connection));
    }
    drop(listener);
    while running.join_next().await.is_some() {}
}

async fn connection(stream: TcpStream, app: Router, shutdown: CancellationToken) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    let mut connection = pin!(connection);
    // Errors of a client are ignored, such as a closed connection or a request that is not HTTP.
    tokio::select! {
        _ = &mut connection => return,
        () = shutdown.cancelled() => {}
        () = sleep(LASTS) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(LAST_ANSWER, connection).await;
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
