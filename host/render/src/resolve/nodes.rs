//! How many pods the nodes of a TrainJob are. Counts are the host's: no plugin sets them.

use trainyard_api::{FieldPath, Runtime, TrainJob, names};
use trainyard_model::record::{Datum, Field, Owner, PlaceScope};

use super::overrides::Overrides;
use crate::{
    problem::{About, Problem, Warning},
    select::Active,
};

impl Overrides<'_> {
    /// Counts the nodes; returns the effective number.
    pub(super) fn nodes(
        &mut self,
        job: &TrainJob,
        runtime: &Runtime,
        active: &[Active],
    ) -> (u32, Vec<Warning>) {
        let sets = self.node_sets(active);
        let from_job = job.trainer.as_ref().and_then(|t| t.num_nodes);
        let from_runtime = runtime
            .ml_policy
            .as_ref()
            .and_then(|policy| policy.num_nodes);
        let job_path = FieldPath::root()
            .field("spec")
            .field("trainer")
            .field("numNodes");
        let runtime_path = FieldPath::root()
            .field("spec")
            .field("mlPolicy")
            .field("numNodes");
        let asked = match (from_job, from_runtime) {
            (Some(nodes), _) => Some((nodes, Owner::TrainJob, job_path)),
            (None, Some(nodes)) => Some((nodes, Owner::Runtime, runtime_path)),
            (None, None) => None,
        };
        for set in &sets {
            if let Some(set) = self.record.pod_sets.get_mut(*set as usize) {
                set.counts_nodes = true;
            }
        }
        let Some((first, others)) = sets.split_first() else {
            return self.no_node_sets(asked);
        };
        let count = |set: u32| self.record.pod_set(set).map_or(1, |set| set.count);
        let other_nodes: u32 = others.iter().map(|set| count(*set)).sum();
        let Some((nodes, owner, path)) = asked else {
            return (count(*first).saturating_add(other_nodes).max(1), Vec::new());
        };
        match nodes.checked_sub(other_nodes).filter(|rest| *rest > 0) {
            Some(rest) => {
                if let Some(set) = self.record.pod_sets.get_mut(*first as usize) {
                    set.count = rest;
                }
                let scope = PlaceScope::PodSet(*first);
                self.put(
                    owner,
                    scope,
                    Field::Count,
                    "",
                    Some(Datum::Integer(rest.into())),
                    &path,
                );
            }
            None => {
                let message = format!(
                    "is {nodes}, and {other_nodes} of them are taken: {} is the least",
                    other_nodes + 1
                );
                self.problems.push(match owner {
                    Owner::TrainJob => Problem::job(path, message),
                    _ => Problem::runtime(path, message),
                });
            }
        }
        (nodes, Vec::new())
    }

    /// The positions of the pod sets that `numNodes` counts: the active plugins', else those with the trainer ancestor.
    fn node_sets(&self, active: &[Active]) -> Vec<u32> {
        let mut declared: Vec<u32> = Vec::new();
        let named = active
            .iter()
            .flat_map(|active| {
                active
                    .plugin
                    .manifest
                    .node_sets
                    .iter()
                    .map(move |set| (active, set))
            })
            .filter(|(active, set)| {
                set.when.as_deref().is_none_or(|at| {
                    active.config.pointer(at) == Some(&serde_json::Value::Bool(true))
                })
            })
            .filter_map(|(_, set)| self.record.pod_set_named(&set.pod_set));
        for set in named {
            // Two plugins may name one pod set; it counts once.
            if !declared.contains(&set) {
                declared.push(set);
            }
        }
        if !declared.is_empty() {
            return declared;
        }
        let sets = self.record.pod_sets.iter().zip(0u32..);
        sets.filter(|(set, _)| set.ancestor.as_deref() == Some(names::ANCESTOR_TRAINER))
            .map(|(_, at)| at)
            .collect()
    }

    /// A runtime without nodes can't be given a number of them.
    fn no_node_sets(&mut self, asked: Option<(u32, Owner, FieldPath)>) -> (u32, Vec<Warning>) {
        let message = format!(
            "counts nothing: no replicated job has the label {}: {}",
            names::ANCESTOR_LABEL,
            names::ANCESTOR_TRAINER
        );
        match asked {
            Some((nodes, Owner::TrainJob, path)) => {
                self.problems.push(Problem::job(path, message));
                (nodes, Vec::new())
            }
            Some((nodes, _, path)) => {
                let field = Some(path.to_string());
                (
                    nodes,
                    vec![Warning {
                        about: About::Runtime,
                        field,
                        message,
                        plugin: None,
                    }],
                )
            }
            None => (1, Vec::new()),
        }
    }
}
