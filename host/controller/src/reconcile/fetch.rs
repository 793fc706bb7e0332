//! Lookups of plugins in the API server.

use std::sync::Arc;

use kube::{
    Client, Resource as _,
    api::{ApiResource, DynamicObject, GetParams, ListParams},
    core::Request,
    discovery::Scope,
};
use serde_json::Value;
use tokio::time::Instant;
use trainyard_model::lookup::{LookupAnswer, LookupKey, Requester};

use super::error::ReconcileError;
use crate::{
    client::segment,
    kubernetes::unless_gone,
    log_shares::LogShares,
    watch::{
        Content, Feed, FeedError, Kinds, Lists, SubjectState, WatchedKind, content_of, decoded,
    },
};

/// Fetches objects for lookups.
pub(crate) struct Fetcher {
    client: Client,
    kinds: Arc<Kinds>,
    lists: Arc<Lists>,
    log: Arc<LogShares>,
}

/// The result of a lookup.
pub(crate) struct LookupResult {
    /// The answer; `None` if the object does not exist.
    pub(crate) answer: Option<LookupAnswer>,
    /// The observed state.
    pub(crate) seen: SubjectState,
}

impl LookupResult {
    /// Returns the result if the object does not exist.
    fn without_object(key: &LookupKey) -> Self {
        Self {
            answer: key.answer_without_object(),
            seen: SubjectState::NOTHING,
        }
    }
}

impl Fetcher {
    /// Returns a fetcher that requests each list once for all TrainJobs.
    pub(crate) fn new(
        client: Client,
        kinds: Arc<Kinds>,
        lists: Arc<Lists>,
        log: Arc<LogShares>,
    ) -> Self {
        Self {
            client,
            kinds,
            lists,
            log,
        }
    }

    /// Returns the answer for a TrainJob in the namespace, and a catalog in that one.
    pub(crate) async fn fetch(
        &self,
        (namespace, catalog): (&Arc<str>, Option<&Arc<str>>),
        asker: Requester<'_>,
        key: &LookupKey,
    ) -> Result<LookupResult, ReconcileError> {
        let Some(namespace) = key.namespace(namespace, catalog) else {
            return Ok(LookupResult::without_object(key));
        };
        let WatchedKind { api_version, kind } = &WatchedKind::of(key);
        let asks_served = matches!(key, LookupKey::Served { .. });
        if &**api_version == "v1" && &**kind == "Secret" && !asks_served {
            return Err(ReconcileError::Secret(key.clone()));
        }
        let wanted = WatchedKind::of(key).group_version_kind();
        let served = self.kinds.get(&wanted).await.map_err(|error| {
            ReconcileError::api(
                format!("requesting whether {kind} ({api_version}) is served"),
                error,
            )
        })?;
        let Some((resource, scope)) = served else {
            let answer = if asks_served {
                LookupAnswer::Served(false)
            } else {
                LookupAnswer::NotServed
            };
            let answer = Some(answer);
            let seen = SubjectState::NotServed;
            return Ok(LookupResult { answer, seen });
        };
        let namespace = matches!(scope, Scope::Namespaced).then_some(namespace);
        let failed = |error| ReconcileError::api(format!("reading {key}"), error);
        match key {
            LookupKey::Served { .. } => Ok(LookupResult {
                answer: Some(LookupAnswer::Served(true)),
                seen: SubjectState::NOTHING,
            }),
            LookupKey::Object(object)
            | LookupKey::Optional(object)
            | LookupKey::Catalog(object) => {
                let found = self
                    .object(namespace, &resource, &object.name, &WatchedKind::of(key))
                    .await;
                let found = unless_gone(found).map_err(failed)?.flatten();
                Ok(LookupResult {
                    seen: SubjectState::of(found.iter().map(Content::hashes)),
                    answer: match found {
                        Some(content) => content.value.map(LookupAnswer::Object),
                        None => key.answer_without_object(),
                    },
                })
            }
            LookupKey::All { .. } => {
                let kind = &WatchedKind::of(key);
                let list = self.list(kind, namespace, &resource).await;
                let (objects, seen) = list.map_err(failed)?;
                let answer = Some(LookupAnswer::all(objects, asker));
                Ok(LookupResult { answer, seen })
            }
        }
    }

    /// Returns a cached list, which the first caller requests.
    async fn list(
        &self,
        kind: &WatchedKind,
        namespace: Option<&Arc<str>>,
        resource: &ApiResource,
    ) -> Result<(Vec<Arc<Value>>, SubjectState), kube::Error> {
        let requested = Instant::now();
        if let Some(held) = self.lists.get(kind, namespace, requested) {
            return Ok(held);
        }
        let requesting = self.lists.requesting(kind, namespace);
        let mut failure = requesting.lock().await;
        if let Some(held) = self.lists.get(kind, namespace, requested) {
            return Ok(held);
        }
        if let Some((when, why)) = &*failure
            && *when > requested
        {
            // A request that failed while this one waited is not repeated by every waiter.
            return Err(kube::Error::Service(why.clone().into()));
        }
        let requested_at = Instant::now();
        let params = ListParams::default();
        let path = path(namespace, resource);
        let feed = Feed::new(
            self.client.clone(),
            path,
            params,
            content_of(kind, self.log.clone()),
        );
        match feed
            .all(|object| object.size)
            .await
            .map_err(FeedError::into_call)
        {
            Ok(objects) => Ok(self.lists.cache(kind, namespace, requested_at, objects)),
            Err(error) => {
                *failure = Some((Instant::now(), error.to_string()));
                Err(error)
            }
        }
    }

    async fn object(
        &self,
        namespace: Option<&Arc<str>>,
        resource: &ApiResource,
        name: &str,
        kind: &WatchedKind,
    ) -> Result<Option<Content>, kube::Error> {
        let objects = Request::new(path(namespace, resource));
        let request = objects.get(&segment(name), &GetParams::default());
        let request = request.map_err(kube::Error::BuildRequest)?;
        let text = self.client.request_text(request).await?;
        let read = decoded(text, content_of(kind, self.log.clone())).await;
        read.map_err(|ends| FeedError::from(ends).into_call())
    }
}

fn path(namespace: Option<&Arc<str>>, resource: &ApiResource) -> String {
    DynamicObject::url_path(resource, namespace.map(|namespace| &**namespace))
}
