//! The controller as users run it: the program, with flags, on a cluster.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{control_plane::ControlPlane, ports::Port, process::Process, wait::eventually};

/// How long a controller must have no work before it counts as idle, which is longer than the delay of a watch event.
const IDLE: Duration = Duration::from_secs(1);

/// `trainyard controller`, until this value is dropped.
pub struct Trainyard {
    process: Process,
    health: Port,
    metrics: Port,
}

impl Trainyard {
    /// Starts the controller on the cluster that the kubeconfig file names, and waits until it is ready.
    ///
    /// # Errors
    /// The program does not exist, exited, or was not ready in time.
    pub async fn start(
        plane: &ControlPlane,
        kubeconfig: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Self> {
        Self::start_release(&Self::program()?, plane, kubeconfig, arguments).await
    }

    /// Starts the controller without waiting until it is ready.
    ///
    /// # Errors
    /// The program does not exist.
    pub fn start_unready(
        plane: &ControlPlane,
        kubeconfig: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Self> {
        Self::start_logging_by_default(plane, kubeconfig, with_log(arguments))
    }

    /// Starts the controller with the default log format, without waiting until it is ready.
    ///
    /// # Errors
    /// The program does not exist.
    pub fn start_logging_by_default(
        plane: &ControlPlane,
        kubeconfig: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Self> {
        Self::start_program(&Self::program()?, plane, kubeconfig, arguments)
    }

    /// Starts the controller of another release, and waits until it is ready.
    ///
    /// # Errors
    /// The program does not exist, exited, or was not ready in time.
    pub async fn start_release(
        program: &Path,
        plane: &ControlPlane,
        kubeconfig: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Self> {
        let started = Self::start_program(program, plane, kubeconfig, with_log(arguments))?;
        started.until_ready().await?;
        Ok(started)
    }

    fn start_program(
        program: &Path,
        plane: &ControlPlane,
        kubeconfig: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Self> {
        static STARTS: AtomicUsize = AtomicUsize::new(0);
        let (health, metrics) = (Port::find()?, Port::find()?);
        let mut command = Command::new(program);
        command
            // As in a cluster. With it, the symbols of backtraces stay in memory.
            .env_remove("RUST_BACKTRACE")
            .arg("controller")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg(format!(
                "--health-probe-bind-address=127.0.0.1:{}",
                health.number()
            ))
            .arg(format!(
                "--metrics-bind-address=127.0.0.1:{}",
                metrics.number()
            ))
            .args(arguments);
        let name = format!("trainyard-{}", STARTS.fetch_add(1, Ordering::Relaxed));
        let process = Process::start(&name, &command, plane.folder())?;
        Ok(Self {
            process,
            health,
            metrics,
        })
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// It exited, or was not ready in time.
    pub async fn until_ready(&self) -> Result<()> {
        eventually("the controller is ready", async || {
            self.process.still_runs()?;
            let answer = get(self.health.number(), "/readyz").await;
            Ok(answer.ok().filter(|(code, _)| *code == 200))
        })
        .await
        .map(drop)
    }

    /// Returns the answer of the readiness probe: 200, or 503 with the reasons.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn readiness(&self) -> Result<(u16, String)> {
        self.probe("/readyz").await
    }

    /// Returns the status code and the text of a probe, `/healthz` or `/readyz`.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn probe(&self, path: &str) -> Result<(u16, String)> {
        get(self.health.number(), path).await
    }

    /// Returns its metrics.
    ///
    /// # Errors
    /// It does not serve any.
    pub async fn metrics(&self) -> Result<String> {
        http_get(self.metrics.number(), "/metrics").await
    }

    /// Returns the sum of a metric over all label sets that contain this text.
    ///
    /// # Errors
    /// It serves no metrics.
    pub async fn metric(&self, name: &str, labels: &str) -> Result<f64> {
        Ok(sum_of(&self.metrics().await?, name, labels))
    }

    /// Waits until it has been idle for a second: the queue is empty, no worker is active, and no reconcile has ended.
    ///
    /// # Errors
    /// It exited, or is not idle in time.
    pub async fn until_idle(&self) -> Result<()> {
        let mut since = (Instant::now(), f64::NAN);
        eventually("the controller is idle", async || {
            self.process.still_runs()?;
            let text = self.metrics().await?;
            let of = |name| sum_of(&text, name, "");
            let waits_or_runs = of("workqueue_depth") + of("controller_runtime_active_workers");
            let ended = of("controller_runtime_reconcile_total");
            if waits_or_runs != 0.0 || ended != since.1 {
                since = (Instant::now(), ended);
            }
            Ok((since.0.elapsed() > IDLE).then_some(()))
        })
        .await
    }

    /// Kills it with SIGKILL.
    ///
    /// # Errors
    /// The process does not exist.
    pub fn kill(&self) -> Result<ExitStatus> {
        self.process.kill()
    }

    /// Stops it with SIGTERM, as a kubelet does, and waits until it has exited.
    ///
    /// # Errors
    /// It had exited before, or does not exit in time.
    pub async fn stop(&self) -> Result<ExitStatus> {
        self.process.terminate()?;
        self.until_ended().await
    }

    /// Waits until it exits.
    ///
    /// # Errors
    /// It does not exit in time.
    pub async fn until_ended(&self) -> Result<ExitStatus> {
        eventually("the controller has ended", async || self.process.ended()).await
    }

    /// Returns the program that cargo built next to the test programs.
    ///
    /// # Errors
    /// It was not built.
    pub fn program() -> Result<PathBuf> {
        let test = std::env::current_exe()?;
        let built = test
            .ancestors()
            .nth(2)
            .context("the test program is not in deps/")?;
        let program = built.join("trainyard");
        if !program.exists() {
            bail!(
                "{} is missing; build it with `cargo build -p trainyard`",
                program.display()
            );
        }
        Ok(program)
    }

    /// Returns the process.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

/// Adds the arguments of a log that is read by people.
fn with_log(
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> impl Iterator<Item = OsString> {
    let arguments = arguments.into_iter().map(|one| one.as_ref().to_owned());
    let log = ["--log-format=text", "--log-level=debug"].map(OsString::from);
    log.into_iter().chain(arguments)
}

/// Returns the sum of a metric in this text of [`Trainyard::metrics`] over all label sets that contain a text.
pub fn sum_of(text: &str, name: &str, labels: &str) -> f64 {
    let lines = text.lines().filter(|line| {
        let metric = line.split(['{', ' ']).next();
        metric == Some(name) && line.contains(labels)
    });
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

/// Returns the answer of a port of this machine to a GET request.
///
/// # Errors
/// It does not answer, or not with status 200.
pub async fn http_get(port: u16, path: &str) -> Result<String> {
    let (code, text) = get(port, path).await?;
    ensure!(code == 200, "{path}: {code}: {text}");
    Ok(text)
}

async fn get(port: u16, path: &str) -> Result<(u16, String)> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned());
    code.zip(body).context("the answer is not HTTP")
}
