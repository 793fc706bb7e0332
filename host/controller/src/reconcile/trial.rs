//! Rendering a TrainJob with a given generation, without writing anything, to compare two generations.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use trainyard_divergences::live::{is_secret, written};

use super::{
    Reconciler,
    cluster::{
        Basis, KeptInterests, Memory as _, Renderings as _, Result, RuntimeSource, Runtimes as _,
        TrainJobs as _,
    },
    dry_run::ForgetInterests,
    live_cluster::LiveCluster,
    start::KnownJobSet,
    status,
};
use crate::{
    fair::Worker,
    generation::{Generation, Pinned},
    queue::NamespacedName,
    watch::TrainJobState,
};

impl Reconciler {
    /// Returns the objects that a TrainJob that has not started has with the plugins of a generation, from its current runtime. Secrets are
    /// left out.
    pub(crate) async fn try_render(
        &self,
        key: &NamespacedName,
        worker: &Worker,
        job: Arc<TrainJobState>,
        generation: &Arc<Generation>,
    ) -> Result<Vec<Value>> {
        let known = KnownJobSet::of(self, key, &job.uid);
        let _forgotten = ForgetInterests(&self.interests, key);
        let pinned = Pinned::only(generation.clone());
        let mut cluster =
            LiveCluster::new(self, (key, worker), pinned, job, &known, Timestamp::now());
        let rendered = async {
            let job = cluster.train_job().await?;
            let basis = Basis {
                source: RuntimeSource::Runtime,
                snapshot: cluster.runtime(&job).await?,
                started: false,
            };
            cluster.render(&job, &basis, None).await
        };
        let rendered = rendered.await;
        cluster.settle(KeptInterests::None);
        let rendered = rendered?;
        let others = rendered.facts.objects.iter();
        let others = others.map(|object| &object.rendered.value);
        let is_shown = |object: &&Value| {
            let text = |field: &str| {
                object
                    .get(field)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            !is_secret(text("apiVersion"), text("kind"))
        };
        let all = others.chain([rendered.value.job_set()]);
        Ok(all.filter(is_shown).map(written).collect())
    }

    /// Whether this controller reconciles a TrainJob that has not ended.
    pub(crate) fn is_active(&self, job: &TrainJobState) -> bool {
        job.desired.managed_by_us && !job.deleting && status::end(&job.status).is_none()
    }
}
