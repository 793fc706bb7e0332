//! The PriorityClass of the PodGroup, which is that of its pods.

use std::collections::BTreeSet;

use trainyard_sdk::{
    Context, PodSet,
    names::{DNS_SUBDOMAIN, is_dns_subdomain},
};

/// The API of PriorityClasses.
const API: &str = "scheduling.k8s.io/v1";
/// Kubernetes' own classes, which always exist.
const OF_SYSTEM: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// The PriorityClasses of pod sets.
pub(crate) struct Classes<'a>(Vec<(String, &'a PodSet)>);

impl<'a> Classes<'a> {
    pub(crate) fn of(sets: &'a [PodSet]) -> Self {
        let named = sets
            .iter()
            .filter_map(|set| Some((set.priority_class()?, set)));
        Self(named.filter(|(class, _)| !class.is_empty()).collect())
    }

    /// Returns the class of the PodGroup: of several, the last one, as in the reference.
    pub(crate) fn of_group(&self) -> Option<&str> {
        self.0.last().map(|(class, _)| &**class)
    }

    /// Warns if the pods have several classes, of which the PodGroup can have only one.
    pub(crate) fn warn_of_several(&self, ctx: &Context) {
        let Some((chosen, set)) = self.0.last() else {
            return;
        };
        if let Some((other, other_set)) = self.0.iter().find(|(class, _)| class != chosen) {
            let message = format!(
                "the pods that start together have several PriorityClasses: `{other}` in replicated job `{}`, and `{chosen}` in `{}`; the PodGroup has `{chosen}`; set only one class",
                other_set.name(),
                set.name()
            );
            ctx.warn(&message, Some(&other_set.path("priorityClassName")));
        }
    }
}

/// Looks up the PriorityClasses of all pods. The API server rejects pods of a class that does not exist.
pub(crate) fn require_classes(ctx: &Context) {
    let sets = ctx.info().pod_sets();
    for set in &sets {
        let class = set.priority_class().unwrap_or_default();
        if !class.is_empty() && !is_dns_subdomain(&class) {
            let message =
                format!("must be the name of a PriorityClass: {DNS_SUBDOMAIN}; found `{class}`");
            ctx.error(&message, Some(&set.path("priorityClassName")));
        }
    }
    let Classes(named) = Classes::of(&sets);
    let classes: BTreeSet<_> = named.iter().map(|(class, _)| &**class).collect();
    for class in classes {
        if !OF_SYSTEM.contains(&class) && is_dns_subdomain(class) {
            ctx.lookups().get(API, "PriorityClass", class);
        }
    }
}
