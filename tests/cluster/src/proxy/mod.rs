//! A proxy before an API server, for tests of clients that are killed, or whose API server is busy, unavailable, or does not answer.

mod forward;
mod rule;

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex as StdMutex, PoisonError},
};

use anyhow::{Context, Result};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
pub use rule::{Act, Call};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Mutex, watch},
    task::{AbortHandle, JoinHandle},
};
use tokio_rustls::TlsAcceptor;

use crate::{control_plane::ControlPlane, kubeconfig, ports::Port};

type Rule = Box<dyn FnMut(&Call) -> Act + Send>;

/// A proxy before the API server of a [`ControlPlane`], on a port of its own, with a certificate of the same authority. It
/// speaks HTTP/1.1 and forwards the credentials of the client. It is stopped when this value is dropped.
///
/// It numbers the calls and handles each by the test's rule. Initially, every call is forwarded. Clients use a
/// [kubeconfig](Self::kubeconfig) file for the proxy.
pub struct Proxy {
    shared: Arc<Shared>,
    tls: TlsAcceptor,
    port: Port,
    folder: PathBuf,
    /// The task that accepts connections, while they are accepted.
    accepting: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    client: Client<HttpsConnector<HttpConnector>, Incoming>,
    /// Host and port of the API server.
    upstream: String,
    state: Mutex<State>,
    flow: watch::Sender<Flow>,
    connections: StdMutex<Vec<AbortHandle>>,
    /// Shared by the answers of all open watches, which are counted by it.
    watching: Arc<()>,
}

struct State {
    calls: Vec<Call>,
    rule: Rule,
}

/// Whether data is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Open,
    Hung,
}

