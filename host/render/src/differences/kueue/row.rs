//! The rows of divergences.md whose column "Kueue" says yes, and which of them explains a difference.

use serde_json::{Value, json};
use trainyard_api::{Runtime, names, runtime_patch::RuntimePatch};
use trainyard_model::lookup::{LookupAnswer, LookupKey};

use super::{super::Rendering, limit_ranges, view};
use crate::{json::items, problem::InputObject};

/// The kind of the templates of resource claims.
pub(super) const CLAIM_TEMPLATE: &str = "ResourceClaimTemplate";

/// A row.
pub(super) struct Row {
    pub(super) id: &'static str,
    pub(super) about: InputObject,
    /// The field to correct.
    pub(super) field: Option<&'static str>,
    /// What to do.
    pub(super) advice: &'static str,
}

const RESOURCES: Option<&str> = Some("spec.trainer.resourcesPerNode");
const JOBS: Option<&str> = Some("spec.template.spec.replicatedJobs");

static COUNTS: Row = Row {
    id: "counts",
    about: InputObject::Runtime,
    field: JOBS,
    advice: "set `spec.mlPolicy.numNodes` for the trainer, and equal `parallelism` and `completions` for other replicated jobs",
};
static LABEL_ON_POD: Row = Row {
    id: "label-on-pod",
    about: InputObject::Runtime,
    field: JOBS,
    advice: "move the label trainer.kubeflow.org/trainjob-ancestor-step from the pod template to the Job template",
};
static MPI_RUNTIME_NODES: Row = Row {
    id: "mpi-runtime-nodes",
    about: InputObject::Runtime,
    field: Some("spec.mlPolicy.numNodes"),
    advice: "remove it, and set `parallelism` and `completions` of the replicated job `node` instead",
};
static MPI_ONE_NODE: Row = Row {
    id: "mpi-one-node",
    about: InputObject::Runtime,
    field: Some("spec.mlPolicy.mpi.runLauncherAsNode"),
    advice: "the quota of the second pod stays unused; use a runtime without MPI for one node",
};
static MPI_RESOURCES: Row = Row {
    id: "mpi-resources",
    about: InputObject::TrainJob,
    field: RESOURCES,
    advice: "set the resources of the nodes in the runtime instead",
};
static OVERRIDE_REPLACES: Row = Row {
    id: "override-replaces",
    about: InputObject::TrainJob,
    field: RESOURCES,
    advice: "set all resources of the runtime's container, in `requests` and `limits`",
};
static POD_LIMITS: Row = Row {
    id: "pod-limits",
    about: InputObject::Runtime,
    field: JOBS,
    advice: "set `requests` beside `limits` in the resources of the pod as a whole",
};
static LIMIT_RANGE: Row = Row {
    id: "limit-range",
    about: InputObject::Runtime,
    field: JOBS,
    advice: "set `requests` in the containers, because a LimitRange of the namespace has defaults",
};
static FLUX_INSTALLER_FITS: Row = Row {
    id: "flux-installer-fits",
    about: InputObject::Runtime,
    field: JOBS,
    advice: "Kueue gives the init container `flux-installer` the default requests of a LimitRange, but Trainyard gives it the resources of container `node`; lower these defaults, or request as much in container `node`",
};
static CLAIMS_PER_NODE: Row = Row {
    id: "claims-per-node",
    about: InputObject::TrainJob,
    field: Some("spec.trainer.resourceClaimsPerNode"),
    advice: "put the claims into the pod template of the runtime",
};
pub(super) static CLAIMS_EXCLUDED: Row = Row {
    id: "claims-excluded",
    about: InputObject::TrainJob,
    field: Some("metadata.annotations[trainyard.dev/exclude-resource-claims]"),
    advice: "use a runtime without these claims",
};
static PATCH_CLAIMS: Row = Row {
    id: "patch-claims",
    about: InputObject::TrainJob,
    field: Some("spec.runtimePatches"),
    advice: "put the claims into the pod template of the runtime",
};
static PATCH_FINDS_NOTHING: Row = Row {
    id: "patch-finds-nothing",
    about: InputObject::TrainJob,
    field: Some("spec.runtimePatches"),
    advice: "from the patch of Kueue, remove the containers that the runtime does not have, because Kueue gives them the default requests of a LimitRange",
};
static OLD_OVERRIDES: Row = Row {
    id: "old-overrides",
    about: InputObject::TrainJob,
    field: None,
    advice: "put the claims into the pod template of the runtime",
};
static CLAIMS_WITHOUT_QUOTA: Row = Row {
    id: "claims-without-quota",
    about: InputObject::TrainJob,
    field: Some(QUEUE),
    advice: "use claims with a count, or remove the label",
};
static MPI_IMPLEMENTATIONS: Row = Row {
    id: "mpi-implementations",
    about: InputObject::Runtime,
    field: Some("spec.mlPolicy.mpi.mpiImplementation"),
    advice: "set it to `OpenMPI` if the image has that, or remove the queue from the TrainJob",
};
static FLUX_WITHOUT_TRAINER: Row = Row {
    id: "flux-without-trainer",
    about: InputObject::TrainJob,
    field: Some(QUEUE),
    advice: "remove the label, because Kueue does not start TrainJobs of Flux with `spec.trainer` either",
};
static IMMUTABLE_TRAINER: Row = Row {
    id: "immutable-trainer",
    about: InputObject::TrainJob,
    field: Some(QUEUE),
    advice: "remove the label",
};
static PLUGINS_BY_NAME: Row = Row {
    id: "plugins-by-name",
    about: InputObject::TrainJob,
    field: Some(QUEUE),
    advice: "a plugin changes the pods; remove the label, or configure the plugin so that it does not change these resources",
};
const QUEUE: &str = "metadata.labels[kueue.x-k8s.io/queue-name]";

