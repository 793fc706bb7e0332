//! A control plane for one test at a time.

use anyhow::Result;
use tokio::sync::Mutex;
use trainyard_cluster::{ControlPlane, Shared, define_kinds};

/// A control plane without controllers, with the CRDs of JobSet and of the Kubeflow Trainer's kinds. Tests take turns, because they install
/// what it can have once.
pub(crate) struct InTurns {
    pub(crate) plane: ControlPlane,
    pub(crate) turn: Mutex<()>,
}

impl Shared for InTurns {
    fn start() -> Result<Self> {
        let plane = ControlPlane::start()?;
        plane.block_on(define_kinds(&plane))?;
        Ok(Self {
            plane,
            turn: Mutex::default(),
        })
    }

    fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    fn still_runs(&self) -> Result<()> {
        self.plane.still_runs()
    }
}
