//! The errors of the rows that list refusals.

type Refusals = &'static [(&'static str, &'static str)];

pub(super) const IMPLEMENTATIONS: Refusals = &[
    ("spec.mlPolicy.mpi.mpiImplementation", "supported values: "),
    ("", "some validation rules were not checked"),
    ("", "doesn't supported"),
];
pub(super) const UNFIT: Refusals = &[
    (
        "spec.template.spec.network.enableDNSHostnames",
        "finds the pods by their DNS names",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.completionMode",
        "finds the pods by their indexed names",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.volumes.name",
        "is reserved by the MPI plugin",
    ),
    (
        "spec.template.spec.replicatedJobs.template.metadata.labels",
        "would replace their SSH server",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.metadata.labels",
        "would replace their SSH server",
    ),
];
pub(super) const RUNTIME_NOT_WHOLE: Refusals = &[
    (
        "spec.template.spec.replicatedJobs",
        "mpi needs a replicated job ",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.containers",
        "must have a container `node`, which runs",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.parallelism",
        "must be 1, because mpirun",
    ),
    (
        "spec.template.spec.replicatedJobs.replicas",
        "must be 1; found ",
    ),
    ("spec.trainer.numNodes", "other pod sets already use"),
    ("spec.mlPolicy.numNodes", "other pod sets already use"),
];
pub(super) const MOUNT_PATH: Refusals = &[(
    "spec.mlPolicy.mpi.sshAuthMountPath",
    "set it to the `.ssh` directory of the image's user",
)];
pub(super) const COMMAND: Refusals = &[
    (
        "spec.trainer.command",
        "must begin with the name of a program; found an empty word",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.containers.command",
        "must begin with the name of a program; found an empty word",
    ),
];
