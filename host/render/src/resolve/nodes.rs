//! How many pods the nodes of a TrainJob are. Counts are the host's: no plugin sets them.

use trainyard_api::{FieldPath, Runtime, TrainJob, names};
use trainyard_model::{
    manifest::NodeSet,
    plugin::PluginId,
    record::{Datum, EntryRef, EntryScope, Field, Owner},
};

use super::overrides::Overrides;
use crate::{
    journal::Source,
    problem::{InputObject, Problem, Warning},
    select::Active,
};

/// How many nodes a TrainJob has.
pub(super) struct Nodes {
    /// The effective number, never 0.
    pub(super) count: u32,
    /// Where the runtime asks for nodes and has none.
    pub(super) warning: Option<Warning>,
}

/// The pod sets that `numNodes` counts.
pub(super) struct NodeSets {
    /// Their positions, the first of which gets the nodes that the others leave.
    pub(super) positions: Vec<u32>,
    /// The plugin whose `nodeSets` say so; none if they are those with the trainer ancestor.
    declared_by: Option<PluginId>,
}

/// A wish for a number of nodes.
struct Asked {
    nodes: u32,
    owner: Owner,
    path: FieldPath,
}

impl Asked {
    /// The TrainJob's wish, else the runtime's.
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

    /// Who asked for the number that a pod set gets.
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
    /// Counts the nodes, and gives the pod sets their share.
    pub(super) fn nodes(&mut self, job: &TrainJob, runtime: &Runtime, sets: NodeSets) -> Nodes {
        let NodeSets {
            positions: sets,
            declared_by,
        } = sets;
        for set in &sets {
            if let Some(set) = self.record.pod_sets.get_mut(*set as usize) {
                set.counts_nodes = true;
            }
        }
        let asked = Asked::of(job, runtime);
        let (count, warning) = match (sets.split_first(), asked) {
            (None, asked) => self.no_node_sets(asked),
            (Some((first, others)), Some(asked)) => {
                (self.share(asked, *first, others, declared_by), None)
            }
            (Some(_), None) => (self.count(&sets).max(1), None),
        };
        Nodes { count, warning }
    }

    /// The pods of each job in all these pod sets.
    fn count(&self, sets: &[u32]) -> u32 {
        let count = |set: &u32| self.record.pod_set(*set).map_or(1, |set| set.count);
        sets.iter().map(count).fold(0, u32::saturating_add)
    }

    /// Gives the first pod set the nodes that the others leave. If they leave none, it has no jobs, since a Job without pods
    /// can't be ready, which other pod sets may wait for (W23).
    fn share(
        &mut self,
        asked: Asked,
        first: u32,
        others: &[u32],
        declared_by: Option<PluginId>,
    ) -> u32 {
        let nodes = asked.nodes;
        let taken = self.count(others);
        let Some(rest) = nodes.checked_sub(taken).filter(|_| nodes > 0) else {
            let message = format!(
                "is {nodes}, but other pod sets already use {taken} of the nodes; set at least {}",
                taken.max(1)
            );
            self.problems.push(asked.problem(message));
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
        let (owner, source) = (asked.owner, asked.source(declared_by));
        self.put(entry, Some(count), owner, source);
        nodes
    }

    /// The positions of the pod sets that `numNodes` counts: those of the active plugin that has `nodeSets`, of which there is
    /// at most one, else those with the trainer ancestor.
    pub(super) fn node_sets(&self, active: &[Active]) -> NodeSets {
        for Active { plugin, config } in active {
            let is_on = |set: &&NodeSet| set.when.as_ref().is_none_or(|when| when.holds(config));
            let mut declared: Vec<u32> = Vec::new();
            for set in plugin.manifest.node_sets.iter().filter(is_on) {
                let position = self.record.pod_set_named(&set.pod_set);
                // A pod set that is named twice counts once.
                declared.extend(position.filter(|position| !declared.contains(position)));
            }
            if !declared.is_empty() {
                return NodeSets {
                    positions: declared,
                    declared_by: Some(plugin.id.clone()),
                };
            }
        }
        let sets = self.record.pod_sets.iter().zip(0u32..);
        let trainers = sets
            .filter(|(set, _)| set.ancestor.as_deref() == Some(names::ANCESTOR_TRAINER))
            .map(|(_, at)| at);
        NodeSets {
            positions: trainers.collect(),
            declared_by: None,
        }
    }

    /// A runtime without nodes can't be given a number of them.
    fn no_node_sets(&mut self, asked: Option<Asked>) -> (u32, Option<Warning>) {
        let Some(asked) = asked else {
            return (1, None);
        };
        let message = format!(
            "has no effect: no replicated job has the label {}: {}",
            names::ANCESTOR_LABEL,
            names::ANCESTOR_TRAINER
        );
        let count = asked.nodes;
        let warning = if asked.owner == Owner::TrainJob {
            self.problems.push(asked.problem(message));
            None
        } else {
            Some(Warning {
                about: InputObject::Runtime,
                field: Some(asked.path.to_string()),
                message,
                plugin: None,
            })
        };
        (count, warning)
    }
}
