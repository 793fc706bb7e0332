//! Records every object that was created, even if it was deleted soon after.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Result, bail};
use futures_util::StreamExt as _;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, PostParams},
    core::{GroupVersionKind, PartialObjectMeta},
    runtime::{
        WatchStreamExt as _, watcher,
        watcher::{Config, Event},
    },
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use trainyard_cluster::{ControlPlane, client_of, eventually};

type Uids = BTreeMap<String, BTreeSet<String>>;

/// The UIDs of all JobSets and ConfigMaps that ever existed in a namespace, by kind and name.
pub(crate) struct Creations {
    uids: Arc<Mutex<Uids>>,
    watches: Vec<JoinHandle<()>>,
    client: Client,
    namespace: String,
}

/// The watched kinds.
const KINDS: [(&str, &str, &str); 2] = [
    ("jobset.x-k8s.io", "v1alpha2", "JobSet"),
    ("", "v1", "ConfigMap"),
];

fn resource((group, version, kind): (&str, &str, &str)) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// An object that no controller acts on.
fn marker(resource: &ApiResource) -> Result<DynamicObject> {
    let container = json!({"name": "none", "image": "example.com/none"});
    let job = json!({"name": "none", "template": {"spec": {"template": {"spec": {"containers": [container]}}}}});
    let spec = match resource.kind.as_str() {
        "JobSet" => {
            json!({"managedBy": "example.com/marker", "suspend": true, "replicatedJobs": [job]})
        }
        _ => Value::Null,
    };
    let mut object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"generateName": "marker-"},
    });
    if !spec.is_null() {
        object["spec"] = spec;
    }
    Ok(serde_json::from_value(object)?)
}

impl Creations {
    /// Starts the watches.
    pub(crate) async fn start(plane: &ControlPlane, namespace: &str) -> Result<Self> {
        let client = client_of(plane.kubeconfig()).await?;
        let uids = Arc::new(Mutex::new(Uids::new()));
        let watch = |watched: (&str, &str, &'static str)| {
            let (resource, kind) = (resource(watched), watched.2);
            let api: Api<PartialObjectMeta<DynamicObject>> =
                Api::namespaced_with(client.clone(), namespace, &resource);
            let uids = Arc::clone(&uids);
            let events = watcher(api, Config::default()).default_backoff();
            tokio::spawn(events.for_each(move |event| {
                // A closed watch is reopened.
                if let Ok(Event::Apply(object) | Event::InitApply(object)) = event {
                    let mut uids = uids.lock().unwrap_or_else(PoisonError::into_inner);
                    let name = format!("{kind} {}", object.name_any());
                    uids.entry(name).or_default().extend(object.uid());
                }
                std::future::ready(())
            }))
        };
        Ok(Self {
            watches: KINDS.map(watch).into(),
            uids,
            client,
            namespace: namespace.to_owned(),
        })
    }

    /// Checks that at most one object was created under each name so far.
    ///
    /// Watches lag, so this creates markers, which the watches report after all objects that were created before.
    pub(crate) async fn assert_created_once(&self) -> Result<()> {
        for kind in KINDS {
            let resource = resource(kind);
            let api: Api<DynamicObject> =
                Api::namespaced_with(self.client.clone(), &self.namespace, &resource);
            let marker = marker(&resource)?;
            let made = api.create(&PostParams::default(), &marker).await?;
            let (name, uid) = (made.name_any(), made.uid().unwrap_or_default());
            eventually("the marker is seen", async || {
                let uids = self.uids.lock().unwrap_or_else(PoisonError::into_inner);
                let seen = uids.get(&format!("{} {name}", kind.2));
                Ok(seen.filter(|uids| uids.contains(&uid)).map(drop))
            })
            .await?;
            api.delete(&name, &DeleteParams::default()).await?;
        }
        let uids = self.uids.lock().unwrap_or_else(PoisonError::into_inner);
        let twice = uids.iter().find(|(_, uids)| uids.len() > 1);
        match twice {
            Some((name, uids)) => bail!("{name} was created {} times: {uids:?}", uids.len()),
            None => Ok(()),
        }
    }
}

impl Drop for Creations {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}
