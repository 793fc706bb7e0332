//! The webhooks of a controller in this process, and a client that calls them as an API server does.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use trainyard_controller::{
    generation::Generations, metrics::Metrics, serve::BindAddress, settings::Settings,
    webhook::WebhookSettings,
};
use trainyard_model::plugin::Plugin;

use super::{cluster::Cluster, controller::Controller};

/// How long a test waits for an expected state.
const PATIENCE: Duration = Duration::from_secs(600);

/// A deadline for checks that no test reaches.
pub(crate) const UNLIMITED: Duration = Duration::from_secs(3600);

/// Certificates for this name, of which clients trust the last one.
pub(crate) struct Certificates {
    pub(crate) directory: TempDir,
    trusted: CertificateDer<'static>,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let trusted = write(directory.path());
        Self { directory, trusted }
    }

    /// Returns a connection to a server, if its certificate is the last one.
    pub(crate) async fn connect(
        &self,
        address: SocketAddr,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        self.secured(TcpStream::connect(address).await?).await
    }

    /// Returns a TLS connection over this one.
    async fn secured(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.trusted.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(name, stream).await
    }

    /// Writes the last certificate as the authority of the certificates, too.
    pub(crate) fn write_authority(&self) {
        let directory = self.directory.path();
        std::fs::copy(directory.join("tls.crt"), directory.join("ca.crt")).unwrap();
    }

    /// Replaces the certificate and its key.
    pub(crate) fn replace(&mut self) {
        self.trusted = write(self.directory.path());
    }
}

/// Writes a new certificate with its key.
fn write(directory: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(directory.join("tls.crt"), cert.pem()).unwrap();
    std::fs::write(directory.join("tls.key"), signing_key.serialize_pem()).unwrap();
    cert.der().clone()
}

/// Ports of tests. They are not those of the controller, which another one on this machine may have on all addresses, and below those that
/// the system gives to clients.
pub(crate) const PORT: u16 = 21443;
pub(crate) const METRICS_PORT: u16 = 21444;
pub(crate) const HEALTH_PORT: u16 = 21081;

/// Returns an address of this machine that nothing else uses, so that no other test can take its ports: every address that begins with 127
/// is one.
pub(crate) fn own_address() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id().to_be_bytes();
    let [.., high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    Ipv4Addr::new(127, process[3].max(1), high, low)
}

