//! The certificate authorities of the status server, which pods have to trust. They change while pods run.
//!
//! A new TrainJob gets them by the plugin, as a fact of the host. Later changes are written to the ConfigMaps that the plugin emitted, and
//! kubelets write them to the pods. Nothing else of these ConfigMaps is written, and no reconcile writes them again.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, api::Patch};
use serde_json::json;
use tokio::time::{Instant, timeout_at};
use trainyard_model::facts::{HostFacts, STATUS_CA};

use crate::{
    certificate::ServedCertificate,
    client::without_content,
    kubernetes::unless_gone,
    queue::NamespacedName,
    reconcile::{Stores, merging, owner, status},
};

/// How long after a change the ConfigMaps are checked once more. A reconcile that had read the earlier authorities has created its ConfigMap
/// by then.
const AGAIN: Duration = Duration::from_secs(120);

/// The end of a ConfigMap's name, and the key in it, as the plugin emits it.
const SUFFIX: &str = "-tls-config";
const KEY: &str = "ca.crt";

/// Keeps the fact current with which TrainJobs are rendered.
pub(super) async fn publish(certificate: ServedCertificate, facts: HostFacts) {
    let mut changes = certificate.changes();
    loop {
        publish_now(&certificate, &facts);
        changes.next().await;
    }
}

/// Updates the fact. Returns whether there is a certificate.
pub(super) fn publish_now(certificate: &ServedCertificate, facts: &HostFacts) -> bool {
    let is_there = certificate.is_there();
    let authority = certificate.authority();
    if is_there && facts.now().get(STATUS_CA).map(String::as_str) != authority.as_deref() {
        facts.set(STATUS_CA, authority.as_deref());
    }
    is_there
}

/// The ConfigMaps with the authorities of all TrainJobs. Only the leader writes them.
#[derive(Clone)]
pub(super) struct ConfigMaps {
    pub(super) client: Client,
    pub(super) certificate: ServedCertificate,
    pub(super) facts: HostFacts,
    pub(super) stores: Arc<Stores>,
}

impl ConfigMaps {
    /// Keeps the ConfigMaps current.
    pub(super) async fn follow(self) {
        let mut changes = self.certificate.changes();
        let mut known: Option<Arc<str>> = None;
        let mut again: Option<Instant> = None;
        loop {
            if let Some(authority) = self.certificate.authority() {
                let is_new = known.as_ref() != Some(&authority);
                if is_new || again.is_some_and(|at| at <= Instant::now()) {
                    let is_done = self.update(&authority).await;
                    // Whatever failed is tried again, too.
                    let is_last = is_done && !is_new;
                    again = (!is_last).then(|| Instant::now() + AGAIN);
                    known = Some(authority);
                }
            }
            match again {
                Some(at) => drop(timeout_at(at, changes.next()).await),
                None => changes.next().await,
            }
        }
    }

    /// Updates all ConfigMaps. Returns whether none failed.
    async fn update(&self, authority: &str) -> bool {
        // A TrainJob that is rendered from now on has them already.
        publish_now(&self.certificate, &self.facts);
        let (mut changed, mut failed) = (0u32, 0u32);
        for (key, job) in self.stores.jobs.objects() {
            let is_ours = job.desired.managed_by_us && !job.deleting;
            if !is_ours || status::end(&job.status).is_some() {
                continue;
            }
            match self.update_one(&key, &job.uid, authority).await {
                Ok(false) => {}
                Ok(true) => changed += 1,
                Err(error) => {
                    failed += 1;
                    let error = without_content(error);
                    tracing::debug!(namespace = %key.namespace, name = %key.name, %error, "the certificate authorities in a ConfigMap are not updated");
                }
            }
        }
        if changed > 0 {
            tracing::info!(changed, "the certificate authorities of pods are updated");
        }
        if failed > 0 {
            tracing::warn!(
                failed,
                "the certificate authorities of some pods cannot be updated, and are tried again"
            );
        }
        failed == 0
    }

    /// Updates the ConfigMap of a TrainJob, if it has one that differs. Returns whether it differed.
    async fn update_one(
        &self,
        key: &NamespacedName,
        uid: &str,
        authority: &str,
    ) -> Result<bool, kube::Error> {
        let name = format!("{}{SUFFIX}", key.name);
        let config_maps = Api::<ConfigMap>::namespaced(self.client.clone(), &key.namespace);
        let Some(found) = config_maps.get_opt(&name).await? else {
            return Ok(false);
        };
        let data = found.data.as_ref().and_then(|data| data.get(KEY));
        if !owner::is_of(uid, &found.metadata) || data.is_none_or(|now| now == authority) {
            return Ok(false);
        }
        let patch = json!({
            "metadata": {"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version},
            "data": {KEY: authority},
        });
        let (patch, params) = (Patch::Merge(patch), merging());
        let patched = config_maps.patch_metadata(&name, &params, &patch);
        let patched = unless_gone(patched.await)?;
        Ok(patched.is_some())
    }
}
