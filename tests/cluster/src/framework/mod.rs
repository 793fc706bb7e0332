//! Frameworks that train on this machine, in pods whose containers are processes.

mod mpi;
mod packages;

use std::path::{Path, PathBuf};

use anyhow::Result;
use mpi::Mpi;
use packages::Requirements;

use crate::kubelet::Image;

/// The folder of the programs, each of which sums the ranks of its group.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/frameworks");

/// A framework whose policy and runtime Trainyard has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    /// PyTorch with gloo, started by torchrun.
    Torch,
    /// JAX on CPUs.
    Jax,
    /// XGBoost's collective and tracker.
    XgBoost,
    /// Open MPI, over SSH.
    OpenMpi,
    /// MPICH, over SSH.
    Mpich,
}

/// A framework on this machine.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Its name and version, such as `PyTorch 2.15.0`.
    pub version: String,
    /// What its pods have instead of the runtime's image.
    pub image: Image,
    /// The command of a program that sums the ranks. The options are those of `tests/cluster/frameworks/group.py`.
    pub command: Vec<String>,
}

impl Framework {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Torch,
        Self::Jax,
        Self::XgBoost,
        Self::OpenMpi,
        Self::Mpich,
    ];

    /// Returns its name in the names of tests and folders.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Torch => "torch",
            Self::Jax => "jax",
            Self::XgBoost => "xgboost",
            Self::OpenMpi => "open_mpi",
            Self::Mpich => "mpich",
        }
    }

    /// Returns whether a launcher starts its ranks.
    #[must_use]
    pub const fn is_mpi(self) -> bool {
        matches!(self, Self::OpenMpi | Self::Mpich)
    }

    /// Returns the name of its runtime in `deploy/runtimes`.
    #[must_use]
    pub const fn runtime(self) -> &'static str {
        match self {
            Self::Torch => "torch-distributed",
            Self::Jax => "jax-distributed",
            Self::XgBoost => "xgboost-distributed",
            Self::OpenMpi => "openmpi-distributed",
            Self::Mpich => "mpich-distributed",
        }
    }

    /// Returns the framework, which is installed if it is missing. Before that, the required space is printed.
    ///
    /// # Errors
    /// It cannot be installed: with what to install by hand.
    pub fn install(self) -> Result<Installed> {
        match self {
            Self::Torch => Requirements::TORCH.install(),
            Self::Jax => Requirements::JAX.install(),
            Self::XgBoost => Requirements::XGBOOST.install(),
            Self::OpenMpi => Mpi::OPEN_MPI.install(),
            Self::Mpich => Mpi::MPICH.install(),
        }
    }
}

impl Installed {
    /// Returns Hugging Face's Trainer on PyTorch, which are installed if they are missing, with a program that trains with it. Before that, the
    /// required space is printed.
    ///
    /// # Errors
    /// They cannot be installed: with what to install by hand.
    pub fn transformers() -> Result<Self> {
        Requirements::install_transformers()
    }
}

/// Returns the path of a file in the folder of the programs.
fn program(name: &str) -> PathBuf {
    Path::new(PROGRAMS).join(name)
}
