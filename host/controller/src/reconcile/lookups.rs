//! What plugins ask for, from the API server.

use std::sync::Arc;

use kube::api::{DynamicObject, ListParams, TypeMeta};
use kube::discovery::Scope;
use kube::{Api, Client};
use serde_json::Value;
use trainyard_model::lookup::{Asker, LookupAnswer, LookupKey};

use super::error::ReconcileError;
use crate::watch::{Kind, Kinds, Seen, Version};

/// Asks the API server.
pub(crate) struct Fetcher {
    client: Client,
    kinds: Arc<Kinds>,
}

/// What the API server said.
pub(crate) struct Fetched {
    /// The answer; none where the object does not exist.
    pub(crate) answer: Option<LookupAnswer>,
    /// What it was made of.
    pub(crate) seen: Seen,
}

impl Fetcher {
    pub(crate) fn new(client: Client, kinds: Arc<Kinds>) -> Self {
        Self { client, kinds }
    }

    /// The answer for a TrainJob of the namespace.
    pub(crate) async fn fetch(
        &self,
        namespace: &str,
        asker: Asker<'_>,
        key: &LookupKey,
    ) -> Result<Fetched, ReconcileError> {
        let Kind { api_version, kind } = &Kind::of(key);
        let asks_served = matches!(key, LookupKey::Served { .. });
        if &**api_version == "v1" && &**kind == "Secret" && !asks_served {
            return Err(ReconcileError::Secret(key.clone()));
        }
        let wanted = Kind::of(key).group_version_kind();
        let served = self.kinds.get(&wanted).await.map_err(|error| {
            ReconcileError::api(
                format!("asking whether {kind} ({api_version}) is served"),
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
            let seen = Seen::NotServed;
            return Ok(Fetched { answer, seen });
        };
        let api: Api<DynamicObject> = match scope {
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), namespace, &resource),
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
        };
        let failed = |error| ReconcileError::api(format!("reading {key}"), error);
        match key {
            LookupKey::Served { .. } => Ok(Fetched {
                answer: Some(LookupAnswer::Served(true)),
                seen: Seen::NOTHING,
            }),
            LookupKey::Object { name, .. } => {
                let found = api.get_opt(name).await.map_err(failed)?;
                let seen = Seen::of(found.iter().map(version));
                let answer = found.map(|object| LookupAnswer::Object(plain(object)));
                Ok(Fetched { answer, seen })
            }
            LookupKey::All { .. } => {
                let found = api.list(&ListParams::default()).await.map_err(failed)?;
                let seen = Seen::of(found.items.iter().map(version));
                let objects = found.items.into_iter().map(|mut object| {
                    // A list names the type once, for all of its items.
                    object.types.get_or_insert_with(|| TypeMeta {
                        api_version: api_version.to_string(),
                        kind: kind.to_string(),
                    });
                    plain(object)
                });
                let answer = Some(LookupAnswer::all(objects.collect(), asker));
                Ok(Fetched { answer, seen })
            }
        }
    }
}

fn version(object: &DynamicObject) -> Version<'_> {
    Version::of(&object.metadata)
}

/// The object without what only the API server needs, and what changes without meaning anything.
fn plain(mut object: DynamicObject) -> Arc<Value> {
    object.metadata.managed_fields = None;
    object.metadata.resource_version = None;
    Arc::new(serde_json::to_value(&object).unwrap_or_default())
}
