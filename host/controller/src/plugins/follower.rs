//! What every replica does: it loads the revisions that are in use.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use thiserror::Error;
use tokio::time::timeout;
use trainyard_config::policy_plugin::{PluginRevisionSpec, Replica, Stage};

use super::{
    Mode, Plugins, REVISIONS_HELD,
    loading::{LoadError, LoadedRevision},
    objects::RevisionState,
    retry::{FIRST_RETRY, LONGEST_RETRY, backoff},
    rollout::is_live,
    words::{cut, skipped_in_words},
};
use crate::generation::{Held, Rolling};

/// How long a replica that has just started, or a leader that has just been elected, waits for plugins that are not available.
pub(super) const SKIPS_AFTER: Duration = Duration::from_secs(120);

/// The pause before a plugin that was skipped is loaded again, because nothing tells that it can be.
const SKIPPED_RETRY: Duration = Duration::from_secs(30);

/// How long the entry of a replica that ends may take to be removed.
const LEAVING: Duration = Duration::from_secs(2);

/// A revision with its name.
pub(super) type NamedRevision = (Arc<str>, Arc<RevisionState>, Arc<PluginRevisionSpec>);

/// The revisions that are in use.
#[derive(Default)]
pub(super) struct InUse {
    pub(super) running: Option<NamedRevision>,
    pub(super) share: Option<NamedRevision>,
    /// Why this release cannot tell, or must not lead.
    pub(super) newer: Option<Arc<str>>,
}

/// Why the revisions in use are not held.
#[derive(Debug, Error)]
pub(super) enum HoldError {
    /// A later release wrote one of them.
    #[error("{0}")]
    Newer(Arc<str>),
    /// One of them is not loaded.
    #[error("PluginRevision {name}: {}", .error.sentence())]
    Load { name: String, error: LoadError },
}

impl Plugins {
    /// Follows the revisions. It never ends.
    pub(crate) async fn follow(&self) -> Infallible {
        let mut changes = self.changes.subscribe();
        let mut attempts = Attempts::default();
        self.revisions.synced().await;
        loop {
            changes.borrow_and_update();
            let until = self.attempt(&mut attempts).await;
            self.change_or(&mut changes, until).await;
        }
    }

    /// Loads the revisions in use, unless it failed a moment ago. Returns when it is tried again.
    async fn attempt(&self, attempts: &mut Attempts) -> Option<SystemTime> {
        let now = self.parts.clock.now();
        let names = self.in_use().names();
        if attempts.wait_for == names && attempts.retry.is_some_and(|retry| now < retry) {
            return attempts.retry;
        }
        let first = *attempts.failing_since.get_or_insert(now);
        let is_overdue = now.duration_since(first).unwrap_or_default() >= SKIPS_AFTER;
        let held = self.hold(is_overdue && !attempts.has_held).await;
        let error = held.err();
        self.report(error.as_ref()).await;
        match error {
            None => {
                *attempts = Attempts {
                    has_held: true,
                    ..Attempts::default()
                };
                self.parts.readiness.set(REVISIONS_HELD, true);
                if self.skips() {
                    attempts.wait_for = names;
                    attempts.retry = Some(self.after(SKIPPED_RETRY));
                }
                attempts.retry
            }
            Some(error) => {
                let wait = attempts.pause(&error);
                tracing::warn!(%error, retry_after = ?wait, "the plugins of the cluster are not loaded; those that are loaded stay in use");
                if !attempts.has_held {
                    self.parts
                        .readiness
                        .note_missing(REVISIONS_HELD, error.to_string());
                }
                attempts.wait_for = names;
                attempts.retry = Some(self.after(wait));
                attempts.retry
            }
        }
    }

    /// Whether a plugin of a revision in use is skipped.
    fn skips(&self) -> bool {
        let InUse { running, share, .. } = self.in_use();
        let mut names = running.into_iter().chain(share).map(|(name, ..)| name);
        names.any(|name| {
            let loaded = self.loaded.any(&name);
            loaded.is_some_and(|loaded| !loaded.skipped.is_empty())
        })
    }

