//! A revision is brought from stage to stage.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::{Duration, SystemTime},
};

use trainyard_config::policy_plugin::{PluginRevisionSpec, PluginRevisionStatus, Stage};

use super::{
    Leader, Mode,
    difference::{changed, removed},
    loading::{LoadError, LoadedRevision},
    memory::Candidate,
    objects::RevisionState,
    retry::backoff,
    rollout::{CandidateFacts, Facts, NewStage, Next, RevisionFacts, next, rolling, running},
};

/// How often it is checked which TrainJobs of a share fail, and how often the status of PolicyPlugins is compared with what is so.
pub(super) const CHECKS: Duration = Duration::from_secs(10);
const RENEWS: Duration = Duration::from_secs(30);

/// The loaded running revision, and the one that is rolled out, or why it is not loaded.
pub(super) type Both = (Arc<LoadedRevision>, Result<Arc<LoadedRevision>, LoadError>);

impl Leader {
    /// Rolls revisions out, until a later release writes one. Returns its error.
    pub(super) async fn roll(&self) -> Arc<str> {
        let plugins = &self.plugins;
        let mut changes = plugins.changes.subscribe();
        let mut forged = HashSet::new();
        loop {
            changes.borrow_and_update();
            if let Some(newer) = plugins.in_use().newer {
                return newer;
            }
            self.warn_of_forged(&mut forged);
            self.check_share().await;
            let facts = plugins.facts();
            self.count(&facts);
            let until = match self.next(&facts) {
                Next::Write(new) => {
                    self.write(&facts, &new).await;
                    continue;
                }
                Next::Delete(number) => {
                    self.delete(&facts, number).await;
                    continue;
                }
                Next::Recreate(number) => {
                    self.recreate(number).await;
                    continue;
                }
                Next::Compare(number) => match self.compare(&facts, number).await {
                    None => continue,
                    Some(wait) => Some(plugins.after(wait)),
                },
                Next::Wait(until) => until.map(SystemTime::from),
            };
            self.write_statuses().await;
            let is_share = facts.iter().any(|it| it.stage == Some(Stage::Share));
            let tick = plugins.after(if is_share { CHECKS } else { RENEWS });
            let until = until.map_or(tick, |until| until.min(tick));
            plugins.change_or(&mut changes, Some(until)).await;
        }
    }

    /// Lets the first revision run.
    pub(super) async fn start_first(&self) {
        let facts = self.plugins.facts();
        if running(&facts).is_none()
            && let Next::Write(new) = self.next(&facts)
        {
            self.write(&facts, &new).await;
        }
    }

    fn next(&self, facts: &[RevisionFacts]) -> Next {
        let wanted = self.note_seen(facts);
        next(&Facts {
            revisions: facts,
            wanted: wanted.as_deref(),
            candidate: self.candidate_facts(facts),
            held: self.held(),
            is_lost: self.is_lost(facts),
            now: self.plugins.now(),
            settings: &self.plugins.parts.settings,
        })
    }

    pub(super) fn candidate_facts(&self, facts: &[RevisionFacts]) -> Option<CandidateFacts> {
        let running = running(facts)?;
        let running_name = running.name.as_str();
        let (_, running) = self.named(running)?;
        let rolling = rolling(facts)?;
        let (state, spec) = self.named(rolling)?;
        let mut candidate = self.candidate();
        // A number alone does not identify it, because what was deleted may have had the same.
        if candidate.name != rolling.name {
            *candidate = Candidate {
                name: rolling.name.clone(),
                ..Candidate::default()
            };
        }
        let compared = candidate.compared.as_ref();
        let compared = compared.filter(|(with, _)| *with == running_name);
        Some(CandidateFacts {
            number: rolling.number,
            refused: candidate.refused.clone(),
            comparison: compared.map(|(_, compared)| compared.into()),
            removed: removed(
                &running,
                &spec,
                &self.plugins.parts.program.loader.always_built_in(),
            ),
            failures: candidate.failures.clone(),
            is_outdated: self.proposed().is_outdated(&spec),
            lagging: self.lagging(&state),
            watched: candidate.watched.clone(),
        })
    }

