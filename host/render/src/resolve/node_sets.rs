//! The pod sets whose pods are the nodes.

use trainyard_api::names;
use trainyard_model::{manifest::NodeSet, plugin_info::PluginId, record::Record};

use crate::select::Active;

/// The pod sets whose pods are the nodes.
pub(super) struct NodeSets {
    /// Their positions. The first one gets the nodes that the others do not use.
    pub(super) positions: Vec<u32>,
    /// The plugin whose `nodeSets` select them. `None` if they are those with the ancestor `trainer`.
    pub(super) declared_by: Option<PluginId>,
}

impl NodeSets {
    /// Returns the pod sets in the `nodeSets` of the active plugin that has any; at most one has. Without such a plugin, returns the
    /// pod sets with the ancestor `trainer`.
    pub(super) fn of(record: &Record, active: &[Active]) -> Self {
        for Active { plugin, config, .. } in active {
            let is_on = |set: &&NodeSet| set.when.as_ref().is_none_or(|when| when.holds(config));
            let mut declared: Vec<u32> = Vec::new();
            for set in plugin.manifest.node_sets.iter().filter(is_on) {
                let position = record.pod_set_named(&set.pod_set);
                // A pod set that is named twice counts once.
                declared.extend(position.filter(|position| !declared.contains(position)));
            }
            if !declared.is_empty() {
                return Self {
                    positions: declared,
                    declared_by: Some(plugin.id.clone()),
                };
            }
        }
        let sets = record.pod_sets.iter().zip(0u32..);
        let trainers = sets
            .filter(|(set, _)| set.ancestor.as_deref() == Some(names::ANCESTOR_TRAINER))
            .map(|(_, at)| at);
        Self {
            positions: trainers.collect(),
            declared_by: None,
        }
    }
}
