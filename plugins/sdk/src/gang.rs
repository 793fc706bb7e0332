//! The pods of a TrainJob that start together, for policies that schedule all of them or none.

use std::collections::BTreeSet;

use crate::{
    Failure,
    contract::{Context, Info, PodSet, Quantity},
    json::{object, quoted},
    paths::REPLICATED_JOBS,
};

/// The status of a pod set whose pods have ended successfully.
const COMPLETE: &str = "Complete";

/// The pods of a TrainJob that start together: its nodes, and all other pods that neither wait for them nor are waited for.
///
/// Pods that run first, such as initializers, are not members: a scheduler that waits for the whole gang would never start them, because
/// the other members are created only after they have ended. The same holds for an MPI launcher that is created once its nodes are ready.
#[derive(Debug)]
pub struct Gang {
    info: Info,
    members: Vec<PodSet>,
}

impl Context {
    /// Returns the gang of the TrainJob. If the runtime has no nodes, it is formed as if all pod sets were nodes that no other one waits for
    /// to be complete.
    ///
    /// # Errors
    /// No pods start first: the pod sets have no pods, or wait for each other.
    pub fn gang(&self) -> Result<Gang, Failure> {
        let info = self.info();
        let members = Order::of(&info).members(&info);
        if members.is_empty() {
            let message = "no pods start first, because each replicated job has none or waits for another one; correct `replicas` or `dependsOn`";
            return Err(Failure::from(message).at(REPLICATED_JOBS));
        }
        Ok(Gang { info, members })
    }
}

impl Gang {
    /// Returns the pod sets whose pods are members, in the runtime's order.
    #[must_use]
    pub fn pod_sets(&self) -> &[PodSet] {
        &self.members
    }

    /// Returns the number of pods.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.info.gang_members(&self.names())
    }

    /// Returns the resources that the scheduler counts for all pods together, sorted by resource.
    ///
    /// Needs the claims of [`Info::gang_requests`].
    #[must_use]
    pub fn requests(&self) -> Vec<Quantity> {
        self.info.gang_requests(&self.names())
    }

    /// Returns [`Self::requests`] as the JSON of a Kubernetes `ResourceList`, such as `{"cpu":"4"}`.
    #[must_use]
    pub fn requests_json(&self) -> String {
        let requests = self.requests();
        let amounts = requests.iter();
        object(amounts.map(|one| (&*one.resource, quoted(&one.amount))))
    }

    /// Sets the scheduler of the members for which the runtime sets none.
    ///
    /// Needs the claim to write `pod-sets[P].scheduler-name`.
    pub fn default_scheduler(&self, name: &str) {
        for set in &self.members {
            if set.scheduler_name().is_none() {
                set.set_scheduler_name(name);
            }
        }
    }

    fn names(&self) -> Vec<String> {
        self.members.iter().map(PodSet::name).collect()
    }
}

/// The order in which the pod sets start.
struct Order {
    sets: Vec<Starting>,
}

/// A pod set and those that it waits for.
struct Starting {
    name: String,
    has_pods: bool,
    /// All pod sets that it waits for, directly or not.
    waits_for: BTreeSet<String>,
    /// Whether another pod set waits until it is complete.
    ends_first: bool,
}

impl Order {
    fn of(info: &Info) -> Self {
        let sets = info.pod_sets();
        let names: Vec<_> = sets.iter().map(PodSet::name).collect();
        let dependencies: Vec<_> = sets.iter().map(PodSet::depends_on).collect();
        let waits_for = |name: &str| {
            let mut found = BTreeSet::new();
            let mut open = vec![name.to_owned()];
            while let Some(next) = open.pop() {
                let at = names.iter().position(|name| *name == next);
                let direct = at.and_then(|at| dependencies.get(at));
                for one in direct.into_iter().flatten() {
                    if found.insert(one.pod_set.clone()) {
                        open.push(one.pod_set.clone());
                    }
                }
            }
            found
        };
        let ends_first = |name: &str| {
            let mut all = dependencies.iter().flatten();
            all.any(|one| one.pod_set == name && one.status == COMPLETE)
        };
        let starting = |(set, name): (&PodSet, &String)| Starting {
            has_pods: set.address_count() > 0,
            waits_for: waits_for(name),
            ends_first: ends_first(name),
            name: name.clone(),
        };
        Self {
            sets: sets.iter().zip(&names).map(starting).collect(),
        }
    }

    fn members(&self, info: &Info) -> Vec<PodSet> {
        let nodes: Vec<_> = info.nodes().iter().map(PodSet::name).collect();
        // A pod set without pods is ready at once.
        let with_pods = || self.sets.iter().filter(|set| set.has_pods);
        let mut candidates: Vec<_> = with_pods()
            .filter(|set| nodes.contains(&set.name))
            .collect();
        if candidates.is_empty() {
            candidates = with_pods().filter(|set| !set.ends_first).collect();
        }
        let first = first_of(&candidates);
        let is_apart = |set: &&Starting| {
            let mut first = first.iter();
            first
                .all(|one| !one.waits_for.contains(&set.name) && !set.waits_for.contains(&one.name))
        };
        let others: Vec<_> = with_pods()
            .filter(|set| !first.iter().any(|one| one.name == set.name))
            .filter(is_apart)
            .collect();
        let members: BTreeSet<_> = first_of(&others)
            .into_iter()
            .chain(first.iter().copied())
            .map(|set| &*set.name)
            .collect();
        let mut sets = info.pod_sets();
        sets.retain(|set| members.contains(&*set.name()));
        sets
    }
}

/// Returns the pod sets that wait for none of the others.
fn first_of<'s>(sets: &[&'s Starting]) -> Vec<&'s Starting> {
    let waits = |set: &Starting| {
        let mut others = sets.iter();
        others.any(|other| set.waits_for.contains(&other.name))
    };
    sets.iter().copied().filter(|set| !waits(set)).collect()
}
