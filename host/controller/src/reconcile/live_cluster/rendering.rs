//! The rendering of a TrainJob from its snapshot or from its current runtime.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use serde_json::Value;
use trainyard_api::TrainJob;
use trainyard_model::{deadline::Deadline, lookup::Lookups, object::ApplyMode, plan::Plan};
use trainyard_render::{
    ClusterFacts, Needs, Problem, Rendered, RenderedObject, Renderer, Stopped, plan_of,
};

use super::{LiveCluster, train_jobs::AdmittedTrainJob};
use crate::{
    generation::Generation,
    reconcile::{
        cluster::{Basis, Renderings, Result, RuntimeSource},
        defaults,
        error::ReconcileError,
        facts::{ObjectToWrite, RenderedFacts, WithFacts},
        inputs::Inputs,
        object_ref::ObjectRef,
        snapshot::Snapshot,
        vouch::Digests,
    },
};

/// A rendered JobSet with its snapshot.
pub(in crate::reconcile) struct RenderedJobSet {
    pub(super) job: Arc<TrainJob>,
    pub(super) job_set: Arc<Value>,
    /// The digest of the inputs, for a suspended JobSet.
    pub(super) inputs: Box<str>,
    pub(super) snapshot: Snapshot,
    /// Whether the snapshot was written in this reconcile.
    pub(super) snapshot_written: bool,
}

impl RenderedJobSet {
    /// Returns the JobSet.
    pub(in crate::reconcile) fn job_set(&self) -> &Value {
        &self.job_set
    }
}

impl Renderings for LiveCluster<'_> {
    /// Plan and lookups of a started TrainJob are pinned, and a rendering with others is an error, unless another generation that is held keeps
    /// them. A snapshot of the reference has no plan and pins nothing. The lookups of all other TrainJobs are repeated.
    async fn render(
        &mut self,
        job: &AdmittedTrainJob,
        basis: &Basis<Snapshot>,
        existing: Option<&Snapshot>,
    ) -> Result<WithFacts<RenderedFacts, RenderedJobSet>> {
        let pinned = basis.snapshot.plan.as_ref().filter(|_| basis.started);
        let Some(plan) = pinned else {
            let generation = self.pinned.generation().clone();
            return self.render_with(&generation, job, basis, existing).await;
        };
        let mut refused = None;
        for generation in self.pinned.keeping(plan) {
            match self.render_with(&generation, job, basis, existing).await {
                // A further plugin, or another fact, would change the plan of this TrainJob, or refuses it.
                Err(error) if error.is_of_rendering() => _ = refused.get_or_insert(error),
                rendered => {
                    self.pinned.switch_to(&generation);
                    return rendered;
                }
            }
        }
        let now = self.pinned.generation().counterpart(plan);
        Err(refused.unwrap_or_else(|| ReconcileError::pinned(plan, &now)))
    }
}

impl LiveCluster<'_> {
    /// Renders the TrainJob with the plugins of a generation.
    async fn render_with(
        &mut self,
        generation: &Arc<Generation>,
        job: &AdmittedTrainJob,
        basis: &Basis<Snapshot>,
        existing: Option<&Snapshot>,
    ) -> Result<WithFacts<RenderedFacts, RenderedJobSet>> {
        let Basis {
            source, started, ..
        } = *basis;
        let mut snapshot = basis.snapshot.clone();
        snapshot.started = started;
        let pinned = snapshot.plan.as_ref().filter(|_| started);
        let mut lookups = if started {
            snapshot.lookups.clone()
        } else {
            Arc::new(Lookups::default())
        };
        self.reserve_memory(values(&snapshot.runtime.template.spec))
            .await;
        loop {
            let task = RenderTask {
                job: job.job.clone(),
                inputs: job.inputs.clone(),
                namespace: self.key.namespace.clone(),
                snapshot: snapshot.clone(),
                pinned: pinned.cloned(),
                lookups: lookups.clone(),
                write_defaults: self.reconciler.generations.write_defaults(),
                source,
                stored: existing.and_then(|it| it.stored.clone()),
            };
            let render = move |renderer: &_, deadline: &_| task.render(renderer, deadline);
            let task = self.on_thread_with(generation, render);
            match task.await?? {
                RenderOutcome::Rendered(rendered) => return Ok(rendered),
                RenderOutcome::Needs(needs) => {
                    let reach = &generation.reach;
                    self.look_up(&job.job, reach, needs.lookups, &mut lookups)
                        .await?;
                }
            }
        }
    }
}

/// The result of a rendering that is not an error.
#[expect(
    clippy::large_enum_variant,
    reason = "only one value exists at a time, and it is destructured immediately"
)]
enum RenderOutcome {
    Rendered(WithFacts<RenderedFacts, RenderedJobSet>),
    /// Plugins need lookups.
    Needs(Needs),
}

/// A rendering with its inputs.
struct RenderTask {
    job: Arc<TrainJob>,
    inputs: Inputs,
    namespace: Arc<str>,
    snapshot: Snapshot,
    /// The pinned plan.
    pinned: Option<Plan>,
    lookups: Arc<Lookups>,
    write_defaults: bool,
    source: RuntimeSource,
    /// The digests of the snapshot in the cluster, if it was read.
    stored: Option<Digests>,
}

