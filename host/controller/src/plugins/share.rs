//! The check of which TrainJobs of a share fail because of its revision.

use std::sync::Arc;

use trainyard_config::policy_plugin::Stage;

use super::{
    Leader, Mode,
    comparison::Checked,
    loading::LoadedRevision,
    roller::{Both, CHECKS},
    rollout::{Next, RevisionFacts, Watched, rolling, running},
    words::{cut, skipped_in_words},
};
use crate::{generation::Generation, queue::NamespacedName};

impl Leader {
    /// Checks which TrainJobs of a share fail, every few seconds. It may take minutes, so it ends at once if the share does, or if a person asks
    /// for that.
    pub(super) async fn check_share(&self) {
        let facts = self.plugins.facts();
        let share = rolling(&facts).filter(|it| it.stage == Some(Stage::Share));
        let Some((share, running)) = share.zip(running(&facts)) else {
            return;
        };
        // The facts of another candidate are dropped.
        self.candidate_facts(&facts);
        let checks = self.candidate().checks;
        if checks.is_some_and(|checks| self.plugins.parts.clock.now() < checks) {
            return;
        }
        tokio::select! {
            () = self.check_failures(&facts, (share, running)) => {
                self.candidate().checks = Some(self.plugins.after(CHECKS));
            }
            // What was found so far is found again, because the revisions are others.
            () = self.until_other(share, running, |next| keeps_share(next, share)) => {}
        }
    }

    async fn check_failures(
        &self,
        facts: &[RevisionFacts],
        (share, running): (&RevisionFacts, &RevisionFacts),
    ) {
        let plugins = &self.plugins;
        let mut checked = {
            let mut candidate = self.candidate();
            let (with, checked) = std::mem::take(&mut candidate.checked);
            // What fails with one revision may not with another.
            if with == running.name {
                checked
            } else {
                Checked::new()
            }
        };
        let held = plugins.parts.generations.held();
        let both = self.both(facts, Mode::Lenient).await;
        let is_watched = |old: &LoadedRevision, new: &LoadedRevision| {
            let rolling = held.rolling.as_ref();
            let is_complete = old.skipped.is_empty() && new.skipped.is_empty();
            is_complete && rolling.is_some_and(|it| Arc::ptr_eq(&it.generation, &new.generation))
        };
        let (old, new) = match both {
            Some((old, Ok(new))) if is_watched(&old, &new) => (old, new),
            // Nobody sees how TrainJobs do with all plugins of the revision, so its share does not grow.
            both => {
                self.candidate().watched = unwatched(both);
                return;
            }
        };
        let is_share = |generation: &Generation| generation.number() == share.number;
        let in_share = |namespace: &str| is_share(held.of(namespace));
        let fails = |key: &NamespacedName| self.work.failures.stopped_by(key);
        let pair = (&old.generation, &new.generation);
        let failures = self
            .comparer
            .failures(&self.work.stores, pair, in_share, fails, &mut checked)
            .await;
        let mut candidate = self.candidate();
        candidate.failures = failures;
        candidate.checked = (running.name.clone(), checked);
        if !matches!(candidate.watched, Watched::Since(_)) {
            candidate.watched = Watched::Since(plugins.now());
        }
    }
}

/// Whether a step leaves the share as it is, or depends on which of its TrainJobs fail, which is being checked.
fn keeps_share(next: &Next, share: &RevisionFacts) -> bool {
    match next {
        Next::Write(new) => {
            new.number == share.number && matches!(new.stage, Stage::Share | Stage::Running)
        }
        Next::Recreate(_) => false,
        Next::Delete(_) | Next::Compare(_) | Next::Wait(_) => true,
    }
}

/// Returns why nobody sees how TrainJobs do with a share.
fn unwatched(both: Option<Both>) -> Watched {
    let skipped = |it: &LoadedRevision| cut(&skipped_in_words(&it.skipped));
    match both {
        None => Watched::No("the running revision is not loaded".to_owned()),
        Some((_, Err(error))) => Watched::No(cut(&error.sentence())),
        Some((_, Ok(new))) if !new.skipped.is_empty() => Watched::No(skipped(&new)),
        Some((old, Ok(_))) if !old.skipped.is_empty() => {
            Watched::NothingToCompareWith(skipped(&old))
        }
        Some(_) => Watched::No("the leader does not use it yet".to_owned()),
    }
}
