//! Records what the calls of a plugin use of its claims.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use trainyard_model::{
    call::{Call, Fault, Faulted},
    claims::Verb,
    plugin::{CallFailure, CallOutcome, Phase, Plugin},
    plugin_info::PluginInfo,
};

/// What the calls of a plugin used.
#[derive(Clone, Default)]
pub(in crate::plugin) struct Usage {
    /// The number of calls.
    pub(in crate::plugin) calls: usize,
    /// The claims that allowed an access, by their positions.
    claims: u128,
    /// What ended calls because it was missing.
    pub(in crate::plugin) missing: BTreeSet<Missing>,
    /// The most that a call used of each limit, by the limit's name in a PolicyPlugin: the amount and the limit.
    pub(in crate::plugin) most: BTreeMap<&'static str, (u64, u64)>,
}

/// A claim or a grant whose lack ended a call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::plugin) enum Missing {
    /// A claim.
    Claim(Verb, String),
    /// The grant of a claim.
    Grant(String),
}

impl Usage {
    /// Whether the claim at this position allowed an access.
    pub(in crate::plugin) const fn has_used(&self, claim: usize) -> bool {
        claim < 128 && self.claims & (1 << claim) != 0
    }

    fn add(&mut self, outcome: &CallOutcome, fuel: u64) {
        self.calls += 1;
        let of_fuel = outcome.fuel.map(|used| ("fuel", used, fuel));
        for (limit, used, most) in outcome.call.meter().used().into_iter().chain(of_fuel) {
            let so_far = self.most.entry(limit).or_insert((0, most));
            so_far.0 = so_far.0.max(used);
        }
        self.claims |= outcome.call.used_claims();
        let Err(CallFailure::Broke(Faulted { fault, .. })) = &outcome.end else {
            return;
        };
        self.missing.extend(match fault {
            Fault::NotClaimed { verb, claim, .. } => Some(Missing::Claim(*verb, claim.clone())),
            Fault::NotGranted { claim, .. } => Some(Missing::Grant(claim.clone())),
            _ => None,
        });
    }
}

/// The calls of a plugin in all renderings.
#[derive(Default)]
pub(in crate::plugin) struct Observed(Mutex<Usage>);

impl Observed {
    /// Wraps the plugin of this name to record its calls.
    pub(super) fn wrap(self: &Arc<Self>, plugin: Arc<dyn Plugin>, name: &str) -> Arc<dyn Plugin> {
        if *plugin.info().id.name != *name {
            return plugin;
        }
        let observed = self.clone();
        Arc::new(ObservedPlugin { plugin, observed })
    }

    pub(super) fn usage(&self) -> Usage {
        let usage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        usage.clone()
    }
}

/// A plugin whose calls are recorded.
struct ObservedPlugin {
    plugin: Arc<dyn Plugin>,
    observed: Arc<Observed>,
}

impl Plugin for ObservedPlugin {
    fn info(&self) -> &Arc<PluginInfo> {
        self.plugin.info()
    }

    fn prepare(&self) {
        self.plugin.prepare();
    }

    fn run(&self, phase: Phase, call: Box<Call>) -> CallOutcome {
        let outcome = self.plugin.run(phase, call);
        let usage = self.observed.0.lock();
        let mut usage = usage.unwrap_or_else(PoisonError::into_inner);
        usage.add(&outcome, self.info().settings.limits.fuel);
        outcome
    }
}
