//! TrainJobs that start another number of processes than with the Kubeflow Trainer.

use std::collections::BTreeSet;

use serde_json::Value;
use trainyard_api::{ancestor::Ancestor, names, runtime::Member, trainjob::Trainer};
use trainyard_model::{
    quantity::Quantity,
    record::{ContainerId, EntryScope, Field, Record},
};

use super::{Rendering, warning};
use crate::{
    json::{get, items},
    problem::{InputObject, Warning},
};

const PROCESSES: &str = "spec.trainer.numProcPerNode";
const RESOURCES: &str = "spec.trainer.resourcesPerNode";
const SAME: &str = "to keep its number, set `numProcPerNode`";

/// The frameworks of the reference.
const OF_REFERENCE: [&str; 5] = ["flux", "jax", "mpi", "torch", "xgboost"];

/// The page with the rows.
const PAGE: &str = "docs/move.md";

/// Returns a warning for each row by which the number of processes differs.
pub(super) fn of(rendering: &Rendering<'_>) -> Vec<Warning> {
    let Some(node) = Node::of(rendering) else {
        return Vec::new();
    };
    let policy = rendering.policy().map(|(key, _)| key);
    let of_node = match (policy, &rendering.job.trainer) {
        (Some(key @ ("torch" | "jax" | "xgboost")), None) => node.without_trainer(key),
        (Some("torch"), Some(trainer)) => node.by_devices(trainer, "PET_NPROC_PER_NODE"),
        (
            Some("xgboost"),
            Some(Trainer {
                num_proc_per_node: Some(given),
                ..
            }),
        ) => node.workers(*given),
        (Some("xgboost"), Some(trainer)) => node.by_devices(trainer, "DMLC_NUM_WORKER"),
        (Some("flux"), Some(trainer)) if trainer.num_nodes.is_some() => node.tasks(),
        _ => None,
    };
    of_node.into_iter().chain(node.counts()).collect()
}

/// The node container of the trainer.
struct Node<'a> {
    rendering: &'a Rendering<'a>,
    pod_set: u32,
    container: ContainerId,
}

impl<'a> Node<'a> {
    fn of(rendering: &'a Rendering<'a>) -> Option<Self> {
        let record = rendering.session.record();
        let mut sets = (0u32..).zip(record.pod_sets.iter());
        let is_trainer = |ancestor: &str| ancestor == names::ANCESTOR_TRAINER;
        let (pod_set, _) = sets.find(|(_, set)| set.ancestor.as_deref().is_some_and(is_trainer))?;
        let node = Self {
            rendering,
            pod_set,
            container: record.node_container(pod_set)?,
        };
        // The reference does not read the label on pods, and leaves such a replicated job as it is.
        let is_on_job = !Ancestor::of(node.job()?)?.on_pods;
        is_on_job.then_some(node)
    }

