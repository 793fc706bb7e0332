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
/// Unlike initializers, such a launcher runs at the same time as the members, so it is a follower: the scheduler does not wait for it before
/// it starts the members, but keeps its resources.
#[derive(Debug)]
pub struct Gang {
    info: Info,
    members: Vec<PodSet>,
    followers: Vec<PodSet>,
}

impl Context {
    /// Returns the gang of the TrainJob. If the runtime has no nodes, it is formed as if all pod sets were nodes that no other one waits for
    /// to be complete.
    ///
    /// # Errors
    /// No pods start first: the pod sets have no pods, or wait for each other.
    pub fn gang(&self) -> Result<Gang, Failure> {
        let info = self.info();
        let order = Order::of(&info);
        let members = order.members(&info);
        if members.is_empty() {
            let message = "no pods start first, because each replicated job has none or waits for another one; correct `replicas` or `dependsOn`";
            return Err(Failure::from(message).at(REPLICATED_JOBS));
        }
        let followers = order.followers(&members);
        let pod_sets = |names: &BTreeSet<&str>| {
            let mut sets = info.pod_sets();
            sets.retain(|set| names.contains(&*set.name()));
            sets
        };
        Ok(Gang {
            members: pod_sets(&members),
            followers: pod_sets(&followers),
            info,
        })
    }
}

impl Gang {
    /// Returns the pod sets whose pods are members, in the runtime's order.
    #[must_use]
    pub fn pod_sets(&self) -> &[PodSet] {
        &self.members
    }

    /// Returns the pod sets whose pods are created after the members and run at the same time, in the runtime's order. They wait, directly or
    /// not, for members to be ready, but for none to be complete. If one of them waits for another one to be complete, only the former is
    /// included, because they never run at the same time.
    #[must_use]
    pub fn followers(&self) -> &[PodSet] {
        &self.followers
    }

    /// Returns the members and then the followers, which belong to the scheduler's group.
    pub fn group(&self) -> impl Iterator<Item = &PodSet> {
        self.members.iter().chain(&self.followers)
    }

    /// Returns the pod sets outside of the group, in the runtime's order.
    pub fn others(&self) -> impl Iterator<Item = PodSet> {
        let in_group: BTreeSet<_> = self.group().map(PodSet::name).collect();
        let mut sets = self.info.pod_sets();
        sets.retain(|set| !in_group.contains(&set.name()));
        sets.into_iter()
    }

    /// Returns the number of members' pods.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.info.gang_members(&names(&self.members))
    }

    /// Returns the resources that the scheduler counts for all pods of members and followers together, sorted by resource.
    ///
    /// Needs the claims of [`Info::gang_requests`].
    #[must_use]
    pub fn requests(&self) -> Vec<Quantity> {
        self.info.gang_requests(&names(self.group()))
    }

    /// Returns [`Self::requests`] as the JSON of a Kubernetes `ResourceList`, such as `{"cpu":"4"}`.
    #[must_use]
    pub fn requests_json(&self) -> String {
        let requests = self.requests();
        let amounts = requests.iter();
        object(amounts.map(|one| (&*one.resource, quoted(&one.amount))))
    }

    /// Sets the scheduler of the group's pods for which the runtime sets none.
    ///
    /// Needs the claim to write `pod-sets[P].scheduler-name`.
    pub fn default_scheduler(&self, name: &str) {
        for set in self.group() {
            // An empty name means the cluster's default, like none.
            if set.scheduler_name().is_none_or(|name| name.is_empty()) {
                set.set_scheduler_name(name);
            }
        }
    }
}

fn names<'s>(sets: impl IntoIterator<Item = &'s PodSet>) -> Vec<String> {
    sets.into_iter().map(PodSet::name).collect()
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
    /// Those of them that are complete when it starts.
    starts_after: BTreeSet<String>,
    /// Whether another pod set waits until it is complete.
    ends_first: bool,
}

impl Order {
    fn of(info: &Info) -> Self {
        let sets = info.pod_sets();
        let names: Vec<_> = sets.iter().map(PodSet::name).collect();
        let dependencies: Vec<_> = sets.iter().map(PodSet::depends_on).collect();
        let direct = |name: &str| {
            let at = names.iter().position(|known| known == name);
            let direct = at.and_then(|at| dependencies.get(at));
            direct.into_iter().flatten()
        };
        let starting = |(set, name): (&PodSet, &String)| {
            let (mut waits_for, mut starts_after) = (BTreeSet::new(), BTreeSet::new());
            let mut open = vec![name.clone()];
            while let Some(next) = open.pop() {
                for one in direct(&next) {
                    if one.status == COMPLETE {
                        starts_after.insert(one.pod_set.clone());
                    }
                    if waits_for.insert(one.pod_set.clone()) {
                        open.push(one.pod_set.clone());
                    }
                }
            }
            let mut all = dependencies.iter().flatten();
            Starting {
                name: name.clone(),
                has_pods: set.address_count() > 0,
                waits_for,
                starts_after,
                ends_first: all.any(|one| one.pod_set == *name && one.status == COMPLETE),
            }
        };
        Self {
            sets: sets.iter().zip(&names).map(starting).collect(),
        }
    }

    /// Returns the pod sets with pods. One without pods is ready at once.
    fn with_pods(&self) -> impl Iterator<Item = &Starting> {
        self.sets.iter().filter(|set| set.has_pods)
    }

    fn members(&self, info: &Info) -> BTreeSet<&str> {
        let nodes = names(&info.nodes());
        let mut candidates: Vec<_> = self
            .with_pods()
            .filter(|set| nodes.contains(&set.name))
            .collect();
        if candidates.is_empty() {
            candidates = self.with_pods().filter(|set| !set.ends_first).collect();
        }
        let first = first_of(&candidates);
        let is_apart = |set: &&Starting| {
            let mut first = first.iter();
            first
                .all(|one| !one.waits_for.contains(&set.name) && !set.waits_for.contains(&one.name))
        };
        let others: Vec<_> = self
            .with_pods()
            .filter(|set| !first.iter().any(|one| one.name == set.name))
            .filter(is_apart)
            .collect();
        let members = first_of(&others).into_iter().chain(first);
        members.map(|set| &*set.name).collect()
    }

    /// Returns the pod sets that run at the same time as the members and are created later.
    fn followers(&self, members: &BTreeSet<&str>) -> BTreeSet<&str> {
        let has_member =
            |names: &BTreeSet<String>| names.iter().any(|name| members.contains(&**name));
        let later: Vec<_> = self
            .with_pods()
            .filter(|set| !members.contains(&*set.name))
            .filter(|set| has_member(&set.waits_for) && !has_member(&set.starts_after))
            .collect();
        let stays = |set: &&Starting| {
            !later
                .iter()
                .any(|other| other.starts_after.contains(&set.name))
        };
        let staying = later.iter().copied().filter(stays);
        staying.map(|set| &*set.name).collect()
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
