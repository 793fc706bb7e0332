//! A cluster with the controller.

use std::{ffi::OsString, marker::PhantomData};

use anyhow::Result;
use serde_json::Value;
use trainyard_cluster::{Cluster, ControlPlane, Shared, Trainyard};

use super::prepare;

/// The runtimes and arguments of a controller.
pub(crate) trait Setup: Send + Sync + 'static {
    /// Returns the ClusterTrainingRuntimes of the cluster.
    fn runtimes() -> Vec<Value> {
        Vec::new()
    }

    /// Returns the CustomResourceDefinitions that are installed beside those of a [`Cluster`].
    fn kinds() -> Result<Vec<Value>> {
        Ok(Vec::new())
    }

    /// Returns the controller's arguments.
    fn arguments() -> Result<Vec<OsString>>;
}

/// A cluster with the controller, which runs with exactly the ServiceAccount and the permissions of deploy/.
pub(crate) struct Controlled<S> {
    pub(crate) cluster: Cluster,
    pub(crate) controller: Trainyard,
    setup: PhantomData<S>,
}

impl<S: Setup> Shared for Controlled<S> {
    fn start() -> Result<Self> {
        let arguments = S::arguments()?;
        let cluster = Cluster::start_with(S::kinds()?)?;
        let plane = cluster.plane();
        let account = prepare(&cluster, &S::runtimes())?;
        let controller = plane.block_on(Trainyard::start(plane, &account, arguments))?;
        Ok(Self {
            cluster,
            controller,
            setup: PhantomData,
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.cluster.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.cluster.still_runs()?;
        self.controller.process().still_runs()
    }

    fn last_words(&self) -> String {
        self.cluster.kubelet().last_words()
    }
}
