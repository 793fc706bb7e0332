//! Resolves a TrainJob and its runtime to the base record.

mod exclusive;
mod names;
mod node_sets;
mod nodes;
mod overrides;
mod patches;
mod reserved;
mod restarts;
mod template;

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;
use trainyard_api::{FieldPath, Runtime, TrainJob, names as well_known, runtime::Member};
use trainyard_model::{
    deadline::Deadline,
    facts::{Facts, HostFacts},
    job::{Job, RuntimeRef},
    record::{Accelerators, Record},
};

pub(crate) use self::reserved::{of_trainer as reserved_in_train_job, replaced_by_plugins};
use self::{node_sets::NodeSets, overrides::Overrides, patches::Patched, template::TemplateReader};
use crate::{
    authors::Authors,
    journal::Journal,
    json::get_at,
    problem::{InputObject, Problem, Warning},
    select::Active,
};

/// The operator's settings for all TrainJobs.
#[derive(Clone, Debug)]
pub struct ClusterFacts {
    /// The cluster's DNS domain.
    pub cluster_domain: String,
    /// The extended resources that are accelerators.
    pub accelerators: Accelerators,
    /// Other facts that plugins may read.
    pub facts: Facts,
    /// The host's own facts, which may change while it runs.
    pub host: HostFacts,
    /// The namespace of the catalog, the objects that TrainJobs of all namespaces share.
    pub catalog: Option<Arc<str>>,
}

impl Default for ClusterFacts {
    fn default() -> Self {
        Self {
            cluster_domain: "cluster.local".to_owned(),
            accelerators: Accelerators::default(),
            facts: Facts::default(),
            host: HostFacts::default(),
            catalog: None,
        }
    }
}

/// A resolved TrainJob: its record has all changes except those of plugins.
pub(crate) struct Resolved {
    pub(crate) job: Arc<Job>,
    pub(crate) record: Record,
    /// The JobSet's spec with all patches. `None` if no patch changes it.
    pub(crate) patched: Option<Arc<Value>>,
    /// The changes by the patches, followed by those of the TrainJob's overrides.
    pub(crate) journal: Journal,
    pub(crate) warnings: Vec<Warning>,
}

impl Resolved {
    /// Returns what the TrainJob changed in the runtime's template.
    pub(crate) fn authors<'a>(&'a self, runtime: &'a Runtime, record: &'a Record) -> Authors<'a> {
        let template = &*runtime.template.spec;
        Authors {
            template,
            patched: self.patched.as_deref().unwrap_or(template),
            journal: &self.journal,
            record,
        }
    }
}

/// The template with the TrainJob's patches and no overrides. It determines which plugins are active.
pub(crate) struct PatchedTemplate {
    pub(crate) record: Record,
    patched: Patched,
    /// The problems of the runtime's steps. The rest is still checked.
    pub(crate) problems: Vec<Problem>,
}

/// Reads the template and merges the TrainJob's patches into it.
pub(crate) fn patch_template(
    job: &TrainJob,
    runtime: &Runtime,
    facts: &ClusterFacts,
    deadline: &Deadline,
) -> Result<PatchedTemplate, Vec<Problem>> {
    let name = &job.metadata.name;
    let (mut record, problems) = read(name, &runtime.template.spec, facts);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut problems = check_steps(&record);
    // A patch is only blamed for problems that the template does not have without it.
    let known: BTreeSet<String> = problems.iter().map(ToString::to_string).collect();
    let new_problems = |record: &Record| {
        let mut problems = check_steps(record);
        problems.retain(|problem| !known.contains(&problem.to_string()));
        problems
    };
    Problem::in_time(deadline, || "the runtime's template was read".to_owned())?;
    let template = &runtime.template;
    let (marks, annotations): (Vec<_>, Vec<_>) = template
        .annotations
        .iter()
        .partition(|(key, _)| well_known::is_mark(key));
    template::load_metadata(&mut record, &template.labels, annotations);
    let mut patched =
        match patches::apply(job, &template.spec, &mut record, &new_problems, deadline) {
            Ok(patched) => patched,
            Err(of_patches) => {
                problems.extend(of_patches);
                return Err(problems);
            }
        };
    let annotations = FieldPath::of(["spec", "template", "metadata", "annotations"]);
    let mark = |(key, _): (&String, _)| patches::mark(InputObject::Runtime, &annotations.key(key));
    patched.warnings.extend(marks.into_iter().map(mark));
    record.template = Some(patched.spec.as_ref().unwrap_or(&template.spec).clone());
    Ok(PatchedTemplate {
        record,
        patched,
        problems,
    })
}

/// Reads a JobSet's spec into a record, and returns its problems.
fn read(name: &str, spec: &Value, facts: &ClusterFacts) -> (Record, Vec<Problem>) {
    let network = |member| get_at(spec, &["network", member]);
    let subdomain = network("subdomain")
        .and_then(Value::as_str)
        .filter(|subdomain| !subdomain.is_empty());
    let mut record = Record::new(name, subdomain.unwrap_or(name), &facts.cluster_domain);
    record.has_host_names = network("enableDNSHostnames") != Some(&false.into());
    let mut template = TemplateReader::new(spec);
    template.load(&mut record);
    (record, template.problems)
}

