//! The number of nodes of a TrainJob, written to the pod sets. Only the host sets it, never a plugin.

use serde_json::Value;
use trainyard_api::{FieldPath, Runtime, TrainJob, names, runtime::Member};
use trainyard_model::{
    plugin_info::PluginId,
    record::{Datum, EntryRef, EntryScope, Field, Owner},
};

use super::{node_sets::NodeSets, overrides::Overrides, template};
use crate::{
    journal::Source,
    json::get,
    problem::{InputObject, Problem, Warning},
};

/// The nodes of a TrainJob.
pub(super) struct Nodes {
    /// The effective number, never 0.
    pub(super) count: u32,
    /// A warning if the runtime sets a number of nodes but has no pod set for them.
    pub(super) warning: Option<Warning>,
}

/// A requested number of nodes.
struct Requested {
    nodes: u32,
    owner: Owner,
    path: FieldPath,
}

impl Requested {
    /// Returns the TrainJob's number, or else the runtime's.
    fn of(job: &TrainJob, runtime: &Runtime) -> Option<Self> {
        let from_job = job.trainer.as_ref().and_then(|trainer| trainer.num_nodes);
        let policy = runtime.ml_policy.as_ref();
        let from_runtime = policy.and_then(|policy| policy.num_nodes);
        let (nodes, owner, member) = match (from_job, from_runtime) {
            (Some(nodes), _) => (nodes, Owner::TrainJob, "trainer"),
            (None, nodes) => (nodes?, Owner::Runtime, "mlPolicy"),
        };
        let path = FieldPath::of(["spec", member, "numNodes"]);
        Some(Self { nodes, owner, path })
    }

    /// Returns the source of the number that a pod set gets.
    fn source(self, declared_by: Option<PluginId>) -> Source {
        let field = self.path;
        match (declared_by, self.owner) {
            (Some(plugin), _) => Source::NodeSets { plugin, field },
            (None, Owner::TrainJob) => Source::TrainJob { field },
            (None, _) => Source::Runtime { field },
        }
    }

    fn problem(self, message: String) -> Problem {
        match self.owner {
            Owner::TrainJob => Problem::job(self.path, message),
            _ => Problem::runtime(self.path, message),
        }
    }
}