/// Returns the row and the reason if Kueue fails on the TrainJob.
pub(super) fn never_admitted(rendering: &Rendering<'_>) -> Option<(&'static Row, String)> {
    let never = |reason: &str| format!("never admits this TrainJob, because {reason}");
    if let Some(("mpi", config)) = rendering.policy() {
        let implementation = config.get("mpiImplementation").and_then(Value::as_str);
        let other = implementation.filter(|name| *name != "OpenMPI");
        if let Some(other) = other {
            let reason = never(&format!("it does not know the implementation `{other}`"));
            return Some((&MPI_IMPLEMENTATIONS, reason));
        }
    }
    if rendering.is("flux") && rendering.job.trainer.is_none() {
        let reason = never(
            "the code of the Kubeflow Trainer that Kueue contains fails without `spec.trainer`",
        );
        return Some((&FLUX_WITHOUT_TRAINER, reason));
    }
    let mut jobs = items(rendering.patched, "replicatedJobs").iter();
    if rendering.is("jax") && !jobs.any(is_trainer) {
        let reason = never(
            "the code of the Kubeflow Trainer that Kueue contains finds no replicated job with the label of the trainer",
        );
        return Some((&LABEL_ON_POD, reason));
    }
    let unsupported = unsupported_claim(rendering)?;
    let reason = never(&format!(
        "it cannot count a resource claim with {unsupported}"
    ));
    Some((&CLAIMS_WITHOUT_QUOTA, reason))
}

/// Returns the row and the reason if Kueue admits the TrainJob, but does not start it.
pub(super) fn never_started(rendering: &Rendering<'_>) -> Option<(&'static Row, String)> {
    let trainer = rendering.job.spec.get("trainer");
    let command = trainer.and_then(|trainer| trainer.get("command"));
    let is_torchtune = command.is_some_and(|command| *command == json!(["tune", "run"]));
    let is_changed = rendering.is("flux") || rendering.is("torch") && is_torchtune;
    let reason = "reserves quota for this TrainJob but never starts it, because the code of the Kubeflow Trainer that Kueue contains changes `spec.trainer.command`, which is immutable";
    is_changed.then(|| (&IMMUTABLE_TRAINER, reason.to_owned()))
}

/// Whether the Job template of a replicated job has the label of the trainer.
fn is_trainer(job: &Value) -> bool {
    let labels = job.pointer("/template/metadata/labels");
    let step = labels.and_then(|labels| labels.get(names::ANCESTOR_LABEL));
    step.and_then(Value::as_str) == Some(names::ANCESTOR_TRAINER)
}

/// Returns what Kueue does not support in the claim templates that it reads: those in the runtime's template.
fn unsupported_claim(rendering: &Rendering<'_>) -> Option<&'static str> {
    let mut names = claim_templates(rendering.runtime);
    names.find_map(|template| unsupported_request(claim_template(rendering, template)?))
}

/// Returns the names of the claim templates in the runtime's template.
pub(super) fn claim_templates(runtime: &Runtime) -> impl Iterator<Item = &str> {
    let jobs = items(&runtime.template.spec, "replicatedJobs").iter();
    let pods = jobs.filter_map(|job| job.pointer("/template/spec/template/spec"));
    let claims = pods.flat_map(|pod| items(pod, "resourceClaims").iter());
    claims.filter_map(|claim| claim.get("resourceClaimTemplateName")?.as_str())
}

/// Returns a ResourceClaimTemplate that is known.
fn claim_template<'a>(rendering: &Rendering<'a>, template: &str) -> Option<&'a Value> {
    let lookups = rendering.known;
    let is_it = |key: &&LookupKey| match key {
        LookupKey::Object(object) => object.kind == CLAIM_TEMPLATE && object.name == template,
        _ => false,
    };
    match lookups.get(lookups.keys().find(is_it)?)? {
        LookupAnswer::Object(object) => Some(object),
        _ => None,
    }
}

fn unsupported_request(template: &Value) -> Option<&'static str> {
    let devices = template.pointer("/spec/spec/devices")?;
    items(devices, "requests").iter().find_map(|request| {
        if request.get("firstAvailable").is_some() {
            return Some("`firstAvailable`");
        }
        let exactly = request.get("exactly")?;
        if exactly.get("adminAccess") == Some(&Value::Bool(true)) {
            return Some("`adminAccess`");
        }
        let mode = exactly.get("allocationMode").and_then(Value::as_str);
        (mode == Some("All")).then_some("`allocationMode: All`")
    })
}