    /// Counts the replicas that use the running revision and have not loaded another one.
    fn lagging(&self, state: &RevisionState) -> usize {
        let Some((_, running, _)) = self.plugins.in_use().running else {
            return 0;
        };
        let has_loaded = |pod: &str| {
            let mut replicas = state.replicas.iter();
            replicas.any(|it| it.pod == pod && it.plan.is_some() && it.problem.is_none())
        };
        let replicas = running.replicas.iter();
        replicas.filter(|it| !has_loaded(&it.pod)).count()
    }

    pub(super) fn named(
        &self,
        facts: &RevisionFacts,
    ) -> Option<(Arc<RevisionState>, Arc<PluginRevisionSpec>)> {
        let state = self.plugins.revision(&facts.name)?;
        let spec = state.spec.as_ref().ok()?.clone();
        Some((state, spec))
    }

    /// Writes a stage, and tells about it.
    pub(super) async fn write(&self, facts: &[RevisionFacts], new: &NewStage) {
        let plugins = &self.plugins;
        let Some(of) = facts.iter().find(|it| it.number == new.number) else {
            return;
        };
        let Some((state, spec)) = self.named(of) else {
            return;
        };
        let before = state.status.clone();
        // What is skipped is missing in both.
        let loaded = plugins.loaded.get(&of.name);
        let signers = loaded.as_ref().map(|loaded| loaded.signers.clone());
        let plan = loaded.map(|loaded| loaded.generation.plan().to_string());
        let since = before.as_ref().filter(|_| !new.begins);
        let since = since.and_then(|status| status.since.clone());
        let summary = {
            let candidate = self.candidate();
            let compared = candidate.compared.as_ref();
            let summary = compared.map(|(_, compared)| compared.summary.clone());
            summary.filter(|_| candidate.name == of.name)
        };
        let status = PluginRevisionStatus {
            stage: new.stage,
            percent: new.percent,
            since: Some(since.unwrap_or_else(|| super::written(plugins.now()))),
            reason: new.reason.to_owned(),
            message: new.message.clone(),
            plan: plan.or_else(|| before.as_ref()?.plan.clone()),
            signers: signers
                .or_else(|| Some(before.as_ref()?.signers.clone()))
                .unwrap_or_default(),
            shadow: summary.or_else(|| before.as_ref()?.shadow.clone()),
            replicas: Vec::new(),
        };
        match plugins.write_stage((&of.name, &state), &status).await {
            Ok(()) => {
                self.no_pause();
                let is_new = (of.stage, of.percent, &*of.reason)
                    != (Some(new.stage), new.percent, new.reason);
                // Otherwise, the message has other numbers.
                if is_new {
                    self.tell(
                        (&of.name, &state, &spec),
                        new,
                        facts,
                        status.plan.as_deref(),
                    );
                }
            }
            Err(error) => {
                tracing::warn!(revision = of.name, stage = ?new.stage, %error, "the stage of a PluginRevision cannot be written; retrying");
                self.pause().await;
            }
        }
    }

    async fn delete(&self, facts: &[RevisionFacts], number: u64) {
        let Some(of) = facts.iter().find(|it| it.number == number) else {
            return;
        };
        match self.plugins.delete(&of.name).await {
            Ok(()) => {
                self.no_pause();
                tracing::debug!(revision = of.name, "an old PluginRevision is deleted");
            }
            Err(error) => {
                tracing::warn!(revision = of.name, %error, "an old PluginRevision cannot be deleted; retrying");
                self.pause().await;
            }
        }
    }

