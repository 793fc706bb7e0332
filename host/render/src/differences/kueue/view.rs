//! The JobSet for which Kueue reserves quota: the reference's rules for counts, resources and claims, in the release that Kueue contains.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use trainyard_api::names;
use trainyard_model::pod_requests::{Amounts, Defaults, Pod, Resources};

use super::super::Rendering;
use crate::json::items;

/// What the pods of one replicated job need.
pub(super) struct PodNeeds {
    pub(super) name: String,
    /// The number of pods.
    pub(super) count: u64,
    /// The requests of one pod.
    pub(super) requests: Amounts,
    /// The resource claims of one pod, each with its source.
    pub(super) claims: BTreeMap<String, String>,
}

/// Returns what the pods of a JobSet need. `None` if an amount is invalid, which others report.
pub(super) fn needs(job_set: &Value, ranges: &Defaults) -> Option<Vec<PodNeeds>> {
    let jobs = items(job_set, "replicatedJobs").iter();
    jobs.map(|job| {
        let number = |pointer: &str| job.pointer(pointer).and_then(Value::as_u64);
        let at_once = number("/template/spec/parallelism").unwrap_or(1);
        let completions = number("/template/spec/completions").unwrap_or(at_once);
        let pod = job.pointer("/template/spec/template/spec")?;
        Some(PodNeeds {
            name: job.get("name")?.as_str()?.to_owned(),
            count: number("/replicas")
                .unwrap_or(1)
                .saturating_mul(at_once.min(completions)),
            requests: Pod::read(pod).ok()?.requests(ranges),
            claims: claims(pod),
        })
    })
    .collect()
}

fn claims(pod: &Value) -> BTreeMap<String, String> {
    let claims = items(pod, "resourceClaims").iter();
    claims
        .filter_map(|claim| {
            let name = claim.get("name")?.as_str()?.to_owned();
            let sources = ["resourceClaimTemplateName", "resourceClaimName"].into_iter();
            let mut sources =
                sources.filter_map(|field| Some((field, claim.get(field)?.as_str()?)));
            let (field, source) = sources.next()?;
            Some((name, format!("{field} {source}")))
        })
        .collect()
}

/// Returns the `spec` of the JobSet that Kueue computes.
pub(super) fn job_set(rendering: &Rendering<'_>, ranges: &Defaults) -> Value {
    let mut spec = rendering.patched.clone();
    let jobs = spec.get_mut("replicatedJobs").and_then(Value::as_array_mut);
    let written = claims_of_runtime(rendering);
    for job in jobs.into_iter().flatten() {
        let facts = JobFacts::of(rendering, job);
        let count = json!(facts.count);
        if let Some(Value::Object(job_spec)) = job.pointer_mut("/template/spec") {
            job_spec.insert("parallelism".to_owned(), count.clone());
            job_spec.insert("completions".to_owned(), count);
        }
        let pod = job.pointer_mut("/template/spec/template/spec");
        if let Some(Value::Object(pod)) = pod {
            if facts.gets_resources {
                replace_resources(rendering, pod);
            }
            if rendering.is("flux") && facts.name == names::NODE {
                install_flux(pod);
            }
            add_containers(rendering, &facts.name, pod);
            count_as_kueue(pod, ranges);
            let claims = written.get(&facts.name).copied().unwrap_or(&Value::Null);
            pod.insert("resourceClaims".to_owned(), claims.clone());
        }
        if let (true, Value::Object(job)) = (facts.is_step, job) {
            job.insert("replicas".to_owned(), json!(1));
        }
    }
    spec
}

/// Returns the claims in the runtime's template by replicated job. Kueue's types have none in patches.
fn claims_of_runtime<'a>(rendering: &Rendering<'a>) -> BTreeMap<String, &'a Value> {
    let jobs = items(&rendering.runtime.template.spec, "replicatedJobs").iter();
    jobs.filter_map(|job| {
        let name = job.get("name")?.as_str()?.to_owned();
        Some((
            name,
            job.pointer("/template/spec/template/spec/resourceClaims")?,
        ))
    })
    .collect()
}

/// How the reference treats a replicated job.
struct JobFacts {
    name: String,
    count: u64,
    /// Whether it runs a step of the TrainJob, so that it has one replica.
    is_step: bool,
    /// Whether its container `node` gets the TrainJob's resources.
    gets_resources: bool,
}

impl JobFacts {
    fn of(rendering: &Rendering<'_>, job: &Value) -> Self {
        let name = job.get("name").and_then(Value::as_str).unwrap_or_default();
        let label = job.pointer("/template/metadata/labels");
        let step = label.and_then(|labels| labels.get(names::ANCESTOR_LABEL)?.as_str());
        let is_trainer = step == Some(names::ANCESTOR_TRAINER);
        let mpi = rendering.policy().filter(|(key, _)| *key == "mpi");
        let launcher_is_node = mpi.is_some_and(|(_, config)| launcher_is_node(config));
        let parallelism = job.pointer("/template/spec/parallelism");
        let mut count = parallelism.and_then(Value::as_u64).unwrap_or(1);
        if let Some(policy) = rendering.runtime.ml_policy.as_ref().filter(|_| is_trainer) {
            count = policy.num_nodes.unwrap_or(1).into();
        }
        let trainer = rendering.job.trainer.as_ref();
        if let Some(nodes) = trainer.and_then(|trainer| trainer.num_nodes) {
            let nodes = u64::from(nodes);
            match mpi {
                Some(_) if name != names::NODE => {}
                Some(_) if launcher_is_node => count = nodes.saturating_sub(1).max(1),
                Some(_) => count = nodes,
                None if is_trainer => count = nodes,
                None => {}
            }
        }
        let steps = [
            names::ANCESTOR_TRAINER,
            names::ANCESTOR_DATASET_INITIALIZER,
            names::ANCESTOR_MODEL_INITIALIZER,
        ];
        Self {
            count,
            is_step: step.is_some_and(|step| steps.contains(&step)),
            gets_resources: is_trainer || launcher_is_node && name == names::NODE,
            name: name.to_owned(),
        }
    }
}

