//! Rendering a TrainJob with a given generation, and trying its objects, without writing anything, to compare two generations.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use kube::{
    Api,
    api::{DynamicObject, PostParams},
};
use serde_json::Value;
use trainyard_divergences::live::{is_secret, written};

use super::{
    Reconciler,
    cluster::{
        Basis, KeptInterests, Memory as _, Renderings as _, Result, RuntimeSource, Runtimes as _,
        TrainJobs as _,
    },
    dry_run::ForgetInterests,
    error::{ReconcileError, StoppedBy, is_over_quota},
    live_cluster::{Answers, LiveCluster, creating},
    snapshot::Snapshot,
    start::KnownJobSet,
};
use crate::{
    fair::Worker,
    generation::{Generation, Pinned},
    kubernetes::{code, kind_of},
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

    /// Returns whether the API server accepts objects, as far as a dry run of their creation tells.
    pub(crate) async fn are_accepted(
        &self,
        (key, worker): (&NamespacedName, &Worker),
        objects: &[Value],
    ) -> Acceptance {
        let accepted = async {
            for object in objects {
                match self.is_accepted(&key.namespace, object).await {
                    Acceptance::Accepted => {}
                    other => return other,
                }
            }
            Acceptance::Accepted
        };
        worker.free_while(accepted).await
    }

    async fn is_accepted(&self, namespace: &str, object: &Value) -> Acceptance {
        let object: Option<DynamicObject> = serde_json::from_value(object.clone()).ok();
        // No API server accepts one without a kind.
        let Some((object, of)) = object.and_then(|it| Some((it.clone(), it.types?))) else {
            return Acceptance::Refused;
        };
        let kind = kind_of(&of.api_version, &of.kind);
        let resource = match self.kinds.refresh(&kind).await {
            Ok(Some((resource, _))) => resource,
            Ok(None) => return Acceptance::Refused,
            Err(_) => return Acceptance::NotTold,
        };
        let objects =
            Api::<DynamicObject>::namespaced_with(self.client.clone(), namespace, &resource);
        let params = PostParams {
            dry_run: true,
            ..creating()
        };
        match objects.create(&params, &object).await {
            Ok(_) => Acceptance::Accepted,
            Err(error) => told_by(error),
        }
    }
}

/// What a dry run tells about objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acceptance {
    /// The API server accepts them.
    Accepted,
    /// It does not.
    Refused,
    /// They exceed a quota of the namespace, which its users can keep full.
    OverQuota,
    /// The API server did not answer, such as during an outage.
    NotTold,
}

/// Returns what the error of a dry run tells. An object that exists is checked before the API server says so. If a webhook does not support dry
/// runs, each is refused with 400, so nothing speaks against the object.
fn told_by(error: kube::Error) -> Acceptance {
    let says_nothing = match &error {
        kube::Error::Api(status) if status.code == 400 => lacks_dry_run(&status.message),
        error => code(error) == Some(409),
    };
    let error = ReconcileError::api("trying to create an object".to_owned(), error);
    match StoppedBy::of(&error) {
        _ if says_nothing => Acceptance::Accepted,
        StoppedBy::ApiServer => Acceptance::Refused,
        StoppedBy::Other if is_over_quota(&error) => Acceptance::OverQuota,
        StoppedBy::Other => Acceptance::NotTold,
    }
}

/// Whether a message is the API server's own about a webhook. What a webhook answers, which may be a tenant's text, begins otherwise.
fn lacks_dry_run(message: &str) -> bool {
    let name = message.strip_prefix("admission webhook \"");
    let name = name.and_then(|rest| rest.strip_suffix("\" does not support dry run"));
    name.is_some_and(|name| !name.contains('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_tells_what_the_api_server_says_about_the_object_itself() {
        const OLD: &str = "admission webhook \"a.example.com\" does not support dry run";
        const QUOTES: &str = "admission webhook \"a.example.com\" denied the request: note \"this\" does not support dry run";
        for (code, message, accepted) in [
            (400, OLD, Acceptance::Accepted),
            (400, QUOTES, Acceptance::Refused),
            (400, "spec is malformed", Acceptance::Refused),
            (422, "spec is invalid", Acceptance::Refused),
            (409, "jobsets \"a\" already exists", Acceptance::Accepted),
            (403, "exceeded quota: gpus", Acceptance::OverQuota),
            (403, "not allowed", Acceptance::Refused),
            (429, "too many requests", Acceptance::NotTold),
            (500, "failed calling webhook", Acceptance::NotTold),
            (503, "try again", Acceptance::NotTold),
        ] {
            let status = kube::core::Status::failure(message, "").with_code(code);
            let found = told_by(kube::Error::Api(status.boxed()));
            assert_eq!(found, accepted, "{message}");
        }
    }
}
