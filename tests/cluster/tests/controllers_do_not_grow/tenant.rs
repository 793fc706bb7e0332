//! A namespace whose TrainJobs come and go.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use trainyard_cluster::{Cluster, Fate, PodGroups, Resource};

use super::patiently;
use crate::common::{Namespace, runtimes};

/// Returns whether a TrainJob has a launcher beside its nodes, by its name, which begins with that of its runtime.
pub(super) fn has_launcher(job: &str) -> bool {
    job.starts_with("own-launcher") || job.starts_with("launcher-node")
}

/// A namespace with its TrainJobs.
pub(super) struct Tenant<'a> {
    pub(super) namespace: Namespace<'a>,
    fates: Arc<Mutex<HashMap<String, Fate>>>,
}

impl<'a> Tenant<'a> {
    /// Creates the namespace.
    pub(super) async fn new(cluster: &'a Cluster) -> Result<Self> {
        let tenant = Self {
            namespace: Namespace::new(cluster).await?,
            fates: Arc::default(),
        };
        tenant.decide_pods();
        Ok(tenant)
    }

    /// Decides how the pods of a TrainJob end, which are held until then.
    pub(super) fn decide(&self, job: &str, fate: Fate) {
        let fates = self.fates.lock();
        let mut fates = fates.unwrap_or_else(PoisonError::into_inner);
        fates.insert(job.to_owned(), fate);
        drop(fates);
        self.decide_pods();
    }

    fn decide_pods(&self) {
        let fates = Arc::clone(&self.fates);
        self.namespace.decide_pods(move |pod| {
            let fates = fates.lock().unwrap_or_else(PoisonError::into_inner);
            fate_of(pod, &fates)
        });
    }

    /// Waits until no object of any TrainJob is left.
    pub(super) async fn until_nothing_is_left(&self) -> Result<()> {
        let mut kinds = PodGroups::ALL.map(PodGroups::resource).to_vec();
        for plural in ["resourceclaims", "resourceclaimtemplates"] {
            let kind = Resource::namespaced("/apis/resource.k8s.io/v1", plural);
            kinds.push(kind);
        }
        let name = &self.namespace.name;
        patiently(&format!("nothing is left in {name}"), async || {
            let mut left = self.namespace.everything().await?.len();
            for kind in &kinds {
                left += self.namespace.api(kind).items().await?.len();
            }
            Ok((left == 0).then_some(()))
        })
        .await
    }
}

fn fate_of(pod: &Pod, fates: &HashMap<String, Fate>) -> Fate {
    let (job, role) = (runtimes::job_set(pod), runtimes::replicated_job(pod));
    // The SSH servers of MPI's nodes do not exit.
    let serves = role == "node" && has_launcher(job);
    if role.ends_with("initializer") {
        Fate::Succeed
    } else if serves {
        Fate::Hold
    } else {
        fates.get(job).copied().unwrap_or(Fate::Hold)
    }
}
