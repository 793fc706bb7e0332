//! A controller as a child process, and the resources that its metrics report.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result};
use trainyard_cluster::{
    ControlPlane, Port, Process, Reference, ReferenceLimits, eventually, http_get,
};

use crate::AT_ONCE;

/// The metric of Prometheus' clients for the CPU time of a process.
const CPU: &str = "process_cpu_seconds_total";

/// The implementation of the controller.
pub(crate) enum Contender<'a> {
    Trainyard(&'a Path),
    Reference(ReferenceLimits),
}

/// A controller that runs until this value is dropped.
pub(crate) enum Measured {
    Trainyard(Trainyard),
    Reference(Reference),
}

/// Our controller with its default log.
pub(crate) struct Trainyard {
    process: Process,
    metrics: Port,
    probes: Port,
}

impl Measured {
    /// Starts it, and waits until it is ready.
    pub(crate) async fn start(plane: &ControlPlane, contender: &Contender<'_>) -> Result<Self> {
        Ok(match contender {
            Contender::Trainyard(program) => {
                Self::Trainyard(Trainyard::start(plane, program, &[]).await?)
            }
            Contender::Reference(limits) => {
                Self::Reference(Reference::start(plane, *limits).await?)
            }
        })
    }

    async fn metrics(&self) -> Result<String> {
        match self {
            Self::Trainyard(controller) => http_get(controller.metrics.number(), "/metrics").await,
            Self::Reference(controller) => controller.metrics().await,
        }
    }

    /// Returns the CPU time so far, in seconds.
    pub(crate) async fn cpu(&self) -> Result<f64> {
        self.sum(CPU).await
    }

    /// Returns its current memory in MiB.
    pub(crate) async fn rss(&self) -> Result<f64> {
        Ok(self.sum("process_resident_memory_bytes").await? / 1024.0 / 1024.0)
    }

    /// Returns the number of its API calls so far.
    pub(crate) async fn calls(&self) -> Result<f64> {
        let name = match self {
            Self::Trainyard(_) => "trainyard_api_calls_total",
            Self::Reference(_) => "rest_client_requests_total",
        };
        self.sum(name).await
    }

    /// Returns the number of its reconciles so far.
    pub(crate) async fn reconciles(&self) -> Result<f64> {
        self.sum("controller_runtime_reconcile_total").await
    }

    /// Returns whether the queue is empty and no worker is active.
    pub(crate) async fn is_idle(&self) -> Result<bool> {
        let waiting = self.sum("workqueue_depth").await?;
        Ok(waiting + self.sum("controller_runtime_active_workers").await? == 0.0)
    }

    async fn sum(&self, name: &str) -> Result<f64> {
        sum(&self.metrics().await?, name)
    }
}

/// Returns the CPU time that the API server used so far, in seconds.
pub(crate) async fn api_server_cpu(plane: &ControlPlane) -> Result<f64> {
    let request = http::Request::get("/metrics").body(Vec::new())?;
    sum(&plane.client().request_text(request).await?, CPU)
}

/// Returns the sum of a metric over all label sets.
fn sum(metrics: &str, name: &str) -> Result<f64> {
    let lines = metrics.lines().filter(|line| {
        let metric = line.split(['{', ' ']).next();
        metric == Some(name)
    });
    let values = lines.map(|line| line.rsplit(' ').next().and_then(|value| value.parse().ok()));
    let values: Option<Vec<f64>> = values.collect();
    let values = values.filter(|values| !values.is_empty());
    let values = values.with_context(|| format!("the process has no metric {name}"))?;
    Ok(values.iter().sum())
}

impl Trainyard {
    /// Starts it with more arguments, and waits until it is ready.
    pub(crate) async fn start(
        plane: &ControlPlane,
        program: &Path,
        arguments: &[String],
    ) -> Result<Self> {
        let [metrics, probes] = [Port::find()?, Port::find()?];
        let address = |port: &Port| format!("127.0.0.1:{}", port.number());
        let mut command = Command::new(program);
        command
            .arg("controller")
            .arg("--leader-elect=false")
            .arg(format!("--concurrency={AT_ONCE}"))
            .arg(format!("--metrics-bind-address={}", address(&metrics)))
            .arg(format!("--health-probe-bind-address={}", address(&probes)))
            .args(arguments)
            .env("KUBECONFIG", plane.kubeconfig());
        let started = Self {
            process: Process::start("controller", &command, plane.folder())?,
            metrics,
            probes,
        };
        eventually("the controller is ready", async || {
            started.process.still_runs()?;
            Ok(http_get(started.probes.number(), "/readyz").await.ok())
        })
        .await?;
        Ok(started)
    }
}
