//! Checks that the plugin writes to all nodes or to none.

use std::collections::BTreeSet;

use trainyard_api::names::ANCESTOR_TRAINER;
use trainyard_model::{
    claims::{ClaimScope, PodSetPattern, Verb},
    plugin_info::PluginInfo,
};

use super::{
    Rendered, of_each,
    report::{Check, CheckName},
};
use crate::plugin::cases::{Reach, Rendering};

/// What the plugin wrote to the nodes in a rendering.
pub(super) struct NodeWrites {
    /// Whether its claims include nodes.
    is_claimed: bool,
    /// The nodes that it wrote to.
    written: BTreeSet<String>,
    /// The nodes that it missed, in words.
    pub(super) missed: Vec<String>,
}

impl NodeWrites {
    pub(super) fn of(rendering: &Rendering<'_>, plugin: &PluginInfo) -> Self {
        let jobs = rendering.jobs.iter();
        let nodes: BTreeSet<_> = jobs.flat_map(|job| job.rendered.node_pod_sets()).collect();
        let claims = Claimed::of(plugin, &nodes);
        let reach = Reach::of(rendering, &plugin.id.name);
        let is_written = |name: &&&str| reach.has_written_to(name);
        let written: BTreeSet<_> = nodes.iter().filter(is_written).copied().collect();
        // A claim such as `pod-sets[*]` may be meant for other pods only.
        let is_due = match claims {
            Claimed::Nodes => reach.has_written_to_any(),
            Claimed::Names => !written.is_empty(),
            Claimed::Nothing => false,
        };
        let missed = nodes.difference(&written);
        let missed = missed.filter(|name| is_due && reach.has_pods(name));
        Self {
            is_claimed: !matches!(claims, Claimed::Nothing),
            missed: missed
                .map(|name| {
                    format!("the pods of `{name}` are nodes, but it wrote to other pods only")
                })
                .collect(),
            written: written.into_iter().map(str::to_owned).collect(),
        }
    }

    /// Adds the nodes that the plugin writes to in another rendering, but not in this one.
    pub(super) fn miss_nodes_of(&mut self, other: &Self) {
        let lost = other.written.difference(&self.written);
        let lost = lost.map(|name| format!("it no longer writes to the pods of `{name}`"));
        self.missed.extend(lost);
    }
}

/// How the claims of writes name the nodes.
enum Claimed {
    /// As nodes, or as trainers, which nodes usually are.
    Nodes,
    /// By names that include those of nodes.
    Names,
    Nothing,
}

impl Claimed {
    fn of(plugin: &PluginInfo, nodes: &BTreeSet<&str>) -> Self {
        let claims = plugin.manifest.claims.iter();
        let writes = claims.filter(|(verb, _)| *verb != Verb::Read);
        let patterns: Vec<_> = writes
            .filter_map(|(_, path)| match &path.scope {
                ClaimScope::PodSet(pod_sets) | ClaimScope::Container { pod_sets, .. } => {
                    Some(pod_sets)
                }
                ClaimScope::Job => None,
            })
            .collect();
        let is_of_nodes = |pattern: &&PodSetPattern| match pattern {
            PodSetPattern::Nodes => true,
            PodSetPattern::Ancestor(name) => **name == *ANCESTOR_TRAINER,
            PodSetPattern::Named(_) => false,
        };
        let includes_node = |pattern: &&PodSetPattern| match pattern {
            PodSetPattern::Named(key) => nodes.iter().any(|node| key.matches(node, None)),
            PodSetPattern::Nodes | PodSetPattern::Ancestor(_) => false,
        };
        if patterns.iter().any(is_of_nodes) {
            Self::Nodes
        } else if patterns.iter().any(includes_node) {
            Self::Names
        } else {
            Self::Nothing
        }
    }
}

pub(super) fn check<'r>(all: impl Iterator<Item = &'r Rendered> + Clone) -> Check {
    if !all.clone().any(|one| one.nodes.is_claimed) {
        return Check::unneeded(CheckName::Nodes, "it claims no writes to the nodes");
    }
    of_each(CheckName::Nodes, all, |one| &one.nodes.missed)
}