    /// Returns the revisions that are in use. Those that nobody but a controller can have written are considered.
    pub(super) fn in_use(&self) -> InUse {
        let mut in_use = InUse::default();
        for revision in self.readable() {
            match revision.1.stage() {
                Some(Stage::Running) => in_use.running = Some(revision),
                Some(Stage::Share) => in_use.share = Some(revision),
                _ => {}
            }
        }
        let newer = self
            .revisions
            .objects()
            .into_iter()
            .filter_map(|(_, state)| {
                let problem = state.spec.as_ref().err()?;
                let counts = problem.is_newer && is_live(state.stage());
                counts.then(|| problem.message.clone())
            });
        in_use.newer = newer.min();
        in_use
    }

    /// Returns the revision whose plugins run in this process, even if it was deleted.
    pub(super) fn held_revision(&self) -> Option<Arc<LoadedRevision>> {
        let held = self.parts.generations.held();
        self.loaded.of(&held.running)
    }

    /// Loads the revisions in use, and uses them from then on. With `may_skip`, plugins that are not available now are skipped.
    pub(super) async fn hold(&self, may_skip: bool) -> Result<(), HoldError> {
        let _turn = self.holding.lock().await;
        let in_use = self.in_use();
        if let Some(newer) = in_use.newer {
            return Err(HoldError::Newer(newer));
        }
        // Without any revision, what is held stays.
        let Some((name, _, spec)) = in_use.running else {
            return Ok(());
        };
        let failed = |name: &str| {
            let name = name.to_owned();
            |error| HoldError::Load { name, error }
        };
        let running = self.load(&spec, Mode::Lenient, may_skip).await;
        let running = running.map_err(failed(&name))?;
        let mut result = Ok(());
        let mut rolling = None;
        if let Some((name, state, spec)) = in_use.share {
            let percent = state.status.as_ref().map_or(0, |status| status.percent);
            match self.load(&spec, Mode::Lenient, may_skip).await {
                Ok(share) => {
                    rolling = Some(Rolling {
                        generation: share.generation.clone(),
                        percent,
                    });
                }
                Err(error) => result = Err(failed(&name)(error)),
            }
        }
        let is_replaced = self.use_generations(&running, rolling);
        self.forget_others(&spec);
        // The leader may be about to use content that no revision has yet.
        if is_replaced && !self.leads.load(Ordering::SeqCst) {
            self.keep_content(BTreeSet::new());
        }
        result
    }

