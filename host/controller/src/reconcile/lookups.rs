//! What plugins ask for, from the API server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use kube::{Api, Client};
use serde_json::Value;
use trainyard_model::lookup::{LookupAnswer, LookupKey};

use super::error::{ReconcileError, code};
use super::kind_of;

/// Asks the API server, and remembers which kinds it serves.
pub(crate) struct Fetcher {
    client: Client,
    kinds: Mutex<HashMap<GroupVersionKind, (ApiResource, Scope)>>,
}

impl Fetcher {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            kinds: Mutex::default(),
        }
    }

    /// The answer; none where the object does not exist.
    pub(crate) async fn fetch(
        &self,
        namespace: &str,
        key: &LookupKey,
    ) -> Result<Option<LookupAnswer>, ReconcileError> {
        let (api_version, kind) = match key {
            LookupKey::Object {
                api_version, kind, ..
            }
            | LookupKey::All { api_version, kind }
            | LookupKey::Served { api_version, kind } => (api_version, kind),
        };
        if api_version == "v1" && kind == "Secret" && !matches!(key, LookupKey::Served { .. }) {
            return Err(ReconcileError::Secret(key.clone()));
        }
        let served = self.kind(api_version, kind).await?;
        let Some((resource, scope)) = served else {
            return Ok(Some(match key {
                LookupKey::Served { .. } => LookupAnswer::Served(false),
                _ => LookupAnswer::NotServed,
            }));
        };
        let api: Api<DynamicObject> = match scope {
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), namespace, &resource),
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
        };
        match key {
            LookupKey::Served { .. } => Ok(Some(LookupAnswer::Served(true))),
            LookupKey::Object { name, .. } => {
                let found = api.get_opt(name).await;
                let found =
                    found.map_err(|error| ReconcileError::api(format!("reading {key}"), error))?;
                Ok(found.map(|object| LookupAnswer::Object(plain(object))))
            }
            LookupKey::All { .. } => {
                let found = api.list(&ListParams::default()).await;
                let found =
                    found.map_err(|error| ReconcileError::api(format!("reading {key}"), error))?;
                let objects = found.items.into_iter().map(|mut object| {
                    // A list names the type once, for all of its items.
                    object.types.get_or_insert_with(|| kube::api::TypeMeta {
                        api_version: api_version.clone(),
                        kind: kind.clone(),
                    });
                    plain(object)
                });
                Ok(Some(LookupAnswer::all(objects.collect())))
            }
        }
    }

    /// How a kind is addressed; none where it is not served. What is not served is asked again, since a CRD may come.
    async fn kind(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<(ApiResource, Scope)>, ReconcileError> {
        let wanted = kind_of(api_version, kind);
        let known = self.known().get(&wanted).cloned();
        if known.is_some() {
            return Ok(known);
        }
        match discovery::pinned_kind(&self.client, &wanted).await {
            Ok((resource, capabilities)) => {
                let found = (resource, capabilities.scope);
                self.known().insert(wanted, found.clone());
                Ok(Some(found))
            }
            Err(kube::Error::Discovery(_)) => Ok(None),
            Err(error) if code(&error) == Some(404) => Ok(None),
            Err(error) => Err(ReconcileError::api(
                format!("asking whether {kind} ({api_version}) is served"),
                error,
            )),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<GroupVersionKind, (ApiResource, Scope)>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The object without what only the API server needs, and what changes without meaning anything.
fn plain(mut object: DynamicObject) -> Arc<Value> {
    object.metadata.managed_fields = None;
    Arc::new(serde_json::to_value(&object).unwrap_or_default())
}
