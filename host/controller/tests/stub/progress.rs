//! A controller in this process with a status server, and a TrainJob whose pods report progress to it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use tokio_rustls::client::TlsStream;
use trainyard_controller::{
    metrics::Metrics,
    serve::BindAddress,
    settings::{FeatureGates, Settings},
    status_server::StatusServerSettings,
    webhook::WebhookSettings,
};
use trainyard_model::{plugin::Plugin, plugin_info};
use trainyard_policies::TRAIN_JOB_STATUS;
use trainyard_sdk::native::NativePlugin;

use super::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
    webhooks::{Certificates, PORT, answer, at, own_address},
};

/// A body with progress.
pub(crate) const HALF: &str =
    r#"{"trainerStatus": {"progressPercentage": 50, "lastUpdatedTime": "2026-11-27T09:00:00Z"}}"#;

/// A controller with a status server.
pub(crate) struct StatusServer {
    pub(crate) certificates: Certificates,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) address: SocketAddr,
    controller: Controller,
}

/// Returns the path of a TrainJob's status.
pub(crate) fn path(namespace: &str, name: &str) -> String {
    format!("/apis/{}", audience(namespace, name))
}

/// Returns the audience of the tokens of a TrainJob.
pub(crate) fn audience(namespace: &str, name: &str) -> String {
    format!("trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{name}/status")
}

/// Creates a TrainJob, whose runtime has a trainer.
pub(crate) fn put_train_job(cluster: &Cluster, namespace: &str, name: &str) {
    let mut runtime = runtime("plain", &[]);
    let node = &mut runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"];
    node["metadata"]["labels"] = json!({"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"});
    cluster.put(runtime);
    cluster.put(job(namespace, name, "plain", false));
}

/// Creates a pod of a TrainJob's JobSet as the JobSet controller does.
pub(crate) fn put_pod(cluster: &Cluster, namespace: &str, name: &str, job_set: &str) {
    let found = cluster.get("jobsets", namespace, job_set).unwrap();
    cluster.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": namespace, "name": name, "uid": format!("uid-of-{name}"),
            "labels": {
                "jobset.sigs.k8s.io/jobset-name": job_set,
                "jobset.sigs.k8s.io/jobset-uid": found["metadata"]["uid"],
            },
        },
    }));
}

/// Returns the user of a pod's tokens.
pub(crate) fn user(namespace: &str, pod: &str) -> Value {
    json!({
        "username": format!("system:serviceaccount:{namespace}:default"),
        "extra": {
            "authentication.kubernetes.io/pod-name": [pod],
            "authentication.kubernetes.io/pod-uid": [format!("uid-of-{pod}")],
        },
    })
}

/// Returns a token with these claims, which the API server does not accept yet.
pub(crate) fn claims(audience: &str, namespace: &str, pod: &str) -> String {
    let claims = json!({
        "aud": [audience], "exp": 4_000_000_000_u64,
        "kubernetes.io": {"namespace": namespace, "pod": {"name": pod, "uid": format!("uid-of-{pod}")}},
    });
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// Returns a token of a pod for a TrainJob, which the API server accepts.
pub(crate) fn token(cluster: &Cluster, namespace: &str, pod: &str, job: &str) -> String {
    let audience = audience(namespace, job);
    let token = claims(&audience, namespace, pod);
    cluster.accept(&token, &audience, user(namespace, pod));
    token
}

/// Settings that limit no writes.
pub(crate) fn unlimited() -> StatusServerSettings {
    StatusServerSettings {
        qps: 0.0,
        ..StatusServerSettings::default()
    }
}

impl StatusServer {
    /// Starts a controller, and waits until it has created the JobSet of each TrainJob.
    pub(crate) async fn start(cluster: &Cluster, settings: StatusServerSettings) -> Self {
        let certificates = Certificates::new();
        certificates.write_authority();
        Self::start_with(cluster, settings, certificates).await
    }

    /// Starts a controller with those certificates.
    pub(crate) async fn start_with(
        cluster: &Cluster,
        settings: StatusServerSettings,
        certificates: Certificates,
    ) -> Self {
        let address = SocketAddr::from((own_address(), PORT));
        let settings = Settings {
            metrics_bind_address: BindAddress::Off,
            health_probe_bind_address: BindAddress::Off,
            feature_gates: "TrainJobStatus=true".parse::<FeatureGates>().unwrap(),
            webhook: WebhookSettings {
                bind_address: BindAddress::Off,
                cert_dir: Some(certificates.directory.path().to_owned()),
                linger: Duration::ZERO,
                ..WebhookSettings::default()
            },
            status_server: StatusServerSettings {
                bind_address: at(address),
                linger: Duration::ZERO,
                ..settings
            },
            ..Settings::default()
        };
        let mut kept = None;
        let metrics = |queue: &_| Arc::new(Metrics::new(queue));
        let plugins = |metrics: &Arc<Metrics>| {
            kept = Some(metrics.clone());
            let (_, parts) = TRAIN_JOB_STATUS;
            let plugin = NativePlugin::new(parts, plugin_info::Settings::built_in()).unwrap();
            vec![Arc::new(plugin) as Arc<dyn Plugin>]
        };
        let controller = Controller::start_with(cluster, settings, metrics, plugins).await;
        let jobs = cluster.count("trainjobs");
        let all = |cluster: &Cluster| cluster.count("jobsets") == jobs;
        cluster.until("each TrainJob has a JobSet", all).await;
        Self {
            certificates,
            metrics: kept.unwrap(),
            address,
            controller,
        }
    }

    pub(crate) async fn connect(&self) -> TlsStream<TcpStream> {
        self.certificates.connect(self.address).await.unwrap()
    }

    /// Posts a body with a token, and returns the status code and the answer.
    pub(crate) async fn post(&self, path: &str, token: &str, body: &str) -> (u16, Value) {
        let mut stream = self.connect().await;
        let request = request("POST", path, &format!("Bearer {token}"), body);
        let _ = stream.write_all(request.as_bytes()).await;
        let _ = stream.flush().await;
        parsed(answer(&mut stream).await)
    }

    /// Sends any request, and returns the status code and the answer.
    pub(crate) async fn send(&self, request: &str) -> (u16, Value) {
        let mut stream = self.connect().await;
        let _ = stream.write_all(request.as_bytes()).await;
        let _ = stream.flush().await;
        parsed(answer(&mut stream).await)
    }

    pub(crate) async fn stop(self) {
        self.controller.stop().await;
    }
}

/// Returns a request as text.
pub(crate) fn request(method: &str, path: &str, authorization: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: {authorization}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn parsed((code, body): (u16, String)) -> (u16, Value) {
    (
        code,
        serde_json::from_str(&body).unwrap_or(Value::String(body)),
    )
}

/// Checks that an answer is a `Status` of Kubernetes, and returns its message.
pub(crate) fn refusal((code, body): (u16, Value), wanted: u16, reason: &str) -> String {
    assert_eq!((code, &body["code"]), (wanted, &json!(wanted)), "{body}");
    assert_eq!(body["reason"], reason, "{body}");
    let named = (&body["kind"], &body["apiVersion"], &body["status"]);
    assert_eq!(named, (&json!("Status"), &json!("v1"), &json!("Failure")));
    body["message"].as_str().unwrap().to_owned()
}