    /// Returns the replicated job in the runtime's template.
    fn job(&self) -> Option<&'a Value> {
        let pod_set = self.record().pod_set(self.pod_set)?;
        self.rendering.replicated_job(&pod_set.name)
    }

    fn record(&self) -> &'a Record {
        self.rendering.session.record()
    }

    /// Returns the value of an env var that the plugin set.
    fn env(&self, name: &str) -> Option<&'a str> {
        let fields = self
            .record()
            .fields(EntryScope::Container(self.container))?;
        fields
            .get(Field::Env, name)
            .and_then(|entry| entry.datum.as_text())
    }

    /// Returns the number of accelerators of a node, if it is known.
    fn accelerators(&self) -> Option<u32> {
        let known = &self.rendering.session.job().accelerators;
        let node = Some(self.container);
        self.record().accelerators(self.pod_set, node, known)
    }

    fn nodes(&self) -> u32 {
        self.rendering.session.job().nodes
    }

    /// The reference sets nothing without `spec.trainer`, so that each node trains alone.
    fn without_trainer(&self, key: &str) -> Option<Warning> {
        let (name, processes) = match key {
            "torch" => ("PET_NPROC_PER_NODE", self.env("PET_NPROC_PER_NODE")?),
            "jax" => ("JAX_NUM_PROCESSES", self.env("JAX_NUM_PROCESSES")?),
            _ => ("DMLC_NUM_WORKER", self.env("DMLC_NUM_WORKER")?),
        };
        let nodes = self.nodes();
        if nodes == 1 && processes == "1" {
            return None;
        }
        let here = match nodes {
            1 => "the node".to_owned(),
            nodes => format!("{nodes} nodes"),
        };
        let there = match self.requested_nodes().unwrap_or(1) {
            1 => "the node runs as many processes as its command says",
            _ => "each node trains alone",
        };
        let message = format!(
            "is not set; {name} is {processes} on {here}; in this case, the Kubeflow Trainer sets no env vars of the framework, so {there}"
        );
        Some(warning(
            InputObject::TrainJob,
            Some("spec.trainer".to_owned()),
            &message,
            "env-without-trainer",
            PAGE,
        ))
    }

    /// The reference counts only the resources in an override, and recognizes GPUs by other names.
    fn by_devices(&self, trainer: &Trainer, name: &str) -> Option<Warning> {
        let config = self.rendering.policy().map(|(_, config)| config)?;
        let word = get(config, "numProcPerNode").and_then(Value::as_str);
        let is_set = self.rendering.session.job().processes_per_node.is_some();
        if is_set || word.is_some_and(|word| word != "auto") {
            return None;
        }
        let of_runtime = self.runtime_resources();
        let given = trainer.resources_per_node.as_ref();
        let is_whole = |given: &Value| resources(of_runtime).is_subset(&resources(given));
        let is_partial = given.is_some_and(|given| !is_whole(given));
        let ours = self.env(name)?;
        let theirs = self.of_reference(given.unwrap_or(of_runtime), name, ours)?;
        if is_partial {
            let message = format!(
                "does not set all resources of the runtime, which count as well, so {name} is {ours}; the Kubeflow Trainer counts only those of the TrainJob, and sets {theirs}; {SAME}"
            );
            let field = Some(RESOURCES.to_owned());
            let about = InputObject::TrainJob;
            return Some(warning(about, field, &message, "partial-override", PAGE));
        }
        if !self.has_disputed_devices() {
            return None;
        }
        let or_cpus = match name {
            "DMLC_NUM_WORKER" => "",
            _ => ", or else the CPUs",
        };
        let message = format!(
            "is not set, so {name} follows from the accelerators of a node and is {ours}; the Kubeflow Trainer counts only a resource with `gpu` in its name{or_cpus}, and sets {theirs}; {SAME}"
        );
        let field = Some(PROCESSES.to_owned());
        let about = InputObject::TrainJob;
        Some(warning(about, field, &message, "accelerators", PAGE))
    }

    /// Returns the value that the reference sets for these resources, if the number for a node is not ours.
    fn of_reference(&self, counted: &Value, name: &str, ours: &str) -> Option<String> {
        let is_of_all = name == "DMLC_NUM_WORKER";
        let of_node = |gpus: u64| match (is_of_all, gpus) {
            // The row `counts` is about the number of nodes.
            (true, gpus) => u64::from(self.nodes())
                .saturating_mul(gpus.max(1))
                .to_string(),
            (false, 0) => cpus(counted).max(1).to_string(),
            (false, _) => "auto".to_owned(),
        };
        let gpus = gpus(counted);
        let theirs = another(gpus.iter().map(|gpus| of_node(*gpus)), ours)?;
        // With one GPU, torchrun starts one process for `auto`, too.
        if ours == "auto" && theirs == "1" && self.accelerators() == Some(1) {
            return None;
        }
        let first = gpus.first().copied().unwrap_or_default();
        Some(if is_of_all {
            self.all_workers(first)
        } else {
            theirs
        })
    }

    /// Whether a node has devices other than the GPUs that both count alike.
    fn has_disputed_devices(&self) -> bool {
        let known = &self.rendering.session.job().accelerators;
        let node = Some(self.container);
        let devices = self.record().devices(self.pod_set, node, known);
        devices.iter().any(|device| {
            let name = device.source.strip_prefix("resource/");
            name.is_some_and(|name| name != "nvidia.com/gpu")
        })
    }

    /// The reference runs one pod of each Job of the trainer if nothing requests a number.
    fn counts(&self) -> Option<Warning> {
        let policy = self.rendering.runtime.ml_policy.as_ref()?;
        let is_known = match &policy.member {
            None => true,
            Some(Member::Key(of)) => OF_REFERENCE.contains(&of.key.as_str()),
            Some(Member::Plugin(_)) => false,
        };
        let set = self.record().pod_set(self.pod_set)?;
        if !is_known || self.requested_nodes().is_some() || set.count < 2 {
            return None;
        }
        let message = format!(
            "is not set, so the {} pods of replicated job `{}` are the nodes; the Kubeflow Trainer runs 1; to keep that, set it to 1",
            set.count, set.name
        );
        let field = Some("spec.mlPolicy.numNodes".to_owned());
        Some(warning(
            InputObject::Runtime,
            field,
            &message,
            "counts",
            PAGE,
        ))
    }

    /// Returns the number of nodes that the TrainJob or the runtime requests.
    fn requested_nodes(&self) -> Option<u32> {
        let Rendering { job, runtime, .. } = self.rendering;
        let of_job = job.trainer.as_ref().and_then(|trainer| trainer.num_nodes);
        of_job.or_else(|| runtime.ml_policy.as_ref()?.num_nodes)
    }

    /// Returns the number of all workers of XGBoost in the reference, which ignores the counts of the runtime's template.
    fn all_workers(&self, gpus: u64) -> String {
        let nodes = self.requested_nodes().unwrap_or(1);
        u64::from(nodes).saturating_mul(gpus.max(1)).to_string()
    }

    /// Returns `resources` of the runtime's container.
    fn runtime_resources(&self) -> &'a Value {
        let job = self.job();
        let pod = job.and_then(|job| job.pointer("/template/spec/template/spec"));
        let mut containers = pod
            .into_iter()
            .flat_map(|pod| items(pod, "containers").iter());
        let node =
            containers.find(|of| get(of, "name").and_then(Value::as_str) == Some(names::NODE));
        let resources = node.and_then(|node| get(node, "resources"));
        resources.unwrap_or(&Value::Null)
    }

    /// The reference ignores the number of workers of a node.
    fn workers(&self, given: u32) -> Option<Warning> {
        let trainer = self.rendering.job.trainer.as_ref()?;
        let of_trainer = trainer.resources_per_node.as_ref();
        let counted = of_trainer.unwrap_or_else(|| self.runtime_resources());
        let ours = self.env("DMLC_NUM_WORKER")?;
        let theirs = self.of_reference(counted, "DMLC_NUM_WORKER", ours)?;
        let message = format!(
            "is {given}, so DMLC_NUM_WORKER is {ours}; the Kubeflow Trainer ignores it, and sets {theirs}, from the GPUs of a node"
        );
        Some(warning(
            InputObject::TrainJob,
            Some(PROCESSES.to_owned()),
            &message,
            "xgboost-workers",
            PAGE,
        ))
    }

    /// The reference runs one task on each node if no number is given.
    fn tasks(&self) -> Option<Warning> {
        let job = self.rendering.session.job();
        if job.processes_per_node.is_some() {
            return None;
        }
        let tasks = self.accelerators().filter(|tasks| *tasks > 1)?;
        let message = format!(
            "is not set, so Flux runs {tasks} tasks on each node, one for each accelerator; the Kubeflow Trainer runs 1"
        );
        Some(warning(
            InputObject::TrainJob,
            Some(PROCESSES.to_owned()),
            &message,
            "flux-tasks",
            PAGE,
        ))
    }
}

