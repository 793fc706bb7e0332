//! Comparing a TrainJob with what the reference made of it, without writing anything: what the shadow mode does instead of a reconcile.

use k8s_openapi::jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::Value;
use trainyard_api::names;
use trainyard_divergences::{
    difference::{Answer, Refusal},
    listing::used,
    live::{is_secret, listed, written},
    seen::Subject,
};
use trainyard_model::deadline::Deadline;
use trainyard_render::Renderer;

use super::{
    Reconciler,
    cluster::{
        Basis, KeptInterests, Memory as _, Renderings as _, Result, RuntimeSource, Runtimes as _,
        Snapshots as _, TrainJobs as _,
    },
    error::ReconcileError,
    facts::{RenderedFacts, WithFacts},
    live_cluster::{LiveCluster, rendering::RenderedJobSet, train_jobs::AdmittedTrainJob},
    snapshot::Snapshot,
    start::KnownJobSet,
};
use crate::{fair::Worker, kubernetes::unless_gone, queue::NamespacedName, shadow::ShadowedJob};

impl Reconciler {
    /// Compares a TrainJob; `None` if it is gone, or another controller manages it.
    ///
    /// # Errors
    /// It could not be compared. A retry may succeed.
    pub(crate) async fn compare(
        &self,
        key: &NamespacedName,
        worker: &Worker,
    ) -> Result<Option<ShadowedJob>> {
        let Some(job) = self.managed(key)? else {
            return Ok(None);
        };
        let known = KnownJobSet::of(self, key, &job.uid);
        let object = job.object().unwrap_or_default();
        let mut run = Run {
            cluster: LiveCluster::new(
                self,
                (key, worker),
                self.pin(&key.namespace),
                job,
                &known,
                Timestamp::now(),
            ),
            key,
            object,
            has_job_set: known.ours().is_some(),
        };
        run.cluster.begin();
        let compared = run.compare().await;
        run.cluster.settle(KeptInterests::OfThisReconcile);
        compared.map(Some)
    }
}

/// One comparison.
struct Run<'a> {
    cluster: LiveCluster<'a>,
    key: &'a NamespacedName,
    /// The TrainJob as it is stored.
    object: Value,
    /// Whether the TrainJob has a JobSet.
    has_job_set: bool,
}

