//! The status of PolicyPlugins.

mod account;
mod active;
mod conditions;
mod found;
mod train_jobs;

use std::{collections::BTreeMap, sync::Arc};

use account::Account;
use conditions::conditions;
use k8s_openapi::jiff::Timestamp;
use trainyard_config::policy_plugin::{
    ConditionStatus, MAX_LINES, Origin, PluginRevisionSpec, PolicyPluginStatus, ReplicaCount,
    TrainJobCount,
};
use trainyard_model::{plugin::Phase, plugin_info::PluginId};

use super::{
    Leader, PluginCondition,
    loading::LoadedRevision,
    memory::Proposed,
    objects::{PolicyPluginState, RevisionState},
    rollout::{RevisionFacts, running},
};
use crate::{breaker::Failing, kubernetes::code};

/// A revision with everything that is known of it.
pub(super) struct KnownRevision {
    pub(super) facts: RevisionFacts,
    pub(super) state: Arc<RevisionState>,
    pub(super) spec: Arc<PluginRevisionSpec>,
    pub(super) loaded: Option<Arc<LoadedRevision>>,
}

/// A plugin that is paused for all namespaces, with the phase whose calls fail.
pub(super) struct PausedPlugin {
    pub(super) id: PluginId,
    pub(super) phase: Phase,
    pub(super) failing: Failing,
}

/// What the status of all PolicyPlugins follows from.
pub(super) struct StatusFacts<'f> {
    pub(super) now: Timestamp,
    pub(super) proposed: &'f Proposed,
    /// The revisions that can be read, the oldest first.
    pub(super) revisions: &'f [KnownRevision],
    /// The number of the running revision.
    pub(super) running: Option<u64>,
    /// The plugins in use that are paused for all namespaces.
    pub(super) paused: &'f BTreeMap<String, PausedPlugin>,
    /// How many TrainJobs use each plugin, if they were counted now.
    pub(super) train_jobs: Option<&'f BTreeMap<String, TrainJobCount>>,
}

impl Leader {
    /// Writes the status of all PolicyPlugins that is not as it should be.
    pub(super) async fn write_statuses(&self) {
        let plugins = &self.plugins;
        let facts = plugins.facts();
        let number = running(&facts).map(|it| it.number);
        let known = facts.into_iter().filter_map(|facts| {
            let state = plugins.revision(&facts.name)?;
            let spec = state.spec.as_ref().ok()?.clone();
            let loaded = plugins.loaded.any(&facts.name);
            Some(KnownRevision {
                facts,
                state,
                spec,
                loaded,
            })
        });
        let revisions: Vec<_> = known.collect();
        let train_jobs = self.count_train_jobs();
        let paused = self.paused();
        let (mut changed, mut inactive) = (Vec::new(), Vec::new());
        {
            let proposed = self.proposed();
            let facts = StatusFacts {
                now: plugins.now(),
                proposed: &proposed,
                revisions: &revisions,
                running: number,
                paused: &paused,
                train_jobs: train_jobs.as_ref(),
            };
            for (name, state) in plugins.policies.objects() {
                // It was created after they were considered.
                if proposed.plugin(&name.0).generation.is_none() {
                    continue;
                }
                let status = status(&name.0, &state, &facts);
                inactive.extend(inactive_reason(&status).map(|reason| (name.0.clone(), reason)));
                if status != state.status {
                    changed.push((name.0.clone(), state, status));
                }
            }
        }
        let inactive = inactive.iter().map(|(name, reason)| (&**name, &**reason));
        plugins.parts.metrics.set_inactive_policies(inactive);
        for (name, state, status) in changed {
            match plugins.write_policy_status((&name, &state), &status).await {
                Ok(()) => {
                    if self.tell_of_pause(&name, &state, &status) {
                        self.work.queue_unstarted();
                    }
                }
                // The watch shows the change, or the next tick writes the status.
                Err(error) if code(&error) == Some(409) => {}
                Err(error) => {
                    tracing::warn!(plugin = &*name, %error, "the status of a PolicyPlugin cannot be written; it is written with the next change");
                }
            }
        }
    }

