//! A cluster on which the reference and Trainyard replace each other.

use std::path::PathBuf;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::Mutex;
use trainyard_cluster::{Cluster, ControlPlane, Fate, PodGroups, Shared};

use super::{devices, prepare, runtimes};

/// The PodGroups of the cluster's gangs. Their runtime has the name of the policy.
pub(crate) const GANG: PodGroups = PodGroups::Coscheduling;

/// Enough devices on each machine for all TrainJobs with devices.
const DEVICES: usize = 64;

/// A cluster with runtimes of several policies and the controller's ServiceAccount, but without a controller. Tests take turns, because a
/// controller reconciles all TrainJobs of its cluster.
pub(crate) struct Handover {
    pub(crate) cluster: Cluster,
    /// The kubeconfig file of the controller's ServiceAccount.
    pub(crate) kubeconfig: PathBuf,
    pub(crate) turn: Mutex<()>,
}

/// Lets initializers succeed, and holds the pods that come after them.
pub(crate) fn hold_after_initializers(pod: &Pod) -> Fate {
    match runtimes::replicated_job(pod) {
        "dataset-initializer" => Fate::Succeed,
        _ => Fate::Hold,
    }
}

impl Shared for Handover {
    fn start() -> Result<Self> {
        let kinds = PodGroups::ALL.map(PodGroups::definition);
        let cluster = Cluster::start_with(kinds.into_iter().collect::<Result<_>>()?)?;
        let runtimes = [
            runtimes::plain(),
            runtimes::shipped("torch-distributed"),
            runtimes::shipped("jax-distributed"),
            runtimes::shipped("xgboost-distributed"),
            runtimes::shipped("torchtune-llama3.2-1b"),
            runtimes::gang(PodGroups::Coscheduling),
            runtimes::gang(PodGroups::Volcano),
            runtimes::mpi("own-launcher", false),
            runtimes::mpi("launcher-node", true),
            runtimes::flux(),
            devices::runtime(),
        ];
        let plane = cluster.plane();
        plane.block_on(devices::machines(&cluster, DEVICES))?;
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