/// Checks the steps of a TrainJob. Like in the reference, a step is a single replicated job with one replica, because `numNodes` would count
/// some pods twice otherwise. It must have the container that runs the step.
fn check_steps(record: &Record) -> Vec<Problem> {
    let path = |at| template::replicated_jobs().index(at);
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    for (position, (at, set)) in (0u32..).zip(record.pod_sets.iter().enumerate()) {
        let Some(ancestor) = set.ancestor.as_deref() else {
            continue;
        };
        if set.replicas != 1 {
            let message = format!(
                "is {}, but must be 1 because the replicated job has the label `{}: {ancestor}`; set it to 1, or remove the label",
                set.replicas,
                well_known::ANCESTOR_LABEL
            );
            problems.push(Problem::runtime(path(at).field("replicas"), message));
        }
        if !seen.insert(ancestor) {
            let message = format!(
                "another replicated job also has the label {}: {ancestor}; remove it from one of them",
                well_known::ANCESTOR_LABEL
            );
            problems.push(Problem::runtime(path(at), message));
        }
        if let Some(name) = container_of_step(ancestor)
            && record.main_container(position, name).is_none()
        {
            let pods = ["template", "spec", "template", "spec", "containers"];
            let message =
                format!("must include a container `{name}`, which runs the step {ancestor}");
            problems.push(Problem::runtime(path(at).fields(pods), message));
        }
    }
    problems
}

/// Returns the name of the container that runs a step of a TrainJob.
fn container_of_step(ancestor: &str) -> Option<&str> {
    match ancestor {
        well_known::ANCESTOR_TRAINER => Some(well_known::NODE),
        well_known::ANCESTOR_DATASET_INITIALIZER | well_known::ANCESTOR_MODEL_INITIALIZER => {
            Some(ancestor)
        }
        _ => None,
    }
}

/// Applies the TrainJob's overrides and the runtime's policy to the record. Also returns the problems, to which plugins may add theirs.
pub(crate) fn resolve(
    job: &TrainJob,
    runtime: &Runtime,
    patched: PatchedTemplate,
    active: &[Active],
    namespace: &str,
    facts: &ClusterFacts,
) -> (Resolved, Vec<Problem>) {
    let PatchedTemplate {
        mut record,
        patched,
        mut problems,
    } = patched;
    let mut journal = patched.journal;
    let mut overrides = Overrides {
        record: &mut record,
        journal: &mut journal,
        problems: Vec::new(),
    };
    overrides.apply_initializers(&job.initializer);
    let node_sets = NodeSets::of(overrides.record, active);
    if let Some(trainer) = &job.trainer {
        overrides.apply_trainer(trainer, &node_sets);
    }
    let nodes = overrides.set_nodes(job, runtime, node_sets);
    let mut warnings = patched.warnings;
    warnings.extend(deprecated(runtime));
    warnings.extend(restarts::warning(runtime, nodes.count));
    warnings.extend(nodes.warning);
    problems.extend(overrides.problems);
    problems.extend(reserved::of_patches(&record, &journal, active));
    problems.extend(names::check(&record));
    problems.extend(exclusive::check(runtime, &record));
    let resolved = Resolved {
        job: Arc::new(job_facts(job, runtime, nodes.count, namespace, facts)),
        record,
        patched: patched.spec,
        journal,
        warnings,
    };
    (resolved, problems)
}

/// Returns a warning if the runtime's label marks it as deprecated. The reference's admission returns one as well.
fn deprecated(runtime: &Runtime) -> Option<Warning> {
    let label = runtime.metadata.labels.get(well_known::SUPPORT_LABEL)?;
    (label == well_known::SUPPORT_DEPRECATED).then(|| Warning {
        about: InputObject::TrainJob,
        field: Some(FieldPath::of(["spec", "runtimeRef"]).to_string()),
        message: format!(
            "{} `{}` is deprecated (label {}); use another runtime before it is removed",
            runtime.kind,
            runtime.metadata.name,
            well_known::SUPPORT_LABEL
        ),
        plugin: None,
    })
}

/// Returns what plugins may read of the TrainJob in addition to the record.
fn job_facts(
    job: &TrainJob,
    runtime: &Runtime,
    nodes: u32,
    namespace: &str,
    facts: &ClusterFacts,
) -> Job {
    let texts =
        |map: &trainyard_api::StringMap| map.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let metadata = &job.metadata;
    let processes = job
        .trainer
        .as_ref()
        .and_then(|trainer| trainer.num_proc_per_node);
    Job {
        name: metadata.name.as_str().into(),
        namespace: namespace.into(),
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        suspended: job.suspend,
        labels: texts(&metadata.labels),
        annotations: texts(&metadata.annotations),
        runtime: RuntimeRef {
            kind: runtime.kind.as_str().into(),
            name: runtime.metadata.name.as_str().into(),
            labels: texts(&runtime.metadata.labels),
            annotations: texts(&runtime.metadata.annotations),
        },
        nodes,
        processes_per_node: processes.or_else(|| runtime_processes(runtime)),
        spec: job.spec.clone(),
        accelerators: facts.accelerators.clone(),
        facts: facts.facts.clone(),
        host_facts: facts.host.now(),
    }
}

/// Returns `numProcPerNode` of the runtime's policy if it is a number that the runtime's author set. Plugins interpret strings.
///
/// In `mpi` and `flux`, 1 is the API server's default, so it counts as not set, like in the reference.
fn runtime_processes(runtime: &Runtime) -> Option<u32> {
    let Member::Key(policy) = runtime.ml_policy.as_ref()?.member.as_ref()? else {
        return None;
    };
    let least = if matches!(policy.key.as_str(), "mpi" | "flux") {
        2
    } else {
        1
    };
    let processes = policy.config.get("numProcPerNode")?;
    processes
        .as_u64()
        .and_then(|n| u32::try_from(n).ok())
        .filter(|n| *n >= least)
}
