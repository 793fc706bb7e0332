//! The kinds that the API server serves.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use kube::{
    Client,
    api::ApiResource,
    core::GroupVersionKind,
    discovery::{self, Scope},
};

use crate::kubernetes::is_not_found;

/// The resource of a kind.
pub type Served = (ApiResource, Scope);

/// A cache of discovery that keeps the kinds that are served.
pub(crate) struct Kinds {
    client: Client,
    known: Mutex<HashMap<GroupVersionKind, Served>>,
}

impl Kinds {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
        }
    }

    /// Returns the resource of a kind from the cache. A kind that was not served is looked up again, because its CRD may have been created.
    pub(crate) async fn get(&self, kind: &GroupVersionKind) -> Result<Option<Served>, kube::Error> {
        let known = self.known().get(kind).cloned();
        match known {
            Some(known) => Ok(Some(known)),
            None => self.refresh(kind).await,
        }
    }

    /// Returns the current resource of a kind; `None` if it is not served.
    pub(crate) async fn refresh(
        &self,
        kind: &GroupVersionKind,
    ) -> Result<Option<Served>, kube::Error> {
        let found = discover(&self.client, kind).await?;
        let mut known = self.known();
        match &found {
            Some(found) => known.insert(kind.clone(), found.clone()),
            None => known.remove(kind),
        };
        drop(known);
        Ok(found)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<GroupVersionKind, Served>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the resource of a kind; `None` if it is not served.
///
/// # Errors
/// The API server does not answer, or does not allow it.
pub async fn discover(
    client: &Client,
    kind: &GroupVersionKind,
) -> Result<Option<Served>, kube::Error> {
    match discovery::pinned_kind(client, kind).await {
        Ok((resource, capabilities)) => Ok(Some((resource, capabilities.scope))),
        Err(kube::Error::Discovery(_)) => Ok(None),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the pauses between calls of discovery.
pub(crate) fn backoff(most: Duration) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(Duration::from_secs(1))
        .with_max_delay(most / 2)
        .with_factor(2.0)
        .without_max_times()
        // The jitter is at most the delay itself.
        .with_jitter()
        .build()
}
