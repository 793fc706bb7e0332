//! Which kinds the API server serves.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use kube::Client;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};

use crate::kubernetes::is_not_found;

/// How a kind is addressed.
pub(crate) type Served = (ApiResource, Scope);

/// Asks which kinds are served, and remembers those that are.
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

    /// How a kind is addressed, by what is known; what was not served is asked again, since a CRD may come.
    pub(crate) async fn get(&self, kind: &GroupVersionKind) -> Result<Option<Served>, kube::Error> {
        let known = self.known().get(kind).cloned();
        match known {
            Some(known) => Ok(Some(known)),
            None => self.ask(kind).await,
        }
    }

    /// How a kind is addressed now; none where it is not served.
    pub(crate) async fn ask(&self, kind: &GroupVersionKind) -> Result<Option<Served>, kube::Error> {
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

/// How a kind is addressed; none where it is not served.
pub(crate) async fn discover(
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

/// How long to wait before discovery is asked again.
pub(crate) fn waits(most: Duration) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(Duration::from_secs(1))
        .with_max_delay(most / 2)
        .with_factor(2.0)
        .without_max_times()
        // The jitter lies between nothing and the delay itself.
        .with_jitter()
        .build()
}