impl Overrides<'_> {
    /// Determines the number of nodes and writes it to the pod sets.
    pub(super) fn set_nodes(&mut self, job: &TrainJob, runtime: &Runtime, sets: NodeSets) -> Nodes {
        let NodeSets {
            positions: sets,
            declared_by,
        } = sets;
        for set in &sets {
            if let Some(set) = self.record.pod_sets.get_mut(*set as usize) {
                set.counts_nodes = true;
            }
        }
        let requested = Requested::of(job, runtime);
        let (count, warning) = match (sets.split_first(), requested) {
            (None, requested) => self.no_node_sets(requested),
            (Some((first, others)), Some(requested)) => {
                (self.share(requested, *first, others, declared_by), None)
            }
            (Some(_), None) => {
                // The workers of a plugin's own pod sets may serve one after the other, like those of MPI.
                if declared_by.is_none() {
                    self.check_template_counts(runtime, &sets);
                }
                (self.count(&sets).max(1), None)
            }
        };
        Nodes { count, warning }
    }

    /// Returns the sum of the pod counts of these pod sets.
    fn count(&self, sets: &[u32]) -> u32 {
        let count = |set: &u32| self.record.pod_set(*set).map_or(1, |set| set.count);
        sets.iter().map(count).fold(0, u32::saturating_add)
    }

    /// Checks the counts of the runtime's template, which determine the nodes if nothing requests a number. The nodes of a framework wait
    /// for each other, so they must all run at once.
    fn check_template_counts(&mut self, runtime: &Runtime, sets: &[u32]) {
        let policy = runtime.ml_policy.as_ref();
        let Some(Member::Key(policy)) = policy.and_then(|policy| policy.member.as_ref()) else {
            return;
        };
        let jobs = self.record.template.as_ref();
        let jobs = jobs.and_then(|spec| get(spec, "replicatedJobs")?.as_array());
        let is_node = |name: &Value| {
            let position = name
                .as_str()
                .and_then(|name| self.record.pod_set_named(name));
            position.is_some_and(|position| sets.contains(&position))
        };
        let mut problems = Vec::new();
        for (index, job) in jobs.into_iter().flatten().enumerate() {
            if get(job, "name").is_some_and(is_node) {
                let path = template::replicated_jobs().index(index);
                let path = path.fields(["template", "spec"]);
                problems.extend(count_problems(job, &path, &policy.key));
            }
        }
        if problems.is_empty() {
            return;
        }
        self.problems.extend(problems);
        // Plugins still run, to report what they find, and expect that there is a node.
        for set in sets {
            if let Some(set) = self.record.pod_sets.get_mut(*set as usize) {
                set.count = set.count.max(1);
            }
        }
    }

    /// Gives the first pod set the nodes that the others do not use. If none are left, it gets no jobs, because a Job without pods
    /// is never ready, and other pod sets may wait for it (W23).
    fn share(
        &mut self,
        requested: Requested,
        first: u32,
        others: &[u32],
        declared_by: Option<PluginId>,
    ) -> u32 {
        let nodes = requested.nodes;
        let taken = self.count(others);
        let Some(rest) = nodes.checked_sub(taken).filter(|_| nodes > 0) else {
            let message = format!(
                "is {nodes}, but other pod sets already use {taken} of the nodes; set at least {}",
                taken.max(1)
            );
            self.problems.push(requested.problem(message));
            return nodes;
        };
        let field = if rest == 0 {
            Field::Replicas
        } else {
            Field::Count
        };
        if let Some(set) = self.record.pod_sets.get_mut(first as usize) {
            match field {
                Field::Replicas => set.replicas = 0,
                _ => set.count = rest,
            }
        }
        let entry = EntryRef {
            scope: EntryScope::PodSet(first),
            field,
            key: "".into(),
        };
        let count = Datum::Integer(rest.into());
        let (owner, source) = (requested.owner, requested.source(declared_by));
        self.write(entry, Some(count), owner, source);
        nodes
    }

    /// Reports a requested number of nodes that has no effect: an error of the TrainJob, or a warning of the runtime.
    fn no_node_sets(&mut self, requested: Option<Requested>) -> (u32, Option<Warning>) {
        let Some(requested) = requested else {
            return (1, None);
        };
        let message = format!(
            "has no effect: no replicated job has the label {}: {}",
            names::ANCESTOR_LABEL,
            names::ANCESTOR_TRAINER
        );
        let count = requested.nodes;
        let warning = if requested.owner == Owner::TrainJob {
            self.problems.push(requested.problem(message));
            None
        } else {
            Some(Warning {
                about: InputObject::Runtime,
                field: Some(requested.path.to_string()),
                message,
                plugin: None,
            })
        };
        (count, warning)
    }
}

/// Returns why the pods of a replicated job cannot be nodes that wait for each other.
fn count_problems(job: &Value, path: &FieldPath, key: &str) -> Vec<Problem> {
    let count = |field: &str| job.pointer(&format!("/template/spec/{field}"))?.as_u64();
    let (parallelism, completions) = (count("parallelism"), count("completions"));
    let mut problems = Vec::new();
    for (field, count) in [("parallelism", parallelism), ("completions", completions)] {
        if count == Some(0) {
            let message = format!(
                "is 0, but mlPolicy.{key} needs at least one node; set it to at least 1, or set spec.mlPolicy.numNodes"
            );
            problems.push(Problem::runtime(path.field(field), message));
        }
    }
    let at_once = parallelism.unwrap_or(1);
    if let Some(completions) = completions.filter(|count| *count > at_once && at_once > 0) {
        let message = format!(
            "is {completions}, but only {at_once} of the pods run at once (`parallelism`), and the nodes of mlPolicy.{key} wait for each other; set both to the same number, or set spec.mlPolicy.numNodes"
        );
        problems.push(Problem::runtime(path.field("completions"), message));
    }
    problems
}
