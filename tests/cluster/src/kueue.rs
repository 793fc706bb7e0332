//! Kueue's controller with its webhooks, built from its published module, as a process outside the cluster.

use std::{env, fs, path::Path, process::Command};

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use trainyard_api::{Object, yaml};

use crate::{
    api::Write, control_plane::ControlPlane, deploy::apply, go, health, kubectl::kustomized,
    ports::Port, process::Process, resource::Resource, wait::eventually,
};

/// The folder of the modules, one for each release.
const MODULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kueue");
/// The variable that selects one of them.
const RELEASE: &str = "TRAINYARD_KUEUE";
const NEWEST: &str = "0.19";
const MODULE: &str = "sigs.k8s.io/kueue";
const PACKAGE: &str = "sigs.k8s.io/kueue/cmd/kueue";
/// The folder of its manifests in the module.
const MANIFESTS: &str = "config/default";
const NAMESPACE: &str = "kueue-system";
const ACCOUNT: &str = "kueue-controller-manager";
const SERVICE: &str = "kueue-webhook-service";
/// The Secret in which it keeps the certificate that it makes for its webhooks.
const CERTIFICATE: &str = "kueue-webhook-server-cert";
/// The file of its configuration in its ConfigMap.
const CONFIGURATION: &str = "controller_manager_config.yaml";

/// Kueue's controller, until this value is dropped.
pub struct KueueController {
    process: Process,
    _ports: [Port; 2],
}

impl KueueController {
    /// Applies Kueue's manifests, starts its controller with the permissions and the configuration in them, and waits until its webhooks
    /// answer. The release is the one that `TRAINYARD_KUEUE` names, or the newest. It is built if it is not in the cache, which takes
    /// minutes.
    ///
    /// # Errors
    /// Go is missing, the build failed, the API server refuses a manifest, or the program exited or was not ready in time.
    pub async fn start(plane: &ControlPlane) -> Result<Self> {
        let release = env::var(RELEASE).unwrap_or_else(|_| NEWEST.to_owned());
        let module = Path::new(MODULES).join(&release);
        let program = go::program(&format!("kueue-{release}"), &module, PACKAGE)?;
        let ports = [Port::find()?, Port::find()?];
        let [webhooks, probes] = ports.each_ref().map(Port::number);
        let mut published = None;
        for mut object in kustomized(&go::source(&module, MODULE)?.join(MANIFESTS))? {
            if object.kind == "ConfigMap" {
                published = Some(configuration_in(&object)?);
            }
            // It runs as a process, which no other API server calls.
            if !["Deployment", "APIService"].contains(&object.kind.as_str()) {
                call_this_machine(&mut object, webhooks);
                apply(plane, &object, false).await?;
            }
        }
        let certificates = plane.folder().join("kueue");
        fs::create_dir_all(&certificates)?;
        let mut configuration = published.context("the manifests have no configuration")?;
        adapt(&mut configuration, &certificates, webhooks, probes);
        let file = plane.folder().join("kueue.yaml");
        fs::write(&file, configuration.to_string())?;
        let account = plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT);
        let mut command = Command::new(program);
        command
            .arg(format!("--config={}", file.display()))
            .arg("--zap-log-level=2")
            .env("KUBECONFIG", account.await?);
        let process = Process::start("kueue", &command, plane.folder())?;
        mount_certificate(plane, &certificates, &process).await?;
        let url = format!("http://127.0.0.1:{probes}");
        let client = health::client(&url, &plane.certificates.authority)?;
        health::wait("Kueue", &client, "/readyz", || process.still_runs()).await?;
        webhooks_answer(plane, &process).await?;
        Ok(Self {
            process,
            _ports: ports,
        })
    }

    /// Checks that it is running.
    ///
    /// # Errors
    /// It exited: with the end of its log.
    pub fn still_runs(&self) -> Result<()> {
        self.process.still_runs()
    }

    /// Returns the end of its log.
    pub fn last_words(&self) -> String {
        self.process.last_words()
    }
}

fn configuration_in(config_map: &Object) -> Result<Value> {
    let text = config_map.value.pointer("/data");
    let text = text.and_then(|data| data.get(CONFIGURATION)?.as_str());
    let mut documents = yaml::read(text.context("the ConfigMap has no configuration")?).into_iter();
    let document = documents.next().context("the configuration is empty")??;
    Ok(document.value)
}

/// Changes what differs on this machine: the ports, the folder of the certificate, and no aggregated API, which needs a Service.
fn adapt(configuration: &mut Value, certificates: &Path, webhooks: u16, probes: u16) {
    configuration["health"] = json!({"healthProbeBindAddress": format!("127.0.0.1:{probes}")});
    configuration["metrics"] = json!({"bindAddress": "0"});
    configuration["webhook"] =
        json!({"host": "127.0.0.1", "port": webhooks, "certDir": certificates});
    configuration["leaderElection"] = json!({"leaderElect": false});
    configuration["featureGates"] = json!({"VisibilityOnDemand": false});
}

/// Makes the API server call a port of this machine for the webhooks. The name of the Service stays that in the certificate.
fn call_this_machine(object: &mut Object, port: u16) {
    let value = &mut object.value;
    if object.kind == "Service" && object.metadata.name == SERVICE {
        value["spec"] = json!({"type": "ExternalName", "externalName": "127.0.0.1"});
    }
    let conversion = value.pointer_mut("/spec/conversion/webhook/clientConfig/service");
    conversion
        .into_iter()
        .for_each(|service| service["port"] = port.into());
    let webhooks = value.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten() {
        if let Some(service) = webhook.pointer_mut("/clientConfig/service") {
            service["port"] = port.into();
        }
    }
}

/// Writes the certificate into files when it is in the Secret, as a kubelet does.
async fn mount_certificate(plane: &ControlPlane, folder: &Path, process: &Process) -> Result<()> {
    let secrets = Resource::namespaced("/api/v1", "secrets");
    let secrets = plane.api(&secrets, NAMESPACE);
    eventually("Kueue has a certificate", async || {
        process.still_runs()?;
        let secret = secrets.get(CERTIFICATE).await?.accepted()?;
        let data = secret.get("data").and_then(Value::as_object);
        let Some(data) = data.filter(|data| !data.is_empty()) else {
            return Ok(None);
        };
        // Kueue waits for this file.
        let (last, others): (Vec<_>, Vec<_>) =
            data.iter().partition(|(name, _)| *name == "tls.crt");
        for (name, text) in others.into_iter().chain(last) {
            let bytes = STANDARD.decode(text.as_str().unwrap_or_default())?;
            fs::write(folder.join(name), bytes)?;
        }
        Ok(Some(()))
    })
    .await
}

/// Waits until a webhook answers, and the API server converts objects.
async fn webhooks_answer(plane: &ControlPlane, process: &Process) -> Result<()> {
    let queues = Resource::cluster_wide("/apis/kueue.x-k8s.io/v1beta1", "clusterqueues");
    let queue = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "answers"}, "spec": {},
    });
    let write = Write {
        dry_run: true,
        ..Write::default()
    };
    eventually("Kueue's webhooks answer", async || {
        process.still_runs()?;
        let answer = plane.api(&queues, "").create(&queue, &write).await?;
        Ok(answer.accepted().ok().map(drop))
    })
    .await
}
