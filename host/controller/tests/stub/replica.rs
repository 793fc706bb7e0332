//! A replica that creates its certificate itself, and clients that trust what the webhook configurations say.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use trainyard_controller::{
    certificate::{CertManagement, Clock as _},
    metrics::Metrics,
    settings::{SecureServing, Settings},
    webhook::WebhookSettings,
};

use super::{
    clock::TestClock,
    cluster::Cluster,
    controller::{Controller, job},
    webhooks::{HEALTH_PORT, METRICS_PORT, PORT, answer, at, own_address, until_listening},
};

/// The webhook that clients call.
const VALIDATE: &str = "/validate-trainer-kubeflow-org-v1alpha1-trainjob";

/// The kinds and names of the webhook configurations.
pub(crate) const CONFIGURATIONS: [(&str, &str, &str); 2] = [
    (
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        "defaulter.trainer.kubeflow.org",
    ),
    (
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "validator.trainer.kubeflow.org",
    ),
];

/// Returns a webhook configuration with two webhooks that trust a bundle.
pub(crate) fn configuration(index: usize, bundle: &str) -> Value {
    let (kind, _, name) = CONFIGURATIONS[index];
    let bundle = BASE64_STANDARD.encode(bundle);
    let webhook = |name: &str| {
        json!({
            "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"], "newField": 1,
            "clientConfig": {"caBundle": bundle, "service": {"name": "kubeflow-trainer-webhooks", "namespace": "default"}},
        })
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "webhooks": [webhook("a"), webhook("b")],
    })
}

/// Returns the bundle of the last webhook of a configuration.
pub(crate) fn bundle(cluster: &Cluster, index: usize) -> String {
    let (_, plural, name) = CONFIGURATIONS[index];
    let configuration = cluster.get(plural, "", name).unwrap();
    let bundle = configuration["webhooks"][1]["clientConfig"]["caBundle"].as_str();
    let bundle = BASE64_STANDARD.decode(bundle.unwrap_or_default()).unwrap();
    String::from_utf8(bundle).unwrap()
}

/// Returns a text of the Secret with the certificate.
pub(crate) fn secret_text(cluster: &Cluster, key: &str) -> Option<String> {
    let secret = cluster.get("secrets", "default", "kubeflow-trainer-webhook-cert")?;
    let text = BASE64_STANDARD
        .decode(secret["data"][key].as_str()?)
        .unwrap();
    Some(String::from_utf8(text).unwrap())
}

/// A controller that creates its certificate.
pub(crate) struct Replica {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) address: SocketAddr,
    pub(crate) metrics_address: SocketAddr,
    health: SocketAddr,
    controller: Controller,
}

impl Replica {
    /// Starts it, and waits until it listens.
    pub(crate) async fn start(cluster: &Cluster, clock: &TestClock) -> Self {
        let own = own_address();
        let [address, metrics_address, health] =
            [PORT, METRICS_PORT, HEALTH_PORT].map(|port| SocketAddr::from((own, port)));
        let settings = Settings {
            metrics_bind_address: at(metrics_address),
            metrics_secure_serving: SecureServing::Always,
            health_probe_bind_address: at(health),
            webhook: WebhookSettings {
                bind_address: at(address),
                cert_dir: None,
                deadline: Duration::from_secs(3600),
                linger: Duration::ZERO,
            },
            cert_management: CertManagement {
                enable: true,
                ..CertManagement::default()
            },
            ..Settings::default()
        };
        let mut kept = None;
        let metrics = |queue: &_| Arc::new(Metrics::new(queue));
        let plugins = |metrics: &Arc<Metrics>| {
            kept = Some(metrics.clone());
            Vec::new()
        };
        let clock = Arc::new(clock.clone());
        let controller = Controller::start_at(cluster, clock, settings, metrics, plugins).await;
        until_listening(&[address, health]).await;
        Self {
            metrics: kept.unwrap(),
            address,
            metrics_address,
            health,
            controller,
        }
    }

    /// Returns the answer to the readiness probe.
    pub(crate) async fn probe(&self) -> String {
        let mut answer = String::new();
        if let Ok(mut stream) = TcpStream::connect(self.health).await {
            let request = "GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(request.as_bytes()).await;
            let _ = stream.read_to_string(&mut answer).await;
        }
        answer
    }

