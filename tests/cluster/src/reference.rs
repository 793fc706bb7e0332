//! The reference's controller, built from its published module, as a process of this one.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use serde_json::json;

use crate::{
    control_plane::ControlPlane, go, ports::Port, process::Process, trainyard::http_get,
    wait::eventually,
};

/// The module with its version.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reference/controller");
const PACKAGE: &str = "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager";

/// The limits of the reference.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceLimits {
    /// The maximum rate of calls per second. The burst is twice that.
    pub rate: u32,
    /// The number of TrainJobs that are reconciled concurrently.
    pub at_once: usize,
}

impl ReferenceLimits {
    /// The defaults of its release.
    pub const SHIPPED: Self = Self {
        rate: 50,
        at_once: 5,
    };
}

/// The reference's controller, with all permissions, until this value is dropped. Nothing calls its webhooks by itself.
pub struct Reference {
    process: Process,
    probes: Port,
    metrics: Port,
    webhooks: Port,
}

impl Reference {
    /// Starts it, and waits until it is ready. The program is built if it is not in the cache, which takes minutes.
    ///
    /// # Errors
    /// Go is missing, the build failed, or the program exited or was not ready in time.
    pub async fn start(plane: &ControlPlane, limits: ReferenceLimits) -> Result<Self> {
        let [probes, metrics, webhooks] = [Port::find()?, Port::find()?, Port::find()?];
        let address = |port: &Port| format!("127.0.0.1:{}", port.number());
        let configuration = json!({
            "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": address(&probes)},
            "metrics": {"bindAddress": address(&metrics), "secureServing": false},
            "webhook": {"host": "127.0.0.1", "port": webhooks.number()},
            "leaderElection": {"leaderElect": false},
            "controller": {"groupKindConcurrency": {"TrainJob.trainer.kubeflow.org": limits.at_once}},
            "certManagement": {"enable": false},
            "clientConnection": {"qps": limits.rate, "burst": 2 * limits.rate},
        });
        let file = plane.folder().join("reference.yaml");
        fs::write(&file, configuration.to_string())?;
        let mut command = Command::new(go::program(
            "reference-controller",
            Path::new(FOLDER),
            PACKAGE,
        )?);
        command
            .arg(format!("--config={}", file.display()))
            .env("TMPDIR", with_certificates(plane)?)
            .env("KUBECONFIG", plane.kubeconfig());
        let started = Self {
            process: Process::start("reference", &command, plane.folder())?,
            probes,
            metrics,
            webhooks,
        };
        started.until_ready().await?;
        Ok(started)
    }

    async fn until_ready(&self) -> Result<()> {
        eventually("the reference is ready", async || {
            self.process.still_runs()?;
            Ok(http_get(self.probes.number(), "/readyz").await.ok())
        })
        .await
        .map(drop)
    }

    /// Returns its metrics.
    ///
    /// # Errors
    /// It does not serve any.
    pub async fn metrics(&self) -> Result<String> {
        http_get(self.metrics.number(), "/metrics").await
    }

    /// Returns the port of its webhooks.
    pub fn webhook_port(&self) -> u16 {
        self.webhooks.number()
    }

    /// Returns the process.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

/// Returns the temporary folder in which the reference looks for its webhooks' certificates.
fn with_certificates(plane: &ControlPlane) -> Result<PathBuf> {
    let folder = plane.folder().join("reference");
    let certificates = folder.join("k8s-webhook-server/serving-certs");
    fs::create_dir_all(&certificates)?;
    for file in ["tls.crt", "tls.key"] {
        fs::copy(
            plane.serving_certificate().join(file),
            certificates.join(file),
        )?;
    }
    Ok(folder)
}
