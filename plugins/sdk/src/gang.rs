//! The pods of a TrainJob that start together, for policies that schedule all of them or none.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Failure,
    contract::{Context, Info, PodSet, Quantity},
    json::{object, quoted},
    paths::REPLICATED_JOBS,
};

/// The name of the scheduler of pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";
/// The status of a pod set whose pods have ended successfully.
const COMPLETE: &str = "Complete";

/// The pods of a TrainJob that start together: its nodes, and all other pods that neither wait for them nor are waited for.
///
/// Pods that run first, such as initializers, are not members: a scheduler that waits for the whole gang would never start them, because
/// the other members are created only after they have ended. The same holds for an MPI launcher that is created once its nodes are ready.
/// Unlike initializers, such a launcher runs at the same time as the members, so it is a follower: the scheduler does not wait for it before
/// it starts the members, but keeps its resources.
///
/// ```
/// use trainyard_sdk::{Context, Failure};
///
/// fn transform(ctx: &Context) -> Result<(), Failure> {
///     let gang = ctx.gang()?;
///     let group = ctx.objects().name("scheduling.example.com/v1", "Group", "", None);
///     ctx.because("the scheduler starts the pods of this group together");
///     for set in gang.group() {
///         set.join_by_label(ctx, "scheduling.example.com/group", &group);
///     }
///     gang.default_scheduler("batch-scheduler");
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Gang<'c> {
    info: &'c Info,
    members: Vec<PodSet>,
    followers: Vec<PodSet>,
    others: Vec<PodSet>,
}

impl Context {
    /// Returns the gang of the TrainJob. If the runtime has no nodes, it is formed as if all pod sets were nodes that no other one waits for
    /// to be complete.
    ///
    /// # Errors
    /// No pods start first: the pod sets have no pods, or wait for each other.
    pub fn gang(&self) -> Result<Gang<'_>, Failure> {
        let info = self.info();
        let pod_sets = info.pod_sets();
        let order = Order::of(&pod_sets, &info.nodes());
        let members = order.members();
        if members.is_empty() {
            let message = "no pods start first, because each replicated job has none or waits for another one; correct `replicas` or `dependsOn`";
            return Err(Failure::from(message).at(REPLICATED_JOBS));
        }
        let followers = order.followers(&members);
        let mut gang = Gang {
            info,
            members: Vec::new(),
            followers: Vec::new(),
            others: Vec::new(),
        };
        for (at, set) in pod_sets.into_iter().enumerate() {
            if members.contains(&at) {
                gang.members.push(set);
            } else if followers.contains(&at) {
                gang.followers.push(set);
            } else {
                gang.others.push(set);
            }
        }
        Ok(gang)
    }
}

impl Gang<'_> {
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
    #[must_use]
    pub fn others(&self) -> &[PodSet] {
        &self.others
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

impl Gang<'_> {
    /// Warns if the group's pods have different schedulers, or if their scheduler may not read the PodGroup, because it is the cluster's
    /// default one and the operator's configuration of the policy does not name it.
    ///
    /// `known` is the scheduler in that configuration. Call it after [`Self::default_scheduler`]. Needs the claim to read
    /// `pod-sets[P].scheduler-name`.
    pub fn warn_of_scheduler(&self, ctx: &Context, policy: &str, known: Option<&str>) {
        let named = |set: &PodSet| set.scheduler_name().filter(|name| !name.is_empty());
        let of = |set: &PodSet| named(set).unwrap_or_else(|| DEFAULT_SCHEDULER.to_owned());
        let mut group = self.group();
        let Some(first) = group.next() else {
            return;
        };
        let scheduler = of(first);
        let message = if let Some(other) = group.find(|set| of(set) != scheduler) {
            format!(
                "the pods of replicated job `{}` have the scheduler `{scheduler}`, and those of `{}` have `{}`, but one scheduler has to place the whole group; set the same `schedulerName` for both",
                first.name(),
                other.name(),
                of(other)
            )
        } else if scheduler == DEFAULT_SCHEDULER
            && known != Some(DEFAULT_SCHEDULER)
            && self.size() > 1
        {
            let found = match named(first) {
                Some(_) => "is",
                None => "is not set, so it is",
            };
            format!(
                "{found} `{DEFAULT_SCHEDULER}`, which usually ignores the PodGroup and starts the pods one by one; set it to a scheduler that reads PodGroups of {policy}, here or as `schedulerName` in the operator's configuration of the plugin {policy}, where `{DEFAULT_SCHEDULER}` means that it reads them"
            )
        } else {
            return;
        };
        ctx.warn(&message, Some(&first.path("schedulerName")));
    }
}

fn names<'s>(sets: impl IntoIterator<Item = &'s PodSet>) -> Vec<String> {
    sets.into_iter().map(PodSet::name).collect()
}

