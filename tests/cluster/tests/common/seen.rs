//! What was ever made, however short it lived.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail};
use futures_util::StreamExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use tokio::task::JoinHandle;
use trainyard_cluster::{ControlPlane, client_of};

type Uids = BTreeMap<String, BTreeSet<String>>;

/// The UIDs of all JobSets and ConfigMaps that a namespace ever had, by kind and name.
pub struct Seen {
    uids: Arc<Mutex<Uids>>,
    watches: Vec<JoinHandle<()>>,
}

impl Seen {
    /// Begins to watch.
    pub async fn start(plane: &ControlPlane, namespace: &str) -> Result<Self> {
        let client = client_of(plane.kubeconfig()).await?;
        let uids = Arc::new(Mutex::new(Uids::new()));
        let kinds = [
            ("jobset.x-k8s.io", "v1alpha2", "JobSet"),
            ("", "v1", "ConfigMap"),
        ];
        let watch = |(group, version, kind): (&str, &str, &'static str)| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            let api: Api<PartialObjectMeta<DynamicObject>> =
                Api::namespaced_with(client.clone(), namespace, &resource);
            let uids = Arc::clone(&uids);
            let events = watcher(api, Config::default()).default_backoff();
            tokio::spawn(events.for_each(move |event| {
                // A watch that broke off starts again.
                if let Ok(Event::Apply(object) | Event::InitApply(object)) = event {
                    let mut uids = uids.lock().unwrap_or_else(PoisonError::into_inner);
                    let name = format!("{kind} {}", object.name_any());
                    uids.entry(name).or_default().extend(object.uid());
                }
                std::future::ready(())
            }))
        };
        Ok(Self {
            watches: kinds.map(watch).into(),
            uids,
        })
    }

    /// Fails if something of one name was made more than once.
    pub fn made_once(&self) -> Result<()> {
        let uids = self.uids.lock().unwrap_or_else(PoisonError::into_inner);
        let twice = uids.iter().find(|(_, uids)| uids.len() > 1);
        match twice {
            Some((name, uids)) => bail!("{name} was made {} times: {uids:?}", uids.len()),
            None => Ok(()),
        }
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}
