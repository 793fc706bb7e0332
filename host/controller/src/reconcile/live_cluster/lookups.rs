//! The objects that plugins look up while a TrainJob is rendered.

use std::sync::Arc;

use trainyard_api::TrainJob;
use trainyard_model::lookup::{LookupAnswer, LookupKey, Lookups, Requester};
use trainyard_render::PendingLookup;

use super::LiveCluster;
use crate::{
    rbac::Reach,
    reconcile::{cluster::Result, error::ReconcileError},
};

impl LiveCluster<'_> {
    /// Fetches the objects that the last rendering, with plugins of this reach, waits for.
    pub(super) async fn look_up(
        &mut self,
        job: &TrainJob,
        reach: &Reach,
        pending: Vec<PendingLookup>,
        lookups: &mut Arc<Lookups>,
    ) -> Result<()> {
        let requester = Requester {
            name: &self.key.name,
            uid: job.metadata.uid.as_deref(),
        };
        for lookup in pending {
            let key = &lookup.key;
            let shared = self.answers.as_ref();
            let answer = match shared.and_then(|answers| answers.get(key)) {
                Some(answer) => answer.clone(),
                None => self.fetch(requester, reach, key).await?,
            };
            if let Some(answers) = &mut self.answers {
                answers.insert(key.clone(), answer.clone());
            }
            let Some(answer) = answer else {
                return Err(ReconcileError::NoObject(Box::new(lookup)));
            };
            Arc::make_mut(lookups).insert(key.clone(), answer);
        }
        Ok(())
    }

    /// Requests the answer to a lookup, and follows its objects from now on.
    async fn fetch(
        &self,
        requester: Requester<'_>,
        reach: &Reach,
        key: &LookupKey,
    ) -> Result<Option<LookupAnswer>> {
        let interests = &self.reconciler.interests;
        interests.register(self.key, key, reach);
        let fetcher = &self.reconciler.fetcher;
        let namespaces = (&self.key.namespace, reach.catalog.as_ref());
        let fetched = fetcher.fetch(namespaces, requester, key);
        let fetched = self.worker.free_if_slow(fetched).await?;
        interests.note_state(self.key, key, reach, fetched.seen);
        Ok(fetched.answer)
    }
}
