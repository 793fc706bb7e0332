//! PolicyPlugins become a revision.

use std::{
    convert::Infallible,
    sync::Arc,
    time::{Duration, SystemTime},
};

use trainyard_config::policy_plugin::PluginRevisionSpec;

use super::{
    Leader, Mode, PluginCondition, Problem,
    loading::LoadError,
    memory::Proposed,
    objects::PolicyPluginState,
    resolver::FOLLOWS,
    retry::backoff,
    rollout::{Proposal, RevisionFacts, proposal, running},
};
use crate::kubernetes::code;

/// How long PolicyPlugins have to stay the same before they become a revision, and the longest wait for that. Several are usually applied
/// together.
const SETTLES: Duration = Duration::from_secs(5);
const LONGEST_SETTLING: Duration = Duration::from_secs(30);

/// The most bytes of a revision. etcd stores objects of up to 1.5 MiB, and a status comes with it.
const MOST_BYTES: usize = 1 << 20;

/// What a revision is made from, and what asks for another attempt.
struct Inputs {
    /// By name.
    policies: Vec<(Arc<str>, Arc<PolicyPluginState>)>,
    /// Whether a revision runs.
    runs: bool,
    /// Whether the revision of the PolicyPlugins was deleted.
    is_deleted: bool,
    /// The revisions that are to be tried again.
    asked: Vec<u64>,
}

impl PartialEq for Inputs {
    fn eq(&self, other: &Self) -> bool {
        let mut pairs = self.policies.iter().zip(&other.policies);
        self.policies.len() == other.policies.len()
            && pairs.all(|(one, other)| one.0 == other.0 && one.1.is_as(&other.1))
            && (self.runs, self.is_deleted, &self.asked)
                == (other.runs, other.is_deleted, &other.asked)
    }
}

impl Inputs {
    /// Returns the PolicyPlugins whose sources somebody has asked since then to resolve again.
    fn asked_again(&self, before: &Self) -> Vec<&PolicyPluginState> {
        let asks = |(name, state): &&(Arc<str>, Arc<PolicyPluginState>)| {
            let mut known = before.policies.iter();
            known.any(|(known, before)| known == name && state.asks_again(before))
        };
        let asking = self.policies.iter().filter(asks);
        asking.map(|(_, state)| &**state).collect()
    }
}

impl Leader {
    /// Makes revisions from the PolicyPlugins.
    pub(super) async fn propose(&self) -> Infallible {
        let plugins = &self.plugins;
        let mut changes = plugins.changes.subscribe();
        let mut considered: Option<Inputs> = None;
        let mut retry: Option<SystemTime> = None;
        loop {
            changes.borrow_and_update();
            let inputs = self.inputs();
            let is_due = retry.is_some_and(|retry| plugins.parts.clock.now() >= retry);
            let is_known = considered.as_ref() == Some(&inputs);
            if !plugins.are_policies_known() {
                plugins.change_or(&mut changes, None).await;
                continue;
            }
            if is_known && !is_due {
                plugins.change_or(&mut changes, retry).await;
                continue;
            }
            // What was there before this process led has settled.
            if considered.is_some() && !is_known {
                self.settle(&mut changes).await;
            }
            let inputs = self.inputs();
            if let Some(before) = &considered {
                let mut pins = self.pins.lock().await;
                for state in inputs.asked_again(before) {
                    pins.pins.retain(|(uid, _), _| *uid != state.uid);
                }
            }
            considered = Some(inputs);
            retry = self.consider().await;
            plugins.changed();
        }
    }

    fn inputs(&self) -> Inputs {
        let revisions = self.plugins.facts();
        let wanted = self.note_seen(&revisions);
        let exists = |wanted: &String| revisions.iter().any(|it| it.hash == *wanted);
        let asked = revisions.iter().filter(|it| it.asked.retry);
        let asked = asked.map(|it| it.number).collect();
        Inputs {
            policies: self.policies(),
            runs: running(&revisions).is_some(),
            // One that was created and is not seen yet was not deleted.
            is_deleted: wanted.as_ref().is_some_and(|it| !exists(it))
                && self.proposed().seen.wanted == wanted,
            asked,
        }
    }

    /// Returns the PolicyPlugins, by name.
    fn policies(&self) -> Vec<(Arc<str>, Arc<PolicyPluginState>)> {
        let all = self.plugins.policies.objects().into_iter();
        let mut policies: Vec<_> = all.map(|(name, state)| (name.0, state)).collect();
        policies.sort_by(|a, b| a.0.cmp(&b.0));
        policies
    }