/// Whether a replicated job has the label of the trainer on its pods only.
fn is_labelled_on_pods(job: &Value) -> bool {
    trainyard_api::ancestor::Ancestor::of(job).is_some_and(|ancestor| ancestor.on_pods)
}

/// Returns the row of a difference in the number of pods.
pub(super) fn of_count(rendering: &Rendering<'_>, name: &str) -> &'static Row {
    let policy = rendering.runtime.ml_policy.as_ref();
    if let Some(("mpi", config)) = rendering.policy() {
        if rendering.session.job().nodes == 1 && view::launcher_is_node(config) {
            return &MPI_ONE_NODE;
        }
        if policy.is_some_and(|policy| policy.num_nodes.is_some()) {
            return &MPI_RUNTIME_NODES;
        }
    }
    match rendering.replicated_job(name) {
        Some(job) if is_labelled_on_pods(job) => &LABEL_ON_POD,
        _ => &COUNTS,
    }
}

/// Returns the row of a difference in the requests of a resource.
pub(super) fn of_request(rendering: &Rendering<'_>, name: &str, resource: &str) -> &'static Row {
    let trainer = rendering.job.trainer.as_ref();
    let given = trainer.and_then(|trainer| trainer.resources_per_node.as_ref());
    let job = rendering.replicated_job(name);
    let pod = job.and_then(|job| job.pointer("/template/spec/template/spec"));
    let of = |value: Option<&Value>, list: &str| {
        let list = value.and_then(|value| value.get(list));
        list.is_some_and(|list| list.get(resource).is_some())
    };
    if let Some(given) = given {
        let is_on_pods = job.is_some_and(is_labelled_on_pods);
        if let Some(("mpi", config)) = rendering.policy() {
            // Kueue finds a launcher only by the label.
            let is_unlabelled = name != names::NODE && !job.is_some_and(is_trainer);
            if !view::launcher_is_node(config) || is_unlabelled && !is_on_pods {
                return &MPI_RESOURCES;
            }
        }
        if is_on_pods {
            return &LABEL_ON_POD;
        }
        if !of(Some(given), "requests") {
            return &OVERRIDE_REPLACES;
        }
    }
    if of(pod.and_then(|pod| pod.get("resources")), "limits") {
        return &POD_LIMITS;
    }
    if has_default(rendering, resource) {
        if pod.is_some_and(|pod| view::has_added_containers(rendering, name, pod)) {
            return &PATCH_FINDS_NOTHING;
        }
        let is_limited = |container: &Value| of(container.get("resources"), "limits");
        let mut containers = ["initContainers", "containers"]
            .into_iter()
            .flat_map(|lists| pod.into_iter().flat_map(|pod| items(pod, lists).iter()));
        return match containers.any(is_limited) {
            false if rendering.is("flux") => &FLUX_INSTALLER_FITS,
            _ => &LIMIT_RANGE,
        };
    }
    &PLUGINS_BY_NAME
}

/// Whether a known LimitRange has a default request for the resource.
fn has_default(rendering: &Rendering<'_>, resource: &str) -> bool {
    view::defaults(&limit_ranges(rendering.known)).contains_key(resource)
}

/// Returns the row of a claim that Kueue does not count.
pub(super) fn of_claim(rendering: &Rendering<'_>, name: &str) -> &'static Row {
    let is_it = |claim: &Value| claim.get("name").and_then(Value::as_str) == Some(name);
    let spec = &rendering.job.spec;
    let in_trainer = spec
        .get("trainer")
        .is_some_and(|trainer| items(trainer, "resourceClaimsPerNode").iter().any(is_it));
    let metadata = [&rendering.job.metadata, &rendering.runtime.metadata];
    let in_annotation = metadata.iter().any(|metadata| {
        let text = metadata.annotations.get(names::RESOURCE_CLAIMS_ANNOTATION);
        let claims: Option<Value> = text.and_then(|text| serde_json::from_str(text).ok());
        let claims = claims.as_ref().and_then(Value::as_array);
        claims.is_some_and(|claims| claims.iter().any(is_it))
    });
    if in_trainer || in_annotation {
        return &CLAIMS_PER_NODE;
    }
    let job = rendering.job;
    let has_claim = |patch: &&RuntimePatch| {
        let jobs = patch
            .spec
            .iter()
            .flat_map(|spec| items(spec, "replicatedJobs").iter());
        let mut pods = jobs.filter_map(|job| job.pointer("/template/spec/template/spec"));
        pods.any(|pod| items(pod, "resourceClaims").iter().any(is_it))
    };
    let is_old = |patch: &RuntimePatch| patch.manager.starts_with(names::OVERRIDES_MANAGER);
    match job.runtime_patches.iter().find(has_claim) {
        Some(patch) if is_old(patch) && !job.conversion.warnings.is_empty() => &OLD_OVERRIDES,
        Some(_) => &PATCH_CLAIMS,
        None => &PLUGINS_BY_NAME,
    }
}
