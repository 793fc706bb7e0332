//! A controller as a process of this one, so that its costs can be read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Port, http_get};

use crate::AT_ONCE;

/// Clock ticks of a second in /proc.
const TICKS: f64 = 100.0;

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
    child: Child,
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
        let log = fs::File::create(plane.folder().join("controller.log"))?;
        let child = command
            .env("KUBECONFIG", plane.kubeconfig())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let mut started = Self {
            child,
            metrics,
            counts,
            _ports: [probes, webhooks],
        };
        started.ready(plane).await?;
        Ok(started)
    }

    async fn ready(&mut self, plane: &ControlPlane) -> Result<()> {
        let [probes, _] = &self._ports;
        loop {
            if http_get(probes.number(), "/readyz").await.is_ok() {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                let log = fs::read_to_string(plane.folder().join("controller.log"))?;
                bail!("the controller ended: {status}\n{log}");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Seconds of CPU so far.
    pub(crate) fn cpu(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields = stat.rsplit(") ").next().context("no fields")?.split(' ');
        let ticks = fields
            .skip(11)
            .take(2)
            .map(str::parse::<f64>)
            .sum::<Result<f64, _>>()?;
        Ok(ticks / TICKS)
    }

    /// MiB of memory that it holds now.
    pub(crate) fn rss(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .context("no RSS")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib / 1024.0)
    }

    /// Its calls of the API server so far.
    pub(crate) async fn calls(&self) -> Result<f64> {
        let text = http_get(self.metrics.number(), "/metrics").await?;
        let lines = text.lines().filter(|line| line.starts_with(self.counts));
        let counts = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(counts.sum())
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn trainyard(program: &Path, metrics: &str, probes: &str) -> Command {
    let mut command = Command::new(program);
    command
        .arg("controller")
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
