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
    snapshot::Snapshot,
    start::KnownJobSet,
};
use crate::{
    fair::Worker,
    generation::{Generation, Pinned},
    queue::NamespacedName,
    watch::TrainJobState,
};

impl Reconciler {
    /// Returns the objects that a TrainJob that has not started has with the plugins of each of two generations, from its current runtime,
    /// which is read once: a difference is that of the plugins, even if somebody changes the runtime meanwhile. Secrets are left out.
    pub(crate) async fn try_render(
        &self,
        (key, worker): (&NamespacedName, &Worker),
        job: &Arc<TrainJobState>,
        [first, second]: [&Arc<Generation>; 2],
    ) -> [Result<Vec<Value>>; 2] {
        let mut runtime = None;
        let first = self.try_one((key, worker), job.clone(), first, &mut runtime);
        let first = first.await;
        let second = self.try_one((key, worker), job.clone(), second, &mut runtime);
        [first, second.await]
    }

    /// Renders with one generation. `runtime` is what was read of the runtime.
    async fn try_one(
        &self,
        (key, worker): (&NamespacedName, &Worker),
        job: Arc<TrainJobState>,
        generation: &Arc<Generation>,
        runtime: &mut Option<Snapshot>,
    ) -> Result<Vec<Value>> {
        let known = KnownJobSet::of(self, key, &job.uid);
        let _forgotten = ForgetInterests(&self.interests, key);
        let pinned = Pinned::only(generation.clone());
        let mut cluster =
            LiveCluster::new(self, (key, worker), pinned, job, &known, Timestamp::now());
        let rendered = async {
            let job = cluster.train_job().await?;
            let snapshot = match runtime {
                Some(known) => known.clone(),
                None => runtime.insert(cluster.runtime(&job).await?).clone(),
            };
            let basis = Basis {
                source: RuntimeSource::Runtime,
                snapshot,
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
}
