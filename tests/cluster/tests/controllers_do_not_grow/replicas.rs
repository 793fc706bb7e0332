//! The controller, as two processes of which one leads.

use std::{
    ffi::OsStr,
    fs,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Result, ensure};
use trainyard_cluster::{ControlPlane, Shared as _, Trainyard};

use super::Soaked;

/// As shipped, but with four times as much time to renew the Lease: a machine that is busy with other builds would make leaders give up, and
/// the memory of a process shows nothing until it has run for long.
const CONFIGURATION: &str = "
apiVersion: trainyard.dev/v1alpha1
kind: ControllerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 60s, renewDeadline: 40s, retryPeriod: 2s}
";

/// One process.
pub(super) struct Replica {
    /// Its number among all that were started.
    pub(super) number: usize,
    pub(super) controller: Trainyard,
}

/// The processes that run.
pub(super) struct Replicas<'a> {
    plane: &'a ControlPlane,
    kubeconfig: PathBuf,
    configuration: PathBuf,
    started: AtomicUsize,
    running: Mutex<Vec<Arc<Replica>>>,
}

impl<'a> Replicas<'a> {
    pub(super) async fn start(shared: &'a Soaked) -> Result<Self> {
        let configuration = shared.plane().folder().join("long-leases.yaml");
        fs::write(&configuration, CONFIGURATION)?;
        let replicas = Self {
            plane: shared.plane(),
            configuration,
            kubeconfig: shared.kubeconfig.clone(),
            started: AtomicUsize::new(0),
            running: Mutex::default(),
        };
        for _ in 0..2 {
            replicas.add()?;
        }
        for replica in replicas.running() {
            replica.controller.until_ready().await?;
        }
        Ok(replicas)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Replica>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn running(&self) -> Vec<Arc<Replica>> {
        self.lock().clone()
    }

    fn add(&self) -> Result<()> {
        let arguments = [OsStr::new("--config"), self.configuration.as_os_str()];
        let controller =
            Trainyard::start_logging_by_default(self.plane, &self.kubeconfig, arguments)?;
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        self.lock().push(Arc::new(Replica { number, controller }));
        Ok(())
    }

    fn replace(&self, replica: &Replica) -> Result<()> {
        self.lock().retain(|one| one.number != replica.number);
        self.add()
    }

    /// Kills the process that leads, or the one that does not, and starts another one. Returns its number.
    pub(super) async fn kill(&self, which: f64) -> Result<Option<usize>> {
        for replica in self.running() {
            // One that is starting does not answer.
            let leads = replica.controller.metric("trainyard_leader", "").await;
            if leads.is_ok_and(|leads| leads == which) {
                replica.controller.kill()?;
                did_not_panic(&replica)?;
                self.replace(&replica)?;
                return Ok(Some(replica.number));
            }
        }
        Ok(None)
    }

    /// Starts another process for each that exited because it lost the Lease, as a kubelet does. Returns their numbers.
    pub(super) fn restart(&self) -> Result<Vec<usize>> {
        let mut exited = Vec::new();
        for replica in self.running() {
            if replica.controller.process().ended()?.is_some() {
                let process = replica.controller.process();
                let log = process.log()?;
                ensure!(
                    log.contains("the Lease is lost"),
                    "{}",
                    process.last_words()
                );
                did_not_panic(&replica)?;
                self.replace(&replica)?;
                exited.push(replica.number);
            }
        }
        Ok(exited)
    }

    /// Checks that both run without an error that would be a bug of Trainyard.
    pub(super) fn check(&self) -> Result<()> {
        for replica in self.running() {
            replica.controller.process().still_runs()?;
            did_not_panic(&replica)?;
        }
        Ok(())
    }
}

fn did_not_panic(replica: &Replica) -> Result<()> {
    let log = replica.controller.process().log()?;
    let line = log.lines().find(|line| {
        let errors = ["panicked", "bug in Trainyard"];
        errors.iter().any(|error| line.contains(error))
    });
    ensure!(line.is_none(), "controller {}: {line:?}", replica.number);
    Ok(())
}