/// Returns the names of resources, each with its list.
fn resources(given: &Value) -> BTreeSet<(&str, &str)> {
    let lists = ["requests", "limits"].into_iter();
    let named = lists.flat_map(|list| {
        let amounts = given.get(list).and_then(Value::as_object);
        let names = amounts.into_iter().flat_map(|amounts| amounts.keys());
        names.map(move |name| (list, name.as_str()))
    });
    named.collect()
}

/// Returns one of the reference's numbers, unless one of them is ours.
fn another(theirs: impl Iterator<Item = String>, ours: &str) -> Option<String> {
    let theirs: Vec<_> = theirs.collect();
    let is_ours = theirs.iter().any(|theirs| theirs == ours);
    theirs.into_iter().next().filter(|_| !is_ours)
}

/// Returns the numbers that the reference may take for GPUs: a request, or else a limit, of any resource with "gpu" in its name. Of several
/// resources, it takes another one from run to run (W73).
fn gpus(resources: &Value) -> Vec<u64> {
    let is_gpu = |name: &str| name.to_lowercase().contains("gpu");
    let requests = amounts(resources, "requests", is_gpu);
    if !requests.is_empty() && !requests.contains(&0) {
        return requests;
    }
    let requests = requests.into_iter().filter(|amount| *amount > 0);
    let mut all: Vec<_> = requests
        .chain(amounts(resources, "limits", is_gpu))
        .collect();
    if all.is_empty() {
        all.push(0);
    }
    all
}

/// Returns the number of CPUs, as the reference counts them.
fn cpus(resources: &Value) -> u64 {
    let is_cpu = |name: &str| name == "cpu";
    let lists = ["requests", "limits"].into_iter();
    let mut all = lists.flat_map(|list| amounts(resources, list, is_cpu));
    all.find(|amount| *amount > 0).unwrap_or_default()
}

/// Returns the amounts of some resources in a list, rounded up.
fn amounts(resources: &Value, list: &str, is_it: impl Fn(&str) -> bool) -> Vec<u64> {
    let members = resources.get(list).and_then(Value::as_object);
    let members = members
        .into_iter()
        .flatten()
        .filter(|(name, _)| is_it(name));
    members
        .filter_map(|(_, amount)| u64::try_from(Quantity::read(amount)?.ceil()?).ok())
        .collect()
}
