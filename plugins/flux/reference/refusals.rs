//! The errors of the rows that list refusals.

type Refusals = &'static [(&'static str, &'static str)];

pub(super) const WITHOUT_TRAINER: Refusals = &[("", "runtime error: ")];
pub(super) const INSTALLER: Refusals = &[(
    "spec.trainer.initContainers",
    "'flux-installer' is reserved",
)];
pub(super) const COMMAND: Refusals = &[
    (
        "spec.trainer.command",
        "Flux cannot use the image's default command",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.containers.command",
        "Flux cannot use the image's default command",
    ),
    (
        "spec.trainer.command",
        "must begin with the name of a program",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.containers.command",
        "must begin with the name of a program",
    ),
];
pub(super) const SETTINGS: Refusals = &[
    ("spec.trainer.env", "must be the name of a network device"),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.containers.env",
        "must be the name of a network device",
    ),
    ("spec.trainer.env", "must be a queue policy of Fluxion"),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.containers.env",
        "must be a queue policy of Fluxion",
    ),
    ("spec.trainer.env", "must be an image with a Flux view"),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.containers.env",
        "must be an image with a Flux view",
    ),
    ("spec.trainer.env", "must be a duration of Flux"),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.containers.env",
        "must be a duration of Flux",
    ),
];
pub(super) const UNFIT: Refusals = &[
    (
        "spec.template.spec.network.enableDNSHostnames",
        "Flux brokers connect by the DNS names",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.completionMode",
        "derives its rank from the index",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.hostNetwork",
        "derives its rank from the host name of its pod",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.setHostnameAsFQDN",
        "derives its rank from the short host name",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.initContainers.restartPolicy",
        "must finish before the node container starts",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.volumes.name",
        "is reserved by the Flux plugin",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.containers.name",
        "is reserved for the init container",
    ),
    (
        "spec.template.spec.replicatedJobs",
        "flux needs a container `node`",
    ),
];
