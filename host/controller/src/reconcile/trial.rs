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
    live_cluster::{Answers, LiveCluster},
    snapshot::Snapshot,
    start::KnownJobSet,
};
use crate::{
    fair::Worker,
    generation::{Generation, Pinned},
    queue::NamespacedName,
    watch::TrainJobState,
};

/// What two renderings of a TrainJob have read.
#[derive(Default)]
struct Read {
    runtime: Option<Snapshot>,
    answers: Answers,
}

impl Reconciler {
    /// Returns the objects that a TrainJob that has not started has with the plugins of each of two generations, from its current runtime.
    /// The runtime and the objects that plugins look up are read once: a difference is that of the plugins, even if somebody changes them
    /// meanwhile. Secrets are left out.
    pub(crate) async fn try_render(
        &self,
        (key, worker): (&NamespacedName, &Worker),
        job: &Arc<TrainJobState>,
        [first, second]: [&Arc<Generation>; 2],
    ) -> [Result<Vec<Value>>; 2] {
        let mut read = Read::default();
        let first = self.try_one((key, worker), job.clone(), first, &mut read);
        let first = first.await;
        let second = self.try_one((key, worker), job.clone(), second, &mut read);
        [first, second.await]
    }

    /// Renders with one generation, from what was read before, as far as that is enough.
    async fn try_one(
        &self,
        (key, worker): (&NamespacedName, &Worker),
        job: Arc<TrainJobState>,
        generation: &Arc<Generation>,
        read: &mut Read,
    ) -> Result<Vec<Value>> {
        let known = KnownJobSet::of(self, key, &job.uid);
        let _forgotten = ForgetInterests(&self.interests, key);
        let pinned = Pinned::only(generation.clone());
        let mut cluster =
            LiveCluster::new(self, (key, worker), pinned, job, &known, Timestamp::now());
        cluster.answers = Some(std::mem::take(&mut read.answers));
        let rendered = async {
            let job = cluster.train_job().await?;
            let snapshot = match &read.runtime {
                Some(known) => known.clone(),
                None => read.runtime.insert(cluster.runtime(&job).await?).clone(),
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
        read.answers = cluster.answers.take().unwrap_or_default();
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