/// Whether the launcher of MPI is one of the nodes.
pub(super) fn launcher_is_node(config: &Value) -> bool {
    config.get("runLauncherAsNode") == Some(&Value::Bool(true))
}

/// Replaces the resources of the container `node` by those of the TrainJob: v2.2.1 does not merge them.
fn replace_resources(rendering: &Rendering<'_>, pod: &mut Map<String, Value>) {
    let trainer = rendering.job.trainer.as_ref();
    let given = trainer.and_then(|trainer| trainer.resources_per_node.as_ref());
    let given = given.and_then(Value::as_object).filter(|given| {
        let lists = ["requests", "limits"];
        lists.iter().any(|list| given.contains_key(*list))
    });
    let Some(given) = given else {
        return;
    };
    let containers = pod.get_mut("containers").and_then(Value::as_array_mut);
    let is_node = |container: &&mut Value| container.get("name") == Some(&json!(names::NODE));
    for node in containers.into_iter().flatten().filter(is_node) {
        if let Value::Object(node) = node {
            node.insert("resources".to_owned(), Value::Object(given.clone()));
        }
    }
}

/// Adds the init container that installs Flux, which gets only the defaults of LimitRanges.
fn install_flux(pod: &mut Map<String, Value>) {
    let list = pod.entry("initContainers").or_insert_with(|| json!([]));
    if let Value::Array(containers) = list {
        containers.push(json!({"name": "flux-installer", "resources": {}}));
    }
}

/// The lists of a pod's containers.
const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

/// Returns the containers of a replicated job that only the TrainJob's patches have, each with its list. The reference adds them.
fn added_containers<'a>(
    rendering: &Rendering<'a>,
    name: &str,
    pod: &Value,
) -> Vec<(&'static str, &'a Value)> {
    let patches = rendering.job.runtime_patches.iter();
    let jobs = patches.flat_map(|patch| patch.spec.iter());
    let jobs = jobs.flat_map(|spec| items(spec, "replicatedJobs"));
    let jobs = jobs.filter(|job| job.get("name").and_then(Value::as_str) == Some(name));
    let pods = jobs.filter_map(|job| job.pointer("/template/spec/template/spec"));
    pods.flat_map(|patch| CONTAINERS.map(|member| (member, patch)))
        .flat_map(|(member, patch)| items(patch, member).iter().map(move |one| (member, one)))
        .filter(|(member, one)| {
            !items(pod, member)
                .iter()
                .any(|known| known.get("name") == one.get("name"))
        })
        .collect()
}

/// Whether the reference adds containers of patches to this pod.
pub(super) fn has_added_containers(rendering: &Rendering<'_>, name: &str, pod: &Value) -> bool {
    !added_containers(rendering, name, pod).is_empty()
}

/// Adds the containers that only patches have, which have no requests of their own.
fn add_containers(rendering: &Rendering<'_>, name: &str, pod: &mut Map<String, Value>) {
    let known = Value::Object(pod.clone());
    for (member, container) in added_containers(rendering, name, &known) {
        if let Value::Array(containers) = pod.entry(member).or_insert_with(|| json!([])) {
            containers.push(json!({"name": container.get("name")}));
        }
    }
}

/// Applies Kueue's own rules for requests: limits of the pod as a whole do not count, and a LimitRange's default request outweighs a
/// container's limit.
fn count_as_kueue(pod: &mut Map<String, Value>, ranges: &Defaults) {
    if let Some(Value::Object(resources)) = pod.get_mut("resources") {
        resources.remove("limits");
    }
    let defaults = defaults(ranges);
    for containers in CONTAINERS {
        let containers = pod.get_mut(containers).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let Value::Object(container) = container else {
                continue;
            };
            let resources = container.entry("resources").or_insert_with(|| json!({}));
            let Value::Object(resources) = resources else {
                continue;
            };
            let requests = resources.entry("requests").or_insert_with(|| json!({}));
            let Value::Object(requests) = requests else {
                continue;
            };
            for (resource, amount) in &defaults {
                let request = requests.entry(resource.clone());
                request.or_insert_with(|| amount.to_string().into());
            }
        }
    }
}

/// Returns the default requests of a container.
pub(super) fn defaults(ranges: &Defaults) -> Amounts {
    let pod = Pod {
        containers: vec![Resources::default()],
        ..Pod::default()
    };
    pod.requests(ranges)
}
