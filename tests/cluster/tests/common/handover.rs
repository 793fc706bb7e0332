//! A cluster on which the reference and Trainyard replace each other.

use std::path::PathBuf;

use anyhow::Result;
use tokio::sync::Mutex;
use trainyard_cluster::{Cluster, ControlPlane, Shared};

use super::{prepare, runtimes};

/// A cluster with runtimes of several policies and the controller's ServiceAccount, but without a controller. Tests take turns, because a
/// controller reconciles all TrainJobs of its cluster.
pub struct Handover {
    pub cluster: Cluster,
    /// The kubeconfig file of the controller's ServiceAccount.
    pub kubeconfig: PathBuf,
    pub turn: Mutex<()>,
}

impl Shared for Handover {
    fn start() -> Result<Self> {
        let cluster = Cluster::start()?;
        let runtimes = [
            runtimes::shipped("torch-distributed"),
            runtimes::mpi("own-launcher", false),
            runtimes::mpi("launcher-node", true),
            runtimes::flux(),
        ];
        Ok(Self {
            kubeconfig: prepare(&cluster, &runtimes)?,
            turn: Mutex::default(),
            cluster,
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.cluster.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.cluster.still_runs()
    }
}