    /// Loads the running revision and the one that is rolled out.
    pub(super) async fn both(&self, facts: &[RevisionFacts], mode: Mode) -> Option<Both> {
        let plugins = &self.plugins;
        let running = running(facts)?;
        let (_, spec) = self.named(running)?;
        let old = match plugins.loaded.any(&running.name) {
            Some(old) => old,
            None => plugins.load(&spec, Mode::Lenient, true).await.ok()?,
        };
        let (_, spec) = self.named(rolling(facts)?)?;
        let new = plugins.load(&spec, mode, false).await;
        Some((old, new))
    }

    /// Compares the revision of this number with the running one. Returns how long to wait if it cannot be loaded now.
    async fn compare(&self, facts: &[RevisionFacts], number: u64) -> Option<Duration> {
        let Some((old, new)) = self.both(facts, Mode::Strict).await else {
            return Some(backoff(0));
        };
        let new = match new {
            Ok(new) => new,
            Err(error @ LoadError::Refused(_)) => {
                self.candidate().refused = Some(error.sentence());
                return None;
            }
            Err(error @ LoadError::Retry { .. }) => {
                tracing::warn!(
                    number,
                    error = error.sentence(),
                    "a PluginRevision cannot be compared yet"
                );
                let mut candidate = self.candidate();
                candidate.failed = candidate.failed.saturating_add(1);
                return Some(backoff(candidate.failed));
            }
        };
        let (running, candidate) = (running(facts)?, rolling(facts)?);
        let (_, before) = self.named(running)?;
        let (_, spec) = self.named(candidate)?;
        let changed = changed(Some(&before), &spec);
        let pair = (&old.generation, &new.generation);
        let comparing = self.comparer.compare(&self.work.stores, pair, &changed);
        let still = |next: &Next| *next == Next::Compare(number);
        self.write_statuses().await;
        let compared = tokio::select! {
            compared = comparing => compared,
            () = self.until_other(candidate, running, still) => return None,
        };
        self.plugins.show(number, running.number, &compared.summary);
        let mut known = self.candidate();
        if known.name == candidate.name {
            known.compared = Some((running.name.clone(), compared));
        }
        None
    }

    /// Waits until something else is to be done than to compare these revisions. The status of PolicyPlugins is written in the meantime.
    pub(super) async fn until_other(
        &self,
        candidate: &RevisionFacts,
        with: &RevisionFacts,
        still: impl Fn(&Next) -> bool,
    ) {
        let plugins = &self.plugins;
        let mut changes = plugins.changes.subscribe();
        loop {
            changes.borrow_and_update();
            let facts = plugins.facts();
            let is_it = |it: Option<&RevisionFacts>, of: &RevisionFacts| {
                it.is_some_and(|it| it.name == of.name)
            };
            if !is_it(running(&facts), with)
                || !is_it(rolling(&facts), candidate)
                || plugins.in_use().newer.is_some()
                || !still(&self.next(&facts))
            {
                return;
            }
            plugins
                .change_or(&mut changes, Some(plugins.after(RENEWS)))
                .await;
            self.write_statuses().await;
        }
    }

    /// Counts for metrics.
    fn count(&self, facts: &[RevisionFacts]) {
        let metrics = &self.plugins.parts.metrics;
        let newest = facts.last();
        let stage = newest.and_then(|it| Some((format!("{:?}", it.stage?), &*it.reason)));
        let stage = stage.as_ref().map(|(stage, reason)| (&**stage, *reason));
        metrics.set_revision_stage(stage);
        let behind: BTreeSet<_> = facts
            .iter()
            .filter(|it| matches!(it.stage, Some(Stage::Share | Stage::Running)))
            .filter_map(|it| self.plugins.revision(&it.name))
            .flat_map(|state| {
                let replicas = state.replicas.clone().into_iter();
                replicas.filter(|it| it.problem.is_some() || it.plan.is_none())
            })
            .map(|replica| replica.pod)
            .collect();
        metrics.set_replicas_behind(behind.len());
    }
}
