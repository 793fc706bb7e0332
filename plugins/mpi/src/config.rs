//! The block `mlPolicy.mpi` of a runtime.

use trainyard_sdk::{Config, Document, Setting};

/// `mlPolicy.mpi`.
#[derive(Config, Debug)]
pub(crate) struct MpiConfig {
    /// The number of processes per node if the TrainJob does not set it. 1 is the same as unset, because the API server sets it by default.
    #[config(minimum = 1, maximum = 2147483647)]
    #[allow(dead_code, reason = "the host counts it among the explicit numbers")]
    num_proc_per_node: Option<u32>,
    /// The implementation of MPI in the image: OpenMPI, Intel or MPICH. Empty means OpenMPI.
    #[config(default = "OpenMPI")]
    pub(crate) mpi_implementation: Implementation,
    /// Where the SSH keys are mounted.
    #[config(default = "/root/.ssh", max_length = 4096)]
    pub(crate) ssh_auth_mount_path: String,
    /// Whether the launcher's pod is one of the nodes.
    #[config(default = false)]
    pub(crate) run_launcher_as_node: bool,
}

/// An implementation of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Implementation {
    /// Open MPI, 4 and older with ORTE, 5 with PRRTE.
    OpenMpi,
    /// The Intel MPI Library, with its Hydra.
    Intel,
    /// MPICH, with Hydra.
    Mpich,
}

impl Setting for Implementation {
    const BODY: &'static str = r#""type":"string","enum":["OpenMPI","Intel","MPICH",""]"#;

    fn read(document: &Document, at: &str) -> Option<Self> {
        match document.text(at)?.as_str() {
            "OpenMPI" | "" => Some(Self::OpenMpi),
            "Intel" => Some(Self::Intel),
            "MPICH" => Some(Self::Mpich),
            _ => None,
        }
    }
}
