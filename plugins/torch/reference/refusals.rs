//! The errors of the rows that list refusals.

type Refusals = &'static [(&'static str, &'static str)];

pub(super) const RUNTIME_PROCESSES: Refusals = &[(
    "spec.mlPolicy.torch.numProcPerNode",
    "must be a number greater than 0, auto, cpu or gpu",
)];
pub(super) const ELASTIC: Refusals = &[
    (
        "spec.mlPolicy.torch.elastic.minNodes",
        "a JobSet does not add any while it runs",
    ),
    (
        "spec.mlPolicy.torch.elasticPolicy.minNodes",
        "a JobSet does not add any while it runs",
    ),
    (
        "spec.mlPolicy.torch.elasticPolicy.maxNodes",
        "a JobSet neither adds nor removes any while it runs",
    ),
    ("spec.mlPolicy.torch.elasticPolicy.metrics", "must be empty"),
    (
        "spec.mlPolicy.torch.elasticPolicy",
        "must not be set together with",
    ),
    (
        "spec.mlPolicy.torch.elastic",
        "must not be set for torchtune",
    ),
    (
        "spec.mlPolicy.torch.elasticPolicy",
        "must not be set for torchtune",
    ),
];
pub(super) const MODEL: Refusals = &[(
    "spec.runtimeRef.name",
    "must have a supported pretrained model",
)];
pub(super) const DEVICES: Refusals = &[
    ("spec.trainer.numProcPerNode", "model when using QLoRA"),
    ("spec.trainer.resourcesPerNode", "model when using QLoRA"),
];
pub(super) const RUNTIME_COMMAND: Refusals = &[
    ("spec.mlPolicy.numNodes", "which torchtune runs on"),
    ("spec.trainer.numNodes", "which torchtune runs on"),
    ("spec.trainer.numProcPerNode", "which torchtune runs on"),
    ("spec.trainer.args", "torchtune"),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.containers.args",
        "torchtune",
    ),
    ("spec.trainer.args", "a path in the volume of the runtime"),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.containers.args",
        "a path in the volume of the runtime",
    ),
    ("spec.runtimeRef.name", "names no model for torchtune"),
    (
        "spec.mlPolicy.torch.elastic",
        "must not be set for torchtune",
    ),
];
pub(super) const COMPLETE_LINE: Refusals = &[
    ("spec.trainer.numNodes", ""),
    ("spec.trainer.args", "immutable config"),
];
pub(super) const OPTIONS: Refusals = &[
    (
        "spec.trainer.args",
        "the only option of torchtune's recipes",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.containers.args",
        "the only option of torchtune's recipes",
    ),
];
pub(super) const CONFIGURATION: Refusals = &[
    ("spec.mlPolicy.numNodes", "which torchtune runs on"),
    ("spec.trainer.numNodes", "which torchtune runs on"),
    ("spec.trainer.numProcPerNode", "which torchtune runs on"),
    (
        "spec.trainer.args",
        "because torchtune has no configuration for",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.template.spec.containers.args",
        "because torchtune has no configuration for",
    ),
    ("spec.runtimeRef.name", "QLoRA is not supported"),
];
