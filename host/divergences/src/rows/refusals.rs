//! The errors of the rows that list refusals of many fields.

type Refusals = &'static [(&'static str, &'static str)];

pub(super) const OVERRIDE_WITHOUT_PLACE: Refusals = &[
    ("spec.trainer*", "cannot be applied: "),
    ("spec.trainer*", "has no effect: no replicated job"),
    ("spec.initializer*", "cannot be applied: "),
    ("spec.initializer*", "has no effect: no replicated job"),
];
pub(super) const INVALID_PODS: Refusals = &[
    ("spec.template*", "(the API server would refuse the "),
    ("spec.trainer*", "(the API server would refuse the "),
    ("spec.initializer*", "(the API server would refuse the "),
    (
        "spec.podTemplateOverrides*",
        "(the API server would refuse the ",
    ),
];
pub(super) const FRAMEWORK_WITHOUT_TRAINER: Refusals = &[(
    "spec.template.spec.replicatedJobs",
    " needs a container `node` in a replicated job with the label",
)];
pub(super) const NODES_OF_THE_TEMPLATE: Refusals = &[
    (
        "spec.template.spec.replicatedJobs.template.spec.completions",
        "needs at least one node",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.parallelism",
        "needs at least one node",
    ),
    (
        "spec.template.spec.replicatedJobs.template.spec.completions",
        "of the pods run at once",
    ),
];
pub(super) const REQUEST_ABOVE_LIMIT: Refusals = &[(
    "spec.trainer.resourcesPerNode.requests",
    "is above the container's limit",
)];
pub(super) const PATCH_BREAKS_RUNTIME: Refusals = &[
    (
        "spec.template.spec.replicatedJobs*",
        "another replicated job also has the label",
    ),
    ("spec.template*", "(in the template with this patch)"),
];
pub(super) const SAME_NAME: Refusals = &[("", "is a duplicate; the first one is in ")];
pub(super) const TOO_MANY_ENTRIES: Refusals = &[("", "API servers write larger objects slowly")];
pub(super) const GANG_EXCLUSIVE: Refusals = &[
    (
        "spec.template.metadata.annotations",
        "after the first one is scheduled",
    ),
    (
        "spec.template.spec.replicatedJobs.template.metadata.annotations",
        "after the first one is scheduled",
    ),
];
pub(super) const GANG_LOOKUPS: Refusals = &[
    ("", " needs RuntimeClass `"),
    ("", " needs PriorityClass `"),
];
pub(super) const GANG_QUEUE: Refusals = &[
    (
        "spec.template.metadata.annotations",
        "must be the name of a queue: ",
    ),
    (
        "spec.template.metadata.annotations",
        "must not be empty; remove it to use Volcano's default queue",
    ),
];
pub(super) const OLD_METADATA: Refusals = &[
    ("spec.labels", "differs from spec.runtimePatches["),
    ("spec.annotations", "differs from spec.runtimePatches["),
];
pub(super) const OLD_OVERRIDES: Refusals = &[
    (
        "spec.podTemplateOverrides*",
        "differs from spec.runtimePatches[",
    ),
    (
        "spec.podTemplateOverrides*",
        "the runtime has no replicated job `",
    ),
    ("spec.podTemplateOverrides*", " has no container `"),
    ("spec.podTemplateOverrides*", " has no init container `"),
    ("spec.podTemplateOverrides", "must be an object; found "),
    ("spec.podTemplateOverrides.targetJobs", "is required"),
    ("spec.podTemplateOverrides.targetJobs.name", "is required"),
    (
        "spec.podSpecOverrides",
        "must not be set together with podTemplateOverrides",
    ),
];
pub(super) const OLD_PROCESSES: Refusals = &[
    ("spec.trainer.numProcPerNode", "must be of type integer"),
    ("", "some validation rules were not checked"),
];
pub(super) const OLD_VERSIONS: Refusals = &[("apiVersion", "there is no such kind: ")];
pub(super) const PATCH_ENV: Refusals = &[("spec.runtimePatches", "must not have envs for the ")];
pub(super) const PLUGIN_OVERRIDES: Refusals = &[
    ("metadata.annotations", "no loaded plugin has the name "),
    ("metadata.annotations", " cannot be disabled, because "),
    (
        "metadata.annotations*",
        "is not a parameter that the runtime lists",
    ),
    ("metadata.annotations*", "must be an object; found "),
    ("metadata.annotations", "must be JSON; "),
];
pub(super) const PLUGINS_BY_NAME: Refusals = &[
    (
        "spec.mlPolicy.plugin.name",
        "no loaded plugin has the name ",
    ),
    (
        "spec.podGroupPolicy.plugin.name",
        "no loaded plugin has the name ",
    ),
    ("spec.plugins.name", "no loaded plugin has the name "),
    ("spec.plugins.name", " is activated by `"),
    ("spec.mlPolicy", "at most one framework may be set"),
];
