//! A controller as a process of this one, and what its metrics say that it takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Port, Process, eventually, http_get};

use crate::AT_ONCE;

/// Whose controller.
pub(crate) enum Contender<'a> {
    Trainyard(&'a Path),
    Reference(&'a Path, Limits),
}

/// What the reference is allowed.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Calls a second; twice as many after a pause.
    pub(crate) rate: u32,
    /// TrainJobs at once.
    pub(crate) at_once: usize,
}

/// A controller that runs until this is dropped.
pub(crate) struct Measured {
    process: Process,
    metrics: Port,
    /// The metric that counts its calls.
    counts: &'static str,
    _ports: [Port; 2],
}

impl Measured {
    /// Starts it, and waits until it is ready.
    pub(crate) async fn start(plane: &ControlPlane, contender: &Contender<'_>) -> Result<Self> {
        let [metrics, probes, webhooks] = [Port::find()?, Port::find()?, Port::find()?];
        let address = |port: &Port| format!("127.0.0.1:{}", port.number());
        let (mut command, counts) = match contender {
            Contender::Trainyard(program) => {
                let command = trainyard(program, &address(&metrics), &address(&probes));
                (command, "trainyard_api_calls_total")
            }
            Contender::Reference(program, limits) => {
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
                let command = reference(plane, program, &configuration)?;
                (command, "rest_client_requests_total")
            }
        };
        command.env("KUBECONFIG", plane.kubeconfig());
        let started = Self {
            process: Process::start("controller", &command, plane.folder())?,
            metrics,
            counts,
            _ports: [probes, webhooks],
        };
        started.ready().await?;
        Ok(started)
    }

    async fn ready(&self) -> Result<()> {
        let [probes, _] = &self._ports;
        eventually("the controller is ready", async || {
            self.process.still_runs()?;
            Ok(http_get(probes.number(), "/readyz").await.ok())
        })
        .await
        .map(drop)
    }

    /// Seconds of CPU so far.
    pub(crate) async fn cpu(&self) -> Result<f64> {
        self.sum("process_cpu_seconds_total").await
    }

    /// MiB of memory that it holds now.
    pub(crate) async fn rss(&self) -> Result<f64> {
        Ok(self.sum("process_resident_memory_bytes").await? / 1024.0 / 1024.0)
    }

    /// Its calls of the API server so far.
    pub(crate) async fn calls(&self) -> Result<f64> {
        self.sum(self.counts).await
    }

    /// Its reconciles so far.
    pub(crate) async fn reconciles(&self) -> Result<f64> {
        self.sum("controller_runtime_reconcile_total").await
    }

    /// Whether no TrainJob waits for a worker, and none is worked on.
    pub(crate) async fn is_idle(&self) -> Result<bool> {
        let waiting = self.sum("workqueue_depth").await?;
        Ok(waiting + self.sum("controller_runtime_active_workers").await? == 0.0)
    }

    /// The sum of a metric over all of its labels.
    async fn sum(&self, name: &str) -> Result<f64> {
        let text = http_get(self.metrics.number(), "/metrics").await?;
        let lines = text.lines().filter(|line| {
            let metric = line.split(['{', ' ']).next();
            metric == Some(name)
        });
        let values = lines.map(|line| line.rsplit(' ').next().and_then(|value| value.parse().ok()));
        let values: Option<Vec<f64>> = values.collect();
        let values = values.filter(|values| !values.is_empty());
        let values = values.with_context(|| format!("the controller has no metric {name}"))?;
        Ok(values.iter().sum())
    }
}

fn trainyard(program: &Path, metrics: &str, probes: &str) -> Command {
    let mut command = Command::new(program);
    command
        .arg("controller")
        .arg("--leader-elect=false")
        .arg(format!("--concurrency={AT_ONCE}"))
        .arg(format!("--metrics-bind-address={metrics}"))
        .arg(format!("--health-probe-bind-address={probes}"));
    command
}

fn reference(plane: &ControlPlane, program: &Path, configuration: &Value) -> Result<Command> {
    let file = plane.folder().join("reference.yaml");
    fs::write(&file, configuration.to_string())?;
    let mut command = Command::new(program);
    command
        .arg(format!("--config={}", file.display()))
        .env("TMPDIR", with_certificates(plane)?);
    Ok(command)
}

/// The folder of temporary files below which the reference looks for its webhooks' certificates.
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