    /// Returns the plugins of the generations in use that are paused for all namespaces, by the calls of this process.
    fn paused(&self) -> BTreeMap<String, PausedPlugin> {
        let plugins = &self.plugins;
        let held = plugins.parts.generations.held();
        let rolling = held.rolling.as_ref().map(|rolling| &rolling.generation);
        let in_use = [&held.running].into_iter().chain(rolling);
        let loaded = in_use.flat_map(|generation| generation.renderer().generation().plugins());
        let paused = loaded.filter_map(|plugin| {
            let breakers = plugins.parts.metrics.breakers().of(plugin)?;
            let (phase, failing) = breakers.failing()?;
            let id = plugin.id.clone();
            Some((id.name.to_string(), PausedPlugin { id, phase, failing }))
        });
        paused.collect()
    }
}

/// Returns why the plugin is not used as its PolicyPlugin says; `None` if it is, or is disabled.
fn inactive_reason(status: &PolicyPluginStatus) -> Option<String> {
    let mut conditions = status.conditions.iter();
    let active = conditions.find(|it| it.kind == PluginCondition::Active.name())?;
    let is_inactive = active.status == ConditionStatus::False && active.reason != "Disabled";
    is_inactive.then(|| active.reason.clone())
}

/// Returns the status of the PolicyPlugin of this name.
fn status(name: &str, state: &PolicyPluginState, facts: &StatusFacts<'_>) -> PolicyPluginStatus {
    let account = Account::of(name, facts);
    let shown = account.wanted.or(account.running);
    let resolved = account.proposed.resolved.as_ref();
    let plugin = resolved.or(shown.map(|it| it.plugin));
    let revision = shown.map(|it| it.revision);
    let loaded = revision.and_then(|revision| revision.loaded.as_ref());
    let digest = plugin.and_then(|plugin| plugin.digest.clone());
    let claims = loaded.and_then(|loaded| {
        let generation = loaded.generation.renderer().generation();
        let plugin = generation.plugin(name)?;
        if digest.as_ref().is_some_and(|it| **it != *plugin.id.digest) {
            return None;
        }
        let claims = plugin.manifest.claims.iter();
        Some(
            claims
                .map(|(verb, path)| format!("{} {path}", verb.list()))
                .collect(),
        )
    });
    let known_claims = || (state.status.digest == digest).then(|| state.status.claims.clone());
    let claims = claims.or_else(known_claims).unwrap_or_default();
    let grants = state.object.as_ref().ok().map(|policy| &policy.spec.grants);
    let grants = grants.into_iter().flatten().map(ToString::to_string);
    let train_jobs = match facts.train_jobs {
        Some(counts) => counts.get(name).cloned(),
        None => state.status.train_jobs.clone(),
    };
    PolicyPluginStatus {
        observed_generation: account.proposed.generation,
        conditions: conditions(name, state, &account, facts),
        revision: match facts.revisions {
            // All were deleted. A leader that is elected next has to know that one has run.
            [] => state.status.revision.clone(),
            _ => revision.map(|it| it.facts.name.clone()),
        },
        version: plugin.and_then(|plugin| plugin.version.clone()),
        digest,
        manifest_digest: plugin.and_then(|plugin| match &plugin.origin {
            Origin::Oci(oci) => Some(oci.manifest_digest.clone()),
            _ => None,
        }),
        signer: account.verified().and_then(|it| it.signer),
        plan: revision.and_then(|it| it.state.status.as_ref()?.plan.clone()),
        claims: lines(claims),
        grants: lines(grants.collect()),
        replicas: revision.map(|revision| replicas(revision, facts)),
        train_jobs,
    }
}

/// Counts the replicas that have loaded a revision.
fn replicas(revision: &KnownRevision, facts: &StatusFacts<'_>) -> ReplicaCount {
    let running = facts.revisions.iter();
    let running = running.filter(|it| Some(it.facts.number) == facts.running);
    let both = running.chain([revision]).flat_map(|it| &it.state.replicas);
    let pods: std::collections::BTreeSet<_> = both.map(|replica| &replica.pod).collect();
    let has_it = |pod: &&&String| {
        let mut replicas = revision.state.replicas.iter();
        replicas.any(|it| it.pod == ***pod && it.plan.is_some() && it.problem.is_none())
    };
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    ReplicaCount::new(
        number(pods.iter().filter(has_it).count()),
        number(pods.len()),
    )
}

/// Cuts a list to the lines that a status has.
fn lines(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > MAX_LINES {
        let left = lines.len() - (MAX_LINES - 1);
        lines.truncate(MAX_LINES - 1);
        lines.push(format!("and {left} more"));
    }
    lines
}