    /// Uses these generations. Returns whether they replace others.
    fn use_generations(&self, running: &LoadedRevision, rolling: Option<Rolling>) -> bool {
        let held = self.parts.generations.held();
        let is_same = |a: &Option<Rolling>, b: &Option<Rolling>| match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                Arc::ptr_eq(&a.generation, &b.generation) && a.percent == b.percent
            }
            _ => false,
        };
        if Arc::ptr_eq(&held.running, &running.generation) && is_same(&held.rolling, &rolling) {
            return false;
        }
        let plan = running.generation.plan();
        tracing::info!(
            revision = running.name,
            %plan,
            plan_before = %held.running.plan(),
            share = rolling.as_ref().map(|rolling| rolling.percent),
            plan_of_share = rolling.as_ref().map(|rolling| rolling.generation.plan().to_string()),
            "the plugins of a revision are used"
        );
        for (plugin, why) in &running.skipped {
            tracing::error!(revision = running.name, plugin, why, "plugin skipped");
        }
        self.parts
            .metrics
            .plugins_not_loaded(running.skipped.keys().map(String::as_str));
        // TrainJobs that started with it may be resumed.
        let previous = match held.running.number() == running.generation.number() {
            true => held.previous.clone(),
            false => Some(held.running.clone()),
        };
        self.parts.generations.replace(Held {
            running: running.generation.clone(),
            rolling,
            previous,
        });
        self.changed();
        true
    }

    /// Drops the loaded revisions that are not used any more.
    fn forget_others(&self, running: &PluginRevisionSpec) {
        let facts = self.facts();
        let newest = facts.last().map_or(running.number, |it| it.number);
        // It may have been deleted meanwhile, and is created again from here.
        let running = running.name();
        self.loaded.keep(|loaded, number| {
            // It may have been loaded before it is created.
            loaded == running
                || number > newest
                || facts
                    .iter()
                    .any(|it| it.name == loaded && is_live(it.stage))
        });
    }

    /// Keeps the content of the plugins of all revisions and of these digests.
    pub(super) fn keep_content(&self, mut digests: BTreeSet<String>) {
        let states = self.revisions.objects();
        // What this release cannot read may be in use by another one.
        if states.iter().any(|(_, state)| state.spec.is_err()) {
            return;
        }
        let specs = states
            .iter()
            .filter_map(|(_, state)| state.spec.as_ref().ok());
        let plugins = specs.flat_map(|spec| &spec.plugins);
        digests.extend(plugins.filter_map(|plugin| plugin.digest.clone()));
        self.parts.program.source.keep(&digests);
    }

    /// Writes what this replica has loaded into the revisions in use.
    async fn report(&self, error: Option<&HoldError>) {
        let in_use = self.in_use();
        for (name, state, _) in in_use.running.into_iter().chain(in_use.share) {
            let loaded = self.loaded.any(&name);
            let failure = match error {
                Some(HoldError::Load { name: of, error }) if **of == *name => {
                    Some(error.sentence())
                }
                _ => None,
            };
            let skipped = loaded.as_ref().filter(|it| !it.skipped.is_empty());
            let skipped = skipped.map(|it| skipped_in_words(&it.skipped));
            let entry = Replica {
                pod: self.parts.pod.clone(),
                plan: loaded.map(|loaded| loaded.generation.plan().to_string()),
                problem: failure.or(skipped).map(|text| cut(&text)),
            };
            let known = state.replicas.iter().find(|it| it.pod == self.parts.pod);
            if known == Some(&entry) || entry.plan.is_none() && entry.problem.is_none() {
                continue;
            }
            if let Err(error) = self.write_replica(&name, Some(&entry)).await {
                tracing::warn!(revision = &*name, %error, "the state of this replica cannot be written; it is written with the next change");
            }
        }
    }

    /// Removes this replica from the revisions in use, because its process ends.
    pub(crate) async fn leave(&self) {
        let in_use = self.in_use();
        let all = in_use.running.into_iter().chain(in_use.share);
        let ours =
            all.filter(|(_, state, _)| state.replicas.iter().any(|it| it.pod == self.parts.pod));
        let leave = async {
            for (name, _, _) in ours {
                if let Err(error) = self.write_replica(&name, None).await {
                    tracing::debug!(revision = &*name, %error, "this replica cannot be removed from a revision");
                }
            }
        };
        let _ = timeout(LEAVING, leave).await;
    }
}

impl InUse {
    /// Returns what has to be loaded, and for which share.
    fn names(&self) -> Vec<(Arc<str>, u8)> {
        let both = self.running.iter().chain(&self.share);
        let named = both.map(|(name, state, _)| {
            let status = state.status.as_ref();
            (name.clone(), status.map_or(0, |status| status.percent))
        });
        named.collect()
    }
}

/// The attempts to load the revisions in use.
#[derive(Default)]
struct Attempts {
    /// Whether one has succeeded.
    has_held: bool,
    failing_since: Option<SystemTime>,
    failed: u32,
    wait_for: Vec<(Arc<str>, u8)>,
    retry: Option<SystemTime>,
}

impl Attempts {
    /// Returns the pause after a failure.
    fn pause(&mut self, error: &HoldError) -> Duration {
        let asked = match error {
            HoldError::Load {
                error: LoadError::Retry { after, .. },
                ..
            } => *after,
            _ => None,
        };
        let pause = asked.unwrap_or_else(|| backoff(self.failed));
        self.failed = self.failed.saturating_add(1);
        pause.clamp(FIRST_RETRY, LONGEST_RETRY)
    }
}