impl RenderTask {
    fn render(self, renderer: &Renderer, deadline: &Deadline) -> Result<RenderOutcome> {
        let runtime = &self.snapshot.runtime;
        if let Some(pinned) = &self.pinned {
            self.check_plan(renderer, pinned)?;
        }
        let rendered =
            renderer.render(&self.job, runtime, &self.namespace, &self.lookups, deadline);
        match rendered {
            Ok(rendered) => self
                .with_facts(renderer, rendered)
                .map(RenderOutcome::Rendered),
            Err(Stopped::Needs(needs)) if self.may_look_up(&needs) => {
                Ok(RenderOutcome::Needs(needs))
            }
            Err(stopped) => {
                let runtime = runtime.clone();
                Err(ReconcileError::render(self.job, runtime, stopped))
            }
        }
    }

    /// Fails if other plugins, or in another order, would be called than those of the pinned plan.
    fn check_plan(&self, renderer: &Renderer, pinned: &Plan) -> Result<()> {
        let runtime = &self.snapshot.runtime;
        // The problems of a plan are found again, with all others.
        let Ok(planned) = renderer.plan(&self.job, runtime, &self.namespace) else {
            return Ok(());
        };
        let now = plan_of(&planned.active, &renderer.facts().facts);
        match pinned.is_kept_by(&now) {
            true => Ok(()),
            false => Err(ReconcileError::pinned(pinned, &now)),
        }
    }

    /// Returns the rendered JobSet as it is applied, with its snapshot and facts.
    fn with_facts(
        mut self,
        renderer: &Renderer,
        mut rendered: Rendered,
    ) -> Result<WithFacts<RenderedFacts, RenderedJobSet>> {
        let is_same = self.renew_snapshot(renderer, &rendered)?;
        let saved = self.find_saved(is_same);
        defaults::fill_claims(&mut rendered.job_set);
        if self.write_defaults {
            defaults::fill(&mut rendered.job_set);
        }
        let ttl = rendered.job_set.pointer("/spec/ttlSecondsAfterFinished");
        let runtime = &self.snapshot.runtime;
        let warnings = rendered.warnings.iter();
        let warnings = warnings.map(|warning| warning.for_event(&self.job, runtime));
        // A JobSet that is to run, or of a TrainJob that has started, has no digest of its inputs: it follows no plugins.
        let inputs = if self.job.suspend && !self.snapshot.started {
            let (job_set, objects) = (&rendered.job_set, &rendered.objects);
            self.inputs
                .annotation(&self.snapshot.lookups, job_set, objects)
        } else {
            String::new()
        };
        let facts = RenderedFacts {
            saved,
            inputs: inputs.into(),
            expires: ttl.is_some_and(|seconds| !seconds.is_null()),
            warnings: warnings.collect(),
            objects: rendered.objects.into_iter().map(to_write).collect(),
        };
        let value = RenderedJobSet {
            job: self.job,
            job_set: Arc::new(rendered.job_set),
            inputs: facts.inputs.clone(),
            snapshot: self.snapshot,
            snapshot_written: false,
        };
        Ok(WithFacts { facts, value })
    }

    /// Renews the snapshot from the rendering. Returns whether it is unchanged; an error if that would change a pinned plan.
    fn renew_snapshot(&mut self, renderer: &Renderer, rendered: &Rendered) -> Result<bool> {
        let snapshot = &mut self.snapshot;
        let plan = rendered.whole_plan();
        let facts = ClusterFacts {
            facts: rendered.read_facts(),
            ..renderer.facts().clone()
        };
        let read = rendered.read_lookups();
        // Pinned lookups were read by the same calls, so they are current.
        let lookups = match self.pinned {
            Some(_) if snapshot.lookups.has_digests_of(&read) => snapshot.lookups.clone(),
            _ => Arc::new(read),
        };
        let is_same = snapshot.renew(plan.clone(), lookups, &facts);
        match &self.pinned {
            Some(_) if is_same => Ok(true),
            Some(pinned) => Err(ReconcileError::pinned(pinned, &plan)),
            None => {
                let same_placement = snapshot.set_placement(rendered);
                Ok(snapshot.set_objects(&rendered.objects) && same_placement && is_same)
            }
        }
    }

    /// Returns whether the snapshot is the one in the cluster, given whether the rendering left it unchanged.
    fn find_saved(&mut self, is_same: bool) -> bool {
        match self.source {
            RuntimeSource::Snapshot => is_same || self.snapshot.started,
            RuntimeSource::Runtime => {
                let is_equal = |stored: &Digests| *stored == Digests::of(&self.snapshot.data());
                self.snapshot.stored = self.stored.take().filter(is_equal);
                self.snapshot.stored.is_some()
            }
        }
    }

    /// Whether the lookups may be made and the TrainJob rendered again. A rendering that timed out is retried later instead. The lookups of a
    /// started TrainJob are pinned, because another lookup would lead to another plan. Of large objects, a snapshot only has the digest: they
    /// are looked up again and must have the same digest.
    fn may_look_up(&self, needs: &Needs) -> bool {
        if needs.problems.iter().any(Problem::is_transient) {
            return false;
        }
        let known = &self.snapshot.lookups;
        let mut lookups = needs.lookups.iter();
        self.pinned.is_none()
            || needs.problems.is_empty() && lookups.all(|lookup| known.is_digest(&lookup.key))
    }
}

fn to_write(rendered: RenderedObject) -> ObjectToWrite {
    let is_compared = rendered.apply == ApplyMode::Live;
    ObjectToWrite {
        object: ObjectRef::of(&rendered),
        content: if is_compared {
            content(&rendered.value)
        } else {
            0
        },
        rendered,
    }
}

fn content(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}

/// Counts the values in JSON, including lists and objects.
fn values(json: &Value) -> usize {
    let below = match json {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        _ => 0,
    };
    below + 1
}