/// The order in which the pod sets start. Every question takes time in proportion to the number of dependencies, because a runtime can have
/// hundreds of replicated jobs.
struct Order {
    sets: Vec<Starting>,
}

/// A set of pod sets, by their positions.
type Positions = BTreeSet<usize>;

/// A pod set and its dependencies.
struct Starting {
    has_pods: bool,
    is_node: bool,
    /// The pod sets that it waits for directly.
    waits_for: Positions,
    /// Those of them that are complete when it starts.
    starts_after: Positions,
    /// The pod sets that wait for it directly.
    is_waited_for_by: Positions,
    /// Whether another pod set waits until it is complete.
    ends_first: bool,
}

impl Order {
    fn of(pod_sets: &[PodSet], nodes: &[PodSet]) -> Self {
        let nodes: BTreeSet<_> = names(nodes).into_iter().collect();
        let mut positions = BTreeMap::new();
        for (at, set) in pod_sets.iter().enumerate() {
            positions.entry(set.name()).or_insert(at);
        }
        let mut sets: Vec<_> = pod_sets
            .iter()
            .map(|set| Starting {
                has_pods: set.address_count() > 0,
                is_node: nodes.contains(&set.name()),
                waits_for: Positions::new(),
                starts_after: Positions::new(),
                is_waited_for_by: Positions::new(),
                ends_first: false,
            })
            .collect();
        for (at, set) in pod_sets.iter().enumerate() {
            for one in set.depends_on() {
                let Some(on) = positions.get(&one.pod_set).copied() else {
                    continue;
                };
                let is_complete = one.status == COMPLETE;
                if let Some(set) = sets.get_mut(at) {
                    set.waits_for.insert(on);
                    if is_complete {
                        set.starts_after.insert(on);
                    }
                }
                if let Some(set) = sets.get_mut(on) {
                    set.is_waited_for_by.insert(at);
                    set.ends_first |= is_complete;
                }
            }
        }
        Self { sets }
    }

    /// Returns the pod sets that have pods and match. One without pods is ready at once.
    fn with_pods(&self, matches: impl Fn(usize, &Starting) -> bool) -> Positions {
        let sets = self.sets.iter().enumerate();
        let found = sets.filter(|(at, set)| set.has_pods && matches(*at, set));
        found.map(|(at, _)| at).collect()
    }

    /// Returns all pod sets that one of these waits for, directly or not.
    fn before(&self, these: &Positions) -> Positions {
        self.reached(these, |set| &set.waits_for)
    }

    /// Returns all pod sets that wait for one of these, directly or not.
    fn after(&self, these: &Positions) -> Positions {
        self.reached(these, |set| &set.is_waited_for_by)
    }

    fn reached(&self, these: &Positions, next: impl Fn(&Starting) -> &Positions) -> Positions {
        let mut found = Positions::new();
        let mut open: Vec<_> = these.iter().copied().collect();
        while let Some(set) = open.pop().map(|at| self.sets.get(at)) {
            for at in set.map(&next).into_iter().flatten() {
                if found.insert(*at) {
                    open.push(*at);
                }
            }
        }
        found
    }

    /// Returns those of the pod sets that wait for none of the others.
    fn first_of(&self, these: &Positions) -> Positions {
        these - &self.after(these)
    }

    fn members(&self) -> Positions {
        let mut candidates = self.with_pods(|_, set| set.is_node);
        if candidates.is_empty() {
            candidates = self.with_pods(|_, set| !set.ends_first);
        }
        let first = self.first_of(&candidates);
        let (before, after) = (self.before(&first), self.after(&first));
        let known = |at| first.contains(&at) || before.contains(&at) || after.contains(&at);
        let apart = self.with_pods(|at, _| !known(at));
        &first | &self.first_of(&apart)
    }

    /// Returns the pod sets that run at the same time as the members and are created later.
    fn followers(&self, members: &Positions) -> Positions {
        let after = self.after(members);
        let ends = |set: &Starting| !set.starts_after.is_disjoint(members);
        let sets = self.sets.iter().enumerate();
        let end: Positions = sets
            .filter(|(_, set)| ends(set))
            .map(|(at, _)| at)
            .collect();
        let after_end = &end | &self.after(&end);
        let later = self.with_pods(|at, _| {
            after.contains(&at) && !members.contains(&at) && !after_end.contains(&at)
        });
        // Of those that wait for each other to be complete, only the last one runs at the end.
        let chain = &later | &self.before(&later);
        let chain = chain.iter().filter_map(|at| self.sets.get(*at));
        let ended: Positions = chain
            .flat_map(|set| set.starts_after.iter().copied())
            .collect();
        &later - &ended
    }
}