    /// Notes which revisions there are. Returns the digest of the plugins that the PolicyPlugins ask for.
    pub(super) fn note_seen(&self, revisions: &[RevisionFacts]) -> Option<String> {
        let mut proposed = self.proposed();
        let wanted = proposed.wanted.clone();
        let seen = &mut proposed.seen;
        let numbers = revisions.iter().map(|it| it.number);
        seen.highest = numbers.fold(seen.highest, u64::max);
        let is_it = |it: &RevisionFacts| Some(&it.hash) == wanted.as_ref();
        if revisions.iter().any(is_it) {
            seen.wanted.clone_from(&wanted);
        }
        wanted
    }

    /// Waits until the PolicyPlugins stay the same.
    async fn settle(&self, changes: &mut tokio::sync::watch::Receiver<()>) {
        let plugins = &self.plugins;
        let end = plugins.after(LONGEST_SETTLING);
        let (mut inputs, mut until) = (self.inputs(), plugins.after(SETTLES));
        while plugins.parts.clock.now() < until.min(end) {
            plugins.change_or(changes, Some(until.min(end))).await;
            let now = self.inputs();
            if now != inputs {
                (inputs, until) = (now, plugins.after(SETTLES));
            }
        }
    }

    /// Considers the PolicyPlugins: resolves them, and creates a revision if they can be loaded and differ from the newest one. Returns when
    /// to consider them again.
    pub(super) async fn consider(&self) -> Option<SystemTime> {
        let plugins = &self.plugins;
        if !plugins.are_policies_known() {
            return None;
        }
        let policies = self.policies();
        let mut proposed = Proposed::default();
        for (name, state) in &policies {
            proposed.plugin_mut(name).generation = Some(state.generation);
        }
        let mut wait = self.resolve(&policies, &mut proposed).await;
        for plugin in proposed.plugins.values_mut() {
            let resolved = plugin.resolved.as_ref();
            plugin.built_in = resolved.and_then(|it| plugins.built_in_instead(it));
        }
        if !proposed.is_stopped() {
            let again = self.decide(&mut proposed).await;
            wait = wait.max(again);
        }
        let is_refused = proposed.has_problems() || proposed.lacks_disabled();
        let failed = {
            let mut before = self.proposed();
            for (plugin, it) in &proposed.plugins {
                let known = &before.plugin(plugin).problem;
                let Some(problem) = it.problem.as_ref().filter(|_| it.problem != *known) else {
                    continue;
                };
                let Problem {
                    condition,
                    reason,
                    message,
                } = problem;
                tracing::warn!(plugin, %condition, reason, message, "a PolicyPlugin is refused; the plugins that run stay");
            }
            // What was asked for before stays in the rollout.
            proposed.wanted = proposed.wanted.or(before.wanted.take());
            proposed.seen = before.seen.clone();
            let is_waiting = proposed.is_waiting();
            *before = proposed;
            is_waiting
        };
        let mut pins = self.pins.lock().await;
        let digests = pins.pins.values().map(|pin| pin.digest.clone());
        plugins.keep_content(digests.collect());
        let renews = pins.renews;
        match failed {
            true => {
                pins.failed = pins.failed.saturating_add(1);
                let wait = wait.unwrap_or_else(|| backoff(pins.failed));
                let retry = plugins.after(wait);
                Some(renews.map_or(retry, |renews| renews.min(retry)))
            }
            false => {
                pins.failed = 0;
                // A plugin may be pushed or signed later, which no change of a PolicyPlugin tells.
                let again = is_refused.then(|| plugins.after(FOLLOWS));
                renews.into_iter().chain(again).min()
            }
        }
    }