/// Waits until connections to all addresses are accepted.
pub(crate) async fn until_listening(addresses: &[SocketAddr]) {
    let listens = async {
        for address in addresses {
            while TcpStream::connect(address).await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    };
    let listening = tokio::time::timeout(PATIENCE, listens).await;
    listening.expect("connections are accepted");
}

pub(crate) fn at(address: SocketAddr) -> BindAddress {
    BindAddress::At {
        host: address.ip().to_string(),
        port: address.port(),
    }
}

/// A controller that serves webhooks.
pub(crate) struct Webhooks {
    pub(crate) certificates: Certificates,
    pub(crate) metrics: Arc<Metrics>,
    address: SocketAddr,
    health: SocketAddr,
    controller: Controller,
}

impl Webhooks {
    /// Starts a controller with those plugins, and waits until it serves webhooks.
    pub(crate) async fn start(cluster: &Cluster, plugins: Vec<Arc<dyn Plugin>>) -> Self {
        Self::start_with_deadline(cluster, plugins, UNLIMITED).await
    }

    /// Starts it with checks that may take so long.
    pub(crate) async fn start_with_deadline(
        cluster: &Cluster,
        plugins: Vec<Arc<dyn Plugin>>,
        deadline: Duration,
    ) -> Self {
        let webhooks = Self::start_with(cluster, plugins, Certificates::new(), deadline).await;
        webhooks.until_trusted().await;
        webhooks
    }

    /// Starts it with those certificates, and waits until it listens.
    pub(crate) async fn start_with(
        cluster: &Cluster,
        plugins: Vec<Arc<dyn Plugin>>,
        certificates: Certificates,
        deadline: Duration,
    ) -> Self {
        let own = own_address();
        let address = SocketAddr::from((own, PORT));
        let health = SocketAddr::from((own, HEALTH_PORT));
        let settings = Settings {
            metrics_bind_address: BindAddress::Off,
            health_probe_bind_address: at(health),
            webhook: WebhookSettings {
                bind_address: at(address),
                cert_dir: Some(certificates.directory.path().to_owned()),
                deadline,
                linger: Duration::ZERO,
            },
            ..Settings::default()
        };
        let mut kept = None;
        let metrics = |queue: &_| Arc::new(Metrics::new(queue));
        let plugins = |metrics: &Arc<Metrics>| {
            kept = Some(metrics.clone());
            plugins
        };
        let controller = Controller::start_with(cluster, settings, metrics, plugins).await;
        until_listening(&[health, address]).await;
        Self {
            certificates,
            metrics: kept.unwrap(),
            address,
            health,
            controller,
        }
    }

    /// Waits until the last certificate is served.
    pub(crate) async fn until_trusted(&self) {
        let connected = async {
            while self.connect().await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let connected = tokio::time::timeout(PATIENCE, connected).await;
        connected.expect("webhooks are served with the certificate");
    }

    /// Returns a connection from this address, before the TLS handshake.
    pub(crate) async fn connect_from(&self, address: Ipv4Addr) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((address, 0)))?;
        socket.connect(self.address).await
    }

    /// Returns a connection, if the certificate is the last one.
    pub(crate) async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        self.certificates.connect(self.address).await
    }

    /// Returns a TLS connection over this one.
    pub(crate) async fn secured(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        self.certificates.secured(stream).await
    }

    /// Posts a body, and returns the status code and the answer.
    pub(crate) async fn post(&self, path: &str, body: &[u8]) -> (u16, String) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = self.connect().await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        // A server that refuses a body closes the connection before it is sent.
        let _ = stream.write_all(body).await;
        // Without this, a task that has used up its turn leaves the rest in the buffer of the TLS stream.
        let _ = stream.flush().await;
        answer(&mut stream).await
    }

    /// Calls a webhook for an object, which replaces `old`. Returns the response.
    pub(crate) async fn review(&self, path: &str, new: &Value, old: Option<&Value>) -> Value {
        let text = |pointer| new.pointer(pointer).cloned().unwrap_or_default();
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "a-request",
                "kind": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "kind": text("/kind")},
                "resource": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "resource": "any"},
                "name": text("/metadata/name").as_str().unwrap_or_default(),
                "namespace": text("/metadata/namespace"),
                "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
                "userInfo": {"username": "author"},
                "object": new, "oldObject": old, "dryRun": false, "options": null,
            },
        });
        let (code, body) = self.post(path, review.to_string().as_bytes()).await;
        assert_eq!(code, 200, "{body}");
        let mut answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["kind"], "AdmissionReview");
        assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
        assert_eq!(answer["response"]["uid"], "a-request");
        answer["response"].take()
    }

    /// Waits until the readiness probe is answered with such a text.
    pub(crate) async fn until_probe(&self, is_wanted: impl Fn(&str) -> bool) {
        let wanted = async {
            loop {
                let mut answer = String::new();
                if let Ok(mut stream) = TcpStream::connect(self.health).await {
                    let request = "GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
                    stream.write_all(request.as_bytes()).await.unwrap();
                    stream.read_to_string(&mut answer).await.unwrap();
                }
                if is_wanted(&answer) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let wanted = tokio::time::timeout(PATIENCE, wanted).await;
        wanted.expect("the probe is answered as expected");
    }

    /// Its plugins.
    pub(crate) fn generations(&self) -> &Generations {
        self.controller.generations()
    }

    /// Stops the controller, and does not wait.
    pub(crate) fn abandon(self) {
        self.controller.abandon();
    }

    pub(crate) async fn stop(self) {
        self.controller.stop().await;
    }
}

/// Reads an answer until the server closes the connection.
pub(crate) async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> (u16, String) {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    (code.unwrap_or_default(), body.to_owned())
}

/// Returns a TrainJob with the changes of the mutating webhook.
pub(crate) fn patched(job: &Value, response: &Value) -> Value {
    let mut job = job.clone();
    if let Some(patch) = response["patch"].as_str() {
        use base64::Engine as _;
        let patch = base64::engine::general_purpose::STANDARD
            .decode(patch)
            .unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
        json_patch::patch(&mut job, &patch).unwrap();
    }
    job
}
