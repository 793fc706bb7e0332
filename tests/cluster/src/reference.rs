//! The reference's controller, built from its published module, as a process of this one.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::{
    control_plane::ControlPlane,
    go,
    ports::Port,
    process::Process,
    trainyard::{http_get, sum_of},
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

/// The ports of the reference on this machine. In a cluster, its pods have fixed ones.
#[derive(Clone)]
pub struct ReferencePorts {
    probes: Arc<Port>,
    metrics: Arc<Port>,
    webhooks: Arc<Port>,
}

impl ReferencePorts {
    /// Finds free ports.
    ///
    /// # Errors
    /// There are none.
    pub fn find() -> Result<Self> {
        Ok(Self {
            probes: Arc::new(Port::find()?),
            metrics: Arc::new(Port::find()?),
            webhooks: Arc::new(Port::find()?),
        })
    }

    /// Returns the members of its configuration, and of `manager.config` in the values of its chart, that make it use these ports and no
    /// certificate of its own.
    #[must_use]
    pub fn configuration(&self) -> Value {
        let address = |port: &Port| format!("127.0.0.1:{}", port.number());
        json!({
            "health": {"healthProbeBindAddress": address(&self.probes)},
            "metrics": {"bindAddress": address(&self.metrics), "secureServing": false},
            "webhook": {"host": "127.0.0.1", "port": self.webhooks.number()},
            "certManagement": {"enable": false},
        })
    }
}

/// The reference's controller, until this value is dropped. Nothing calls its webhooks by itself.
pub struct Reference {
    process: Process,
    ports: ReferencePorts,
}

impl Reference {
    /// Starts it with all permissions, and waits until it is ready. The program is built if it is not in the cache, which takes minutes.
    ///
    /// # Errors
    /// Go is missing, the build failed, or the program exited or was not ready in time.
    pub async fn start(plane: &ControlPlane, limits: ReferenceLimits) -> Result<Self> {
        let ports = ReferencePorts::find()?;
        let mut configuration = ports.configuration();
        let others = json!({
            "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
            "kind": "Configuration",
            "leaderElection": {"leaderElect": false},
            "controller": {"groupKindConcurrency": {"TrainJob.trainer.kubeflow.org": limits.at_once}},
            "clientConnection": {"qps": limits.rate, "burst": 2 * limits.rate},
        });
        let all = configuration.as_object_mut().context("no object")?;
        all.extend(others.as_object().cloned().unwrap_or_default());
        let configuration = configuration.to_string();
        Self::start_with(plane, plane.kubeconfig(), &configuration, ports).await
    }

    /// Starts it with the permissions of a kubeconfig file and with this configuration, which has [these](ReferencePorts::configuration)
    /// members. Waits until it is ready.
    ///
    /// # Errors
    /// Go is missing, the build failed, or the program exited or was not ready in time.
    pub async fn start_with(
        plane: &ControlPlane,
        kubeconfig: &Path,
        configuration: &str,
        ports: ReferencePorts,
    ) -> Result<Self> {
        let file = plane.folder().join("reference.yaml");
        fs::write(&file, configuration)?;
        let mut command = Command::new(go::program(
            "reference-controller",
            Path::new(FOLDER),
            PACKAGE,
        )?);
        command
            .arg(format!("--config={}", file.display()))
            .env("TMPDIR", with_certificates(plane)?)
            .env("KUBECONFIG", kubeconfig);
        let started = Self {
            process: Process::start("reference", &command, plane.folder())?,
            ports,
        };
        started.until_ready().await?;
        Ok(started)
    }

    async fn until_ready(&self) -> Result<()> {
        eventually("the reference is ready", async || {
            self.process.still_runs()?;
            Ok(http_get(self.ports.probes.number(), "/readyz").await.ok())
        })
        .await
        .map(drop)
    }

    /// Returns its metrics.
    ///
    /// # Errors
    /// It does not serve any.
    pub async fn metrics(&self) -> Result<String> {
        http_get(self.ports.metrics.number(), "/metrics").await
    }

    /// Waits until it leads, has ended this many reconciles of TrainJobs since it started, and has nothing more to do.
    ///
    /// # Errors
    /// It has not in time, or serves no metrics.
    pub async fn until_reconciled(&self, count: usize) -> Result<()> {
        eventually("the reference has reconciled all TrainJobs", async || {
            let metrics = self.metrics().await?;
            let of = |name: &str, label: &str| {
                sum_of(&metrics, name, &format!("{label}=\"trainjob_controller\""))
            };
            let ended = of("controller_runtime_reconcile_total", "controller");
            let waits_or_runs = of("workqueue_depth", "name")
                + of("controller_runtime_active_workers", "controller");
            Ok((ended >= count as f64 && waits_or_runs == 0.0).then_some(()))
        })
        .await
    }

    /// Returns the port of its webhooks.
    pub fn webhook_port(&self) -> u16 {
        self.ports.webhooks.number()
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
