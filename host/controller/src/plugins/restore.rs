//! What happens if the running revision is deleted.

use super::{
    Leader,
    rollout::{Next, RevisionFacts, restored},
};

impl Leader {
    /// Lets the previous revision run, or the one that is held, if the running one was deleted.
    pub(super) async fn restore(&self) {
        loop {
            let facts = self.plugins.facts();
            // A later release may have written the running one.
            if self.plugins.in_use().newer.is_some() {
                return;
            }
            match restored(&facts, self.held()) {
                Some(Next::Write(new)) => self.write(&facts, &new).await,
                Some(Next::Recreate(number)) => self.recreate(number).await,
                _ => return,
            }
        }
    }

    /// Returns the number of the revision that is held. Without a PolicyPlugin, nobody asks for it.
    pub(super) fn held(&self) -> Option<u64> {
        let held = self.plugins.held_revision();
        let held = held.filter(|_| !self.plugins.policies.is_empty());
        held.map(|held| held.spec.number)
    }

    /// Creates the revision that is held again.
    pub(super) async fn recreate(&self, number: u64) {
        let plugins = &self.plugins;
        let held = plugins.held_revision();
        let Some(held) = held.filter(|held| held.spec.number == number) else {
            return;
        };
        let revision = &*held.name;
        match plugins.create(&held.spec, true).await {
            Ok(()) => {
                self.no_pause();
                tracing::warn!(
                    revision,
                    "the running PluginRevision was deleted, and no earlier one is kept, so it is created again"
                );
            }
            Err(error) => {
                tracing::warn!(revision, %error, "the running PluginRevision, which was deleted, cannot be created again; retrying");
                self.pause().await;
            }
        }
    }

    /// Whether a revision has run that does not exist any more.
    pub(super) fn is_lost(&self, facts: &[RevisionFacts]) -> bool {
        let last = self.plugins.last_used();
        last.is_some_and(|last| facts.iter().all(|it| it.name != last))
    }
}