impl Proxy {
    /// Starts a proxy.
    ///
    /// # Errors
    /// No port is free, or the certificates cannot be read.
    pub async fn start(plane: &ControlPlane) -> Result<Self> {
        let url = plane.url();
        let upstream = url.strip_prefix("https://").unwrap_or(&url).to_owned();
        let (flow, _) = watch::channel(Flow::Open);
        let shared = Shared {
            client: client(&plane.certificates.authority)?,
            upstream,
            state: Mutex::new(State {
                calls: Vec::new(),
                rule: Box::new(|_| Act::Forward),
            }),
            flow,
            connections: StdMutex::default(),
            watching: Arc::default(),
        };
        let proxy = Self {
            shared: Arc::new(shared),
            tls: acceptor(&plane.serving_certificate())?,
            port: Port::find()?,
            folder: plane.folder().to_owned(),
            accepting: Mutex::default(),
        };
        proxy.serve().await?;
        Ok(proxy)
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port.number())
    }

    /// Writes a copy of a [kubeconfig](ControlPlane::kubeconfig) file with the address of the proxy, and returns its path.
    ///
    /// # Errors
    /// The file is not a kubeconfig of the control plane, or the copy cannot be written.
    pub fn kubeconfig(&self, of: &Path) -> Result<PathBuf> {
        let name = of.file_stem().context("the path has no file name")?;
        let name = format!("{}-by-{}", name.to_string_lossy(), self.port.number());
        let path = self.folder.join(name).with_extension("kubeconfig");
        kubeconfig::redirect(of, &self.url(), &path)?;
        Ok(path)
    }

    /// Sets the rule for all later calls.
    pub async fn set_rule(&self, rule: impl FnMut(&Call) -> Act + Send + 'static) {
        self.shared.state.lock().await.rule = Box::new(rule);
    }

    /// Returns a rule that applies an action to the call with this number, and forwards all others.
    pub async fn at_call(&self, number: usize, act: Act) {
        let mut act = Some(act);
        let rule = move |call: &Call| match act.take_if(|_| call.number == number) {
            Some(act) => act,
            None => Act::Forward,
        };
        self.set_rule(rule).await;
    }

    /// Returns a rule that applies an action to the write with this number, and forwards all other calls.
    pub async fn at_write(&self, number: usize, act: Act) {
        let mut act = Some(act);
        let rule = move |call: &Call| match act.take_if(|_| call.write == Some(number)) {
            Some(act) => act,
            None => Act::Forward,
        };
        self.set_rule(rule).await;
    }

    /// Returns a rule that applies an action to the next `count` writes, and forwards all other calls.
    pub async fn next_writes(&self, count: usize, act: impl Fn() -> Act + Send + 'static) {
        let mut left = count;
        let rule = move |call: &Call| {
            if left == 0 || call.write.is_none() {
                return Act::Forward;
            }
            left -= 1;
            act()
        };
        self.set_rule(rule).await;
    }

    /// Returns the recorded calls.
    pub async fn calls(&self) -> Vec<Call> {
        self.shared.state.lock().await.calls.clone()
    }

    /// Returns the number of open watches of all clients.
    pub fn watches(&self) -> usize {
        Arc::strong_count(&self.shared.watching) - 1
    }

    /// Clears the recorded calls, so the next one has number 1, and forwards all later ones.
    pub async fn forget(&self) {
        let mut state = self.shared.state.lock().await;
        state.calls.clear();
        state.rule = Box::new(|_| Act::Forward);
    }

    /// Closes every connection, and refuses new ones, until it [serves](Self::serve) again.
    pub async fn refuse(&self) {
        if let Some(accepting) = self.accepting.lock().await.take() {
            accepting.abort();
            // The listener is closed when the task has ended.
            let _ = accepting.await;
        }
        self.shared.close_connections();
    }

    /// Accepts calls, but forwards no data in either direction until it [serves](Self::serve) again. Then calls continue where they were.
    pub fn hang(&self) {
        self.shared.flow.send_replace(Flow::Hung);
    }

    /// Ends [refusing](Self::refuse) and [hanging](Self::hang).
    ///
    /// # Errors
    /// Its port is in use.
    pub async fn serve(&self) -> Result<()> {
        self.shared.flow.send_replace(Flow::Open);
        let mut accepting = self.accepting.lock().await;
        if accepting.is_none() {
            let address = (Ipv4Addr::LOCALHOST, self.port.number());
            let listener = TcpListener::bind(address).await;
            let listener = listener.context("the proxy cannot listen")?;
            let accept = accept(Arc::clone(&self.shared), self.tls.clone(), listener);
            *accepting = Some(tokio::spawn(accept));
        }
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(accepting) = self.accepting.get_mut().take() {
            accepting.abort();
        }
        self.shared.close_connections();
    }
}

impl Shared {
    /// Runs an action of a test, and then closes every connection. No other call is forwarded meanwhile, because the state is locked.
    async fn cut(&self, _held: &mut State, then: Box<dyn FnOnce() + Send>) {
        // A panic in it is reported by the panic hook, and the connections are still closed.
        let _ = tokio::task::spawn_blocking(then).await;
        self.close_connections();
    }

    fn close_connections(&self) {
        for connection in self.connections().drain(..) {
            connection.abort();
        }
    }

    fn connections(&self) -> std::sync::MutexGuard<'_, Vec<AbortHandle>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(shared: Arc<Shared>, tls: TlsAcceptor, listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let mut connections = shared.connections();
        connections.retain(|connection| !connection.is_finished());
        let connection = tokio::spawn(serve_connection(Arc::clone(&shared), tls.clone(), stream));
        connections.push(connection.abort_handle());
    }
}

async fn serve_connection(shared: Arc<Shared>, tls: TlsAcceptor, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    // Aborted connections are expected and not reported.
    if let Ok(stream) = tls.accept(stream).await {
        let service = service_fn(move |request| forward::handle(Arc::clone(&shared), request));
        let _ = http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }
}

fn acceptor(certificates: &Path) -> Result<TlsAcceptor> {
    let chain = CertificateDer::pem_file_iter(certificates.join("tls.crt"))?;
    let chain = chain.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(certificates.join("tls.key"))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn client(authority: &[u8]) -> Result<Client<HttpsConnector<HttpConnector>, Incoming>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(authority.to_vec()))?;
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .enable_http1()
        .build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}