impl Run<'_> {
    async fn compare(&mut self) -> Result<ShadowedJob> {
        let job = match self.cluster.train_job().await {
            Ok(job) => job,
            Err(error) => return self.refused(error, &Value::Null),
        };
        let snapshot = match self.cluster.snapshot(&job).await {
            Ok(found) => found,
            Err(error) if error.is_of_snapshot() || error.is_foreign() => None,
            Err(error) => return Err(error),
        };
        if snapshot
            .as_ref()
            .is_some_and(|snapshot| snapshot.facts.has_plan)
        {
            return Ok(ShadowedJob::not_compared("Trainyard rendered its JobSet"));
        }
        let basis = match snapshot {
            Some(WithFacts { value, .. }) => Ok((RuntimeSource::Snapshot, value)),
            None => self
                .cluster
                .runtime(&job)
                .await
                .map(|runtime| (RuntimeSource::Runtime, runtime)),
        };
        let (source, snapshot) = match basis {
            Ok(basis) => basis,
            Err(error) => return self.refused(error, &Value::Null),
        };
        let runtime = snapshot.runtime_object().clone();
        match self.render(&job, source, snapshot).await {
            Ok(rendered) => self.differences(rendered, &runtime).await,
            Err(error) => self.refused(error, &runtime),
        }
    }

    async fn render(
        &mut self,
        job: &AdmittedTrainJob,
        source: RuntimeSource,
        snapshot: Snapshot,
    ) -> Result<WithFacts<RenderedFacts, RenderedJobSet>> {
        let basis = Basis {
            source,
            snapshot,
            started: false,
        };
        self.cluster.render(job, &basis, None).await
    }

    /// Returns what is refused, with the rows. Errors that may pass, or that are about other objects, are returned as they are.
    fn refused(&self, error: ReconcileError, runtime: &Value) -> Result<ShadowedJob> {
        let is_refusal = matches!(
            error,
            ReconcileError::TrainJob(_)
                | ReconcileError::Runtime { .. }
                | ReconcileError::Render(_)
        );
        if !is_refusal {
            return Err(error);
        }
        let answer = Answer {
            refused: error
                .sentences()
                .iter()
                .map(|text| self.refusal(text))
                .collect(),
            ..Answer::default()
        };
        let found = listed(self.subject(runtime), &answer, &Answer::default());
        Ok(ShadowedJob::of_differences(found))
    }

    /// Returns the refusal of a sentence, which begins with a runtime if it is about it, and with a field.
    fn refusal(&self, sentence: &str) -> Refusal {
        let of_runtime = sentence.split_once(": ");
        let of_runtime = of_runtime.filter(|(object, _)| object.contains("TrainingRuntime "));
        let (object, sentence) = match of_runtime {
            Some((object, rest)) => (object.to_owned(), rest),
            None => {
                let NamespacedName { namespace, name } = self.key;
                (format!("{} {namespace}/{name}", names::TRAIN_JOB), sentence)
            }
        };
        let field = sentence.split_once(": ");
        let (field, error) = field
            .filter(|(field, _)| !field.contains(' '))
            .unwrap_or(("", sentence));
        Refusal {
            object,
            by: String::new(),
            field: field.to_owned(),
            error: error.to_owned(),
        }
    }

    fn subject<'s>(&'s self, runtime: &'s Value) -> Subject<'s> {
        Subject {
            job: &self.object,
            runtime,
            documents: &[],
            accelerators: self.cluster.accelerators(),
        }
    }

    async fn differences(
        &mut self,
        rendered: WithFacts<RenderedFacts, RenderedJobSet>,
        runtime: &Value,
    ) -> Result<ShadowedJob> {
        if !self.has_job_set {
            return Ok(ShadowedJob::of_uses(used(self.subject(runtime))));
        }
        let WithFacts { facts, value } = rendered;
        let others = facts.objects.iter().map(|object| &object.rendered.value);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for object in others.chain([value.job_set()]) {
            if is_secret(text(object, "/apiVersion"), text(object, "/kind")) {
                continue;
            }
            theirs.extend(self.live(object).await?);
            ours.push(written(object));
        }
        let answer = |objects| Answer {
            objects,
            ..Answer::default()
        };
        let (ours, theirs) = (answer(ours), answer(theirs));
        let (job, runtime) = (self.object.clone(), runtime.clone());
        // The objects can have many fields.
        let compare = move |renderer: &Renderer, _: &Deadline| {
            let subject = Subject {
                job: &job,
                runtime: &runtime,
                documents: &[],
                accelerators: &renderer.facts().accelerators,
            };
            listed(subject, &ours, &theirs)
        };
        let found = self.cluster.on_thread(compare).await?;
        Ok(ShadowedJob::of_differences(found))
    }

    /// Reads the object of the cluster with the name of a rendered one; `None` if there is none.
    async fn live(&self, rendered: &Value) -> Result<Option<Value>> {
        let [api_version, kind, name] =
            ["/apiVersion", "/kind", "/metadata/name"].map(|field| text(rendered, field));
        let failed = |error| ReconcileError::api(format!("reading {kind} `{name}`"), error);
        let found: Result<DynamicObject, _> =
            self.cluster.of_kind(api_version, kind).get(name).await;
        let found = unless_gone(found).map_err(failed)?;
        let value = found.map(serde_json::to_value).transpose();
        let mut value = value.map_err(|error| failed(kube::Error::SerdeError(error)))?;
        let object = value.as_mut().and_then(Value::as_object_mut);
        if let Some(object) = object {
            object.insert("apiVersion".to_owned(), api_version.into());
            object.insert("kind".to_owned(), kind.into());
        }
        Ok(value.as_ref().map(written))
    }
}

fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object
        .pointer(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
