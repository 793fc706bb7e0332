//! What only the leader does: it makes revisions from the PolicyPlugins, rolls them out, and writes the status of the PolicyPlugins.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};

use thiserror::Error;
use tokio::time::sleep;

use super::{
    Plugins,
    comparison::Comparer,
    follower::{HoldError, SKIPS_AFTER},
    memory::{Candidate, PinCache, Proposed},
    retry::backoff,
};
use crate::work::Work;

/// The longest pause after a failed call that writes a revision.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Why this process must not lead.
#[derive(Debug, Error)]
#[error("{0}; this replica does not reconcile TrainJobs")]
pub struct NotLeading(Arc<str>);

/// The leader's part.
pub(crate) struct Leader {
    pub(super) plugins: Arc<Plugins>,
    pub(super) work: Arc<Work>,
    pub(super) comparer: Comparer,
    /// What became of the PolicyPlugins.
    proposed: Mutex<Proposed>,
    pub(super) pins: tokio::sync::Mutex<PinCache>,
    /// What is known of the revision that is rolled out.
    candidate: Mutex<Candidate>,
    /// How many calls that write revisions have failed in a row.
    failed: AtomicU32,
    /// When the TrainJobs of each plugin are counted again.
    pub(super) counted: Mutex<Option<SystemTime>>,
}

impl Plugins {
    /// Waits until the revisions are known, and a release as this one can use them.
    pub(crate) async fn may_lead(&self) {
        self.revisions.synced().await;
        self.policies.synced().await;
        let mut changes = self.changes.subscribe();
        let mut has_warned = false;
        loop {
            changes.borrow_and_update();
            match self.in_use().newer {
                None => return,
                Some(newer) if !has_warned => {
                    tracing::warn!(%newer, "this replica does not become the leader");
                    has_warned = true;
                }
                Some(_) => {}
            }
            self.change_or(&mut changes, None).await;
        }
    }

    /// Whether another replica should lead rather than this one: not all plugins that run, or ran before the revision was deleted, are loaded
    /// here.
    pub(crate) fn is_behind(&self) -> bool {
        match self.in_use().running {
            Some((name, ..)) => self.loaded.get(&name).is_none(),
            None => self.last_used().is_some() && self.held_revision().is_none(),
        }
    }

    /// Returns a revision that existed when the status of a PolicyPlugin was written; `None` if none ever ran, because the first one runs at once.
    pub(super) fn last_used(&self) -> Option<String> {
        let policies = self.policies.objects();
        let mut revisions = policies.iter().map(|(_, state)| &state.status.revision);
        revisions.find_map(Clone::clone)
    }
}

impl Leader {
    pub(crate) fn new(plugins: &Arc<Plugins>, work: &Arc<Work>) -> Self {
        plugins.leads.store(true, Ordering::SeqCst);
        Self {
            plugins: plugins.clone(),
            work: work.clone(),
            comparer: Comparer::new(&work.reconciler),
            proposed: Mutex::default(),
            pins: tokio::sync::Mutex::default(),
            candidate: Mutex::default(),
            failed: AtomicU32::new(0),
            counted: Mutex::default(),
        }
    }

    /// Prepares this process to reconcile TrainJobs with the revisions in use: reads them from the API server and not from its cache, and loads
    /// them. Before the first revision, it makes one, if there are PolicyPlugins. After a time limit, plugins that are not available are
    /// skipped.
    ///
    /// # Errors
    /// A later release has written a revision.
    pub(crate) async fn prepare(&self) -> Result<(), NotLeading> {
        let plugins = &self.plugins;
        let limit = plugins.after(SKIPS_AFTER);
        self.read_revisions().await;
        self.restore().await;
        // Its status is written below.
        let last_used = plugins.last_used();
        let mut failed = 0;
        loop {
            let in_use = plugins.in_use();
            if let Some(newer) = in_use.newer {
                return Err(NotLeading(newer));
            }
            if in_use.running.is_some() || plugins.policies.is_empty() {
                break;
            }
            let retry = self.consider().await;
            self.start_first().await;
            self.write_statuses().await;
            let is_waiting = self.proposed().is_waiting();
            if plugins.in_use().running.is_some() {
                break;
            }
            let is_over = !is_waiting || plugins.parts.clock.now() >= limit;
            let until = match (is_over, &last_used) {
                (false, _) => retry.map_or(limit, |retry| retry.min(limit)),
                (true, None) => {
                    tracing::error!(
                        "no revision of the PolicyPlugins runs, so the built-in plugins are used as shipped; the conditions of the PolicyPlugins show why"
                    );
                    break;
                }
                (true, Some(last)) => {
                    tracing::error!(
                        last,
                        "TrainJobs are not reconciled, because the revision of the PolicyPlugins was deleted and no other one can be made; correct the PolicyPlugins, whose conditions show why, or delete them"
                    );
                    plugins.after(backoff(failed))
                }
            };
            failed += 1;
            let mut changes = plugins.changes.subscribe();
            plugins.change_or(&mut changes, Some(until)).await;
        }
        failed = 0;
        loop {
            let is_overdue = plugins.parts.clock.now() >= limit;
            match plugins.hold(is_overdue).await {
                Ok(()) => return Ok(()),
                Err(HoldError::Newer(newer)) => return Err(NotLeading(newer)),
                Err(error) => {
                    let wait = plugins.after(backoff(failed));
                    failed += 1;
                    tracing::warn!(%error, "TrainJobs are not reconciled yet, because the plugins of the cluster are not loaded");
                    let until = if is_overdue { wait } else { wait.min(limit) };
                    let mut changes = plugins.changes.subscribe();
                    plugins.change_or(&mut changes, Some(until)).await;
                }
            }
        }
    }

    async fn read_revisions(&self) {
        let mut failed = 0;
        while let Err(error) = self.plugins.read_revisions().await {
            tracing::warn!(%error, "PluginRevisions cannot be read; retrying");
            sleep(backoff(failed)).await;
            failed += 1;
        }
    }

    /// Makes revisions and rolls them out, until a later release writes one.
    pub(crate) async fn lead(&self) -> NotLeading {
        tokio::select! {
            never = self.propose() => match never {},
            newer = self.roll() => NotLeading(newer),
        }
    }

    pub(super) fn proposed(&self) -> MutexGuard<'_, Proposed> {
        self.proposed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn candidate(&self) -> MutexGuard<'_, Candidate> {
        self.candidate
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Pauses after a failed call, longer after each one in a row.
    pub(super) async fn pause(&self) {
        let failed = self.failed.fetch_add(1, Ordering::SeqCst);
        sleep(backoff(failed).min(LONGEST_PAUSE)).await;
    }

    /// Notes that a call has succeeded.
    pub(super) fn no_pause(&self) {
        self.failed.store(0, Ordering::SeqCst);
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.plugins.leads.store(false, Ordering::SeqCst);
    }
}