    /// Creates a revision of the resolved plugins, if there is none yet and they can be loaded. Returns how long to wait if they cannot be
    /// loaded now.
    async fn decide(&self, proposed: &mut Proposed) -> Option<Duration> {
        let plugins = &self.plugins;
        let facts = plugins.facts();
        self.note_seen(&facts);
        let resolved = proposed.plugins.values();
        let resolved: Vec<_> = resolved.filter_map(|it| it.resolved.clone()).collect();
        if facts.is_empty() && resolved.is_empty() {
            return None;
        }
        let mut spec = PluginRevisionSpec::new(1, resolved);
        let hash = spec.hash();
        let held = plugins.parts.generations.held();
        let numbers = held.all().map(|generation| generation.number());
        let used = numbers.fold(self.proposed().seen.highest, u64::max);
        match proposal(&facts, &hash, used) {
            Proposal::Nothing => proposed.wanted = Some(hash),
            Proposal::Blocked(number) => {
                tracing::info!(
                    number,
                    "the PolicyPlugins ask for the plugins of a revision that was rolled back or refused; it is not tried again without the annotation trainyard.dev/retry"
                );
                proposed.wanted = Some(hash);
            }
            Proposal::Create(number) => {
                spec.number = number;
                if let Some((plugin, problem)) = too_large(&spec) {
                    proposed.plugin_mut(&plugin).problem = Some(problem);
                    return None;
                }
                match plugins.load(&spec, Mode::Strict, false).await {
                    Ok(loaded) => {
                        proposed.is_loaded = true;
                        let missing = plugins.missing_permissions(&spec, &loaded).await;
                        if !missing.is_empty() {
                            for (plugin, problem) in missing {
                                proposed.plugin_mut(&plugin).problem = Some(problem);
                            }
                            proposed.lacks_permissions = true;
                            return None;
                        }
                        // Known before the revision is, so that the revision does not count as one that nobody asks for.
                        {
                            let mut known = self.proposed();
                            known.wanted = Some(hash.clone());
                            known.seen.wanted = None;
                        }
                        proposed.wanted = Some(hash);
                        self.create(&spec, proposed).await;
                    }
                    Err(LoadError::Retry { after, messages }) => {
                        for (plugin, message) in messages {
                            proposed.plugin_mut(&plugin).waiting = Some(message);
                        }
                        return after;
                    }
                    Err(LoadError::Refused(refusals)) => {
                        for refusal in refusals {
                            let names = match refusal.plugins.is_empty() {
                                true => proposed.plugins.keys().cloned().collect(),
                                false => refusal.plugins,
                            };
                            for name in names {
                                proposed.plugin_mut(&name).refuse(&refusal.problem);
                            }
                        }
                    }
                }
            }
        }
        None
    }
}

/// Returns the largest plugin of a revision that the API server would not store, and why.
fn too_large(spec: &PluginRevisionSpec) -> Option<(String, Problem)> {
    let size = |value: serde_json::Result<Vec<u8>>| value.map_or(0, |text| text.len());
    let all = size(serde_json::to_vec(spec));
    if all <= MOST_BYTES {
        return None;
    }
    let sizes = spec.plugins.iter();
    let sizes = sizes.map(|plugin| (size(serde_json::to_vec(plugin)), &plugin.name));
    let (bytes, name) = sizes.max()?;
    let problem = Problem {
        condition: PluginCondition::Loaded,
        reason: "TooLarge".to_owned(),
        message: format!(
            "the PolicyPlugins have {} KiB together, and one PluginRevision, which has all of them, at most {}; this one is the largest, with {} KiB, so make its config smaller",
            all >> 10,
            MOST_BYTES >> 10,
            bytes >> 10,
        ),
    };
    Some((name.clone(), problem))
}

impl Leader {
    async fn create(&self, spec: &PluginRevisionSpec, proposed: &mut Proposed) {
        let revision = spec.name();
        match self.plugins.create(spec, false).await {
            Ok(()) => tracing::info!(
                revision,
                plugins = spec.plugins.len(),
                "a PluginRevision is created"
            ),
            // It was created by an earlier attempt, whose answer was lost.
            Err(error) if code(&error) == Some(409) => {}
            Err(error) => {
                tracing::warn!(revision, %error, "a PluginRevision cannot be created; retrying");
                proposed.not_created = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_set_that_the_api_server_would_not_store_is_refused_for_its_largest_plugin() {
        let plugin = |name: &str, bytes| {
            let plugin = json!({
                "name": name, "generation": 1, "origin": {"builtIn": {}},
                "settings": {"config": {"text": "x".repeat(bytes)}},
            });
            serde_json::from_value(plugin).unwrap()
        };
        let refused = |sizes: [usize; 2]| {
            let [a, b] = sizes;
            let spec = PluginRevisionSpec::new(1, vec![plugin("a", a), plugin("b", b)]);
            too_large(&spec).map(|(name, problem)| (name, problem.reason))
        };
        let of = |name: &str| Some((name.to_owned(), "TooLarge".to_owned()));
        assert_eq!(refused([400 << 10, 500 << 10]), None);
        assert_eq!(refused([400 << 10, 700 << 10]), of("b"));
        assert_eq!(refused([1 << 20, 10]), of("a"));
    }
}