    /// Waits until the probe is answered with such a text, while `meanwhile` is called.
    pub(crate) async fn until_probe(&self, wanted: &str, meanwhile: impl Fn()) {
        let waiting = async {
            while !self.probe().await.contains(wanted) {
                meanwhile();
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(600), waiting).await;
        let answer = self.probe().await;
        waited.unwrap_or_else(|_| panic!("not answered with {wanted}: {answer}"));
    }

    pub(crate) async fn stop(self) {
        self.controller.stop().await;
    }
}

/// Connects to the Service with those authorities and that time.
pub(crate) async fn connect(
    address: SocketAddr,
    authorities: &str,
    clock: &TestClock,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        roots.add(authority.unwrap()).unwrap();
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_details(provider, Arc::new(clock.clone()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("kubeflow-trainer-webhooks.default.svc").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector
        .connect(name, TcpStream::connect(address).await?)
        .await
}

/// An API server that notices changes of a webhook configuration late, and calls all endpoints without pause.
pub(crate) struct Caller {
    cluster: Cluster,
    clock: TestClock,
    late: Duration,
    endpoints: Mutex<Vec<SocketAddr>>,
    answered: AtomicUsize,
    refused: Mutex<Vec<String>>,
}

impl Caller {
    pub(crate) fn start(
        cluster: &Cluster,
        clock: &TestClock,
        late: u64,
    ) -> (Arc<Self>, JoinHandle<()>) {
        let caller = Arc::new(Self {
            cluster: cluster.clone(),
            clock: clock.clone(),
            late: Duration::from_secs(late),
            endpoints: Mutex::default(),
            answered: AtomicUsize::new(0),
            refused: Mutex::default(),
        });
        let calls = tokio::spawn(caller.clone().calls());
        (caller, calls)
    }

    async fn calls(self: Arc<Self>) {
        let mut bundles: VecDeque<(SystemTime, String)> = VecDeque::new();
        loop {
            let (now, current) = (self.clock.now(), bundle(&self.cluster, 1));
            if bundles.back().is_none_or(|(_, last)| *last != current) {
                bundles.push_back((now, current));
            }
            let seen = now - self.late;
            while bundles.get(1).is_some_and(|(time, _)| *time <= seen) {
                bundles.pop_front();
            }
            let trusted = bundles[0].1.clone();
            let endpoints = self.endpoints.lock().unwrap().clone();
            for endpoint in endpoints {
                match self.call(endpoint, &trusted).await {
                    Ok(()) => drop(self.answered.fetch_add(1, Ordering::SeqCst)),
                    // The endpoint may have been removed meanwhile.
                    Err(why) if self.endpoints.lock().unwrap().contains(&endpoint) => {
                        let late = self.late;
                        let why = format!("{late:?} late, at {now:?}, by {endpoint}: {why}");
                        self.refused.lock().unwrap().push(why);
                    }
                    Err(_) => {}
                }
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn call(&self, endpoint: SocketAddr, trusted: &str) -> Result<(), String> {
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "a", "kind": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "kind": "TrainJob"},
                "resource": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "resource": "trainjobs"},
                "namespace": "a", "name": "job", "operation": "CREATE", "userInfo": {}, "object": job("a", "job", "plain", false),
            },
        })
        .to_string();
        let mut stream = connect(endpoint, trusted, &self.clock)
            .await
            .map_err(|error| error.to_string())?;
        let request = format!(
            "POST {VALIDATE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{review}",
            review.len()
        );
        let sent = stream.write_all(request.as_bytes()).await;
        sent.map_err(|error| error.to_string())?;
        stream.flush().await.map_err(|error| error.to_string())?;
        match answer(&mut stream).await {
            (200, text) if text.contains("\"allowed\":true") => Ok(()),
            (code, text) => Err(format!("{code} {text}")),
        }
    }

    pub(crate) fn set_endpoints(&self, endpoints: &[&Replica]) {
        let endpoints = endpoints.iter().map(|it| it.address).collect();
        *self.endpoints.lock().unwrap() = endpoints;
    }

    pub(crate) fn answered(&self) -> usize {
        self.answered.load(Ordering::SeqCst)
    }

    pub(crate) fn refused(&self) -> Vec<String> {
        self.refused.lock().unwrap().clone()
    }
}
