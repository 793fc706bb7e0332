//! From a TrainJob and its snapshot to what it should own.

use std::sync::Arc;

use serde_json::Value;
use trainyard_api::TrainJob;
use trainyard_api::runtime::RuntimeKind;
use trainyard_model::deadline::Deadline;
use trainyard_model::lookup::{Asker, Lookups};
use trainyard_model::plan::{Plan, Planned};
use trainyard_render::{ClusterFacts, Problem, Rendered, Renderer};

use super::Pass;
use crate::reconcile::defaults;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::snapshot::Snapshot;
use crate::watch::{ReadRuntime, RuntimeKey, RuntimeState};

/// A TrainJob's JobSet and what stands beside it, with the snapshot that they were made of.
pub(super) struct Made {
    pub(super) rendered: Rendered,
    pub(super) snapshot: Snapshot,
    /// Whether the snapshot has to take the place of the one in the cluster.
    pub(super) renewed: bool,
}

impl Pass<'_> {
    /// What a TrainJob without a JobSet becomes; its snapshot is in the cluster then.
    pub(super) async fn made(&self) -> Result<Made, ReconcileError> {
        if self.has_run {
            match self.read_snapshot().await? {
                Some(snapshot) => return self.remade(self.to_recreate(snapshot).await?).await,
                None => self.has_not_ended(None)?,
            }
        }
        let error = match self.made_now().await {
            Ok(mut made) => match self.post_snapshot(&mut made.snapshot).await {
                Ok(()) => return Ok(made),
                Err(error @ ReconcileError::Conflict { .. }) => error,
                Err(error) => return Err(error),
            },
            // It came when its runtime was another one, or was there.
            Err(error) if error.is_of_input() => error,
            Err(error) => return Err(error),
        };
        match self.read_snapshot().await? {
            Some(snapshot) => self.remade(self.to_recreate(snapshot).await?).await,
            None => Err(error),
        }
    }

    /// A TrainJob that comes now, or whose snapshot is gone.
    async fn made_now(&self) -> Result<Made, ReconcileError> {
        let snapshot = self.fresh_snapshot().await?;
        self.render(if self.has_run {
            snapshot.of_a_started_job()
        } else {
            snapshot
        })
        .await
    }

    /// The snapshot of a suspended JobSet that may have run, made again of the runtime as it is now.
    pub(super) async fn snapshot_again(&self) -> Result<Snapshot, ReconcileError> {
        let snapshot = self.fresh_snapshot().await?;
        let mut made = self.render(snapshot.of_a_started_job()).await?;
        self.post_snapshot(&mut made.snapshot).await?;
        Ok(made.snapshot)
    }

    /// The same from the snapshot that is already there.
    async fn remade(&self, snapshot: Snapshot) -> Result<Made, ReconcileError> {
        let mut made = self.render(snapshot).await?;
        if made.renewed {
            self.replace_snapshot(&mut made.snapshot).await?;
        }
        Ok(made)
    }

    /// A snapshot of the runtime as it is now.
    pub(super) async fn fresh_snapshot(&self) -> Result<Snapshot, ReconcileError> {
        let reference = &self.job.runtime_ref;
        let stores = &self.reconciler.stores;
        let (runtimes, namespace) = match reference.kind {
            RuntimeKind::Cluster => (&stores.cluster_runtimes, None),
            RuntimeKind::Namespaced => (&stores.runtimes, Some(self.key.namespace.clone())),
        };
        let runtime = RuntimeKey {
            namespace,
            name: reference.name.as_str().into(),
        };
        if let Some(Ok(read)) = self.read_runtime(runtimes.get(&runtime)).await? {
            return Ok(Snapshot::of(read));
        }
        // Noted before it is looked at again, so that one which comes in between is not missed.
        self.reconciler.interests.waits_for(self.key, &runtime);
        let (kind, name) = (reference.kind.to_string(), reference.name.clone());
        match self.read_runtime(runtimes.get(&runtime)).await? {
            Some(Ok(read)) => Ok(Snapshot::of(read)),
            None => Err(ReconcileError::NoRuntime { kind, name }),
            Some(Err(problem)) => Err(ReconcileError::Runtime {
                kind,
                name,
                problem,
            }),
        }
    }

    /// A runtime, which is read once for all TrainJobs.
    async fn read_runtime(
        &self,
        runtime: Option<Arc<RuntimeState>>,
    ) -> Result<Option<Result<ReadRuntime, String>>, ReconcileError> {
        let Some(runtime) = runtime else {
            return Ok(None);
        };
        let read = match runtime.known() {
            Some(known) => known,
            None => self.on_thread(move |_, _| runtime.read()).await?,
        };
        Ok(Some(read))
    }

    /// Renders the TrainJob on the snapshot's runtime.
    ///
    /// Of a started TrainJob plan and lookups are pinned, and another result is an error; a plan that nobody knows, of a snapshot
    /// that the reference made, pins nothing. For any other TrainJob all is asked for anew.
    pub(super) async fn render(&self, snapshot: Snapshot) -> Result<Made, ReconcileError> {
        let pinned = snapshot.plan.clone().filter(|_| snapshot.started);
        if let Some(plan) = &pinned {
            self.still_loaded(plan)?;
        }
        let mut lookups = if snapshot.started {
            snapshot.lookups.clone()
        } else {
            Arc::new(Lookups::default())
        };
        self.make_room(values(&snapshot.runtime.template.spec))
            .await;
        loop {
            let rendering = Rendering {
                job: self.job.clone(),
                namespace: self.key.namespace.clone(),
                snapshot: snapshot.clone(),
                pinned: pinned.clone(),
                lookups: lookups.clone(),
                write_defaults: self.reconciler.write_defaults,
            };
            let made = self.on_thread(move |renderer, deadline| rendering.run(renderer, deadline));
            match made.await? {
                // What a started TrainJob's plugins looked up is known: another lookup would lead to another plan. Of what is too
                // large for a snapshot only a digest is: it is looked up again, and has to be what it was.
                Err(ReconcileError::Render(refused))
                    if pinned.is_none()
                        || asks_for_digests(&refused.problems, &snapshot.lookups) =>
                {
                    self.look_up(refused.problems, &mut lookups).await?;
                }
                made => return made,
            }
        }
    }

    /// Fails if a plugin of the plan is not loaded as it was, or under other settings: no other is called for a started
    /// TrainJob.
    fn still_loaded(&self, plan: &Plan) -> Result<(), ReconcileError> {
        let renderer = &self.reconciler.plugins.renderer;
        let generation = renderer.generation();
        let loaded = |planned: &Planned| {
            let plugin = generation.plugin(&planned.name)?;
            Some(Planned::of(plugin, &planned.config))
        };
        let now = Plan::new(
            plan.plugins.iter().filter_map(loaded).collect(),
            &renderer.facts().facts,
        );
        if plan.is_kept_by(&now) {
            Ok(())
        } else {
            Err(ReconcileError::pinned(plan, &now))
        }
    }

    fn asker(&self) -> Asker<'_> {
        Asker {
            name: &self.key.name,
            uid: self.job.metadata.uid.as_deref(),
        }
    }

    /// Looks up what plugins ask for. Where they ask for nothing, the problems are the TrainJob's.
    async fn look_up(
        &self,
        problems: Vec<Problem>,
        lookups: &mut Arc<Lookups>,
    ) -> Result<(), ReconcileError> {
        let asked: Vec<_> = problems
            .iter()
            .filter_map(Problem::missing)
            .cloned()
            .collect();
        if asked.is_empty() {
            return Err(ReconcileError::render(&self.job, problems));
        }
        for key in asked {
            let reconciler = self.reconciler;
            reconciler.interests.asks(self.key, &key);
            let fetcher = &reconciler.lookups;
            let fetched = fetcher.fetch(&self.key.namespace, self.asker(), &key);
            let fetched = self.worker.lend_if_slow(fetched).await?;
            reconciler.interests.found(self.key, &key, fetched.seen);
            let Some(answer) = fetched.answer else {
                let mut problems = problems.into_iter();
                let problem = problems.find(|problem| problem.missing() == Some(&key));
                return Err(problem.map_or(ReconcileError::Abandoned, |problem| {
                    ReconcileError::NoObject(Box::new(problem))
                }));
            };
            Arc::make_mut(lookups).insert(key, answer);
        }
        Ok(())
    }
}

/// One rendering, with all that it needs.
struct Rendering {
    job: Arc<TrainJob>,
    namespace: Arc<str>,
    snapshot: Snapshot,
    /// The plan that must be its own.
    pinned: Option<Plan>,
    lookups: Arc<Lookups>,
    write_defaults: bool,
}

impl Rendering {
    fn run(self, renderer: &Renderer, deadline: &Deadline) -> Result<Made, ReconcileError> {
        let Self {
            mut snapshot,
            pinned,
            lookups,
            ..
        } = self;
        let runtime = snapshot.runtime.clone();
        let mut rendered = renderer
            .render_within(&self.job, &runtime, &self.namespace, &lookups, deadline)
            .map_err(|problems| ReconcileError::render(&self.job, problems))?;
        let plan = rendered.whole_plan();
        let facts = ClusterFacts {
            facts: rendered.read_facts(),
            ..renderer.facts().clone()
        };
        let read = rendered.read_lookups();
        // What is pinned was read by the very same calls, so that there is nothing to renew.
        let lookups = match pinned {
            Some(_) if snapshot.lookups.has_digests_of(&read) => snapshot.lookups.clone(),
            _ => Arc::new(read),
        };
        let same = snapshot.renew(plan.clone(), lookups, &facts);
        if let (Some(pinned), false) = (&pinned, same) {
            return Err(ReconcileError::pinned(pinned, &plan));
        }
        let same = match &pinned {
            Some(_) => same,
            None => {
                let placed = snapshot.place(&rendered);
                snapshot.list(&rendered.objects) && placed && same
            }
        };
        let renewed = !same && !snapshot.started;
        if self.write_defaults {
            defaults::fill(&mut rendered.job_set);
        }
        Ok(Made {
            rendered,
            snapshot,
            renewed,
        })
    }
}

/// How many values there are in JSON, lists and objects among them.
fn values(json: &Value) -> usize {
    let below = match json {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        _ => 0,
    };
    below + 1
}

/// Whether plugins ask for nothing but what a snapshot holds digests of.
fn asks_for_digests(problems: &[Problem], lookups: &Lookups) -> bool {
    let is_known = |problem: &Problem| problem.missing().is_some_and(|key| lookups.is_digest(key));
    problems.iter().all(is_known)
}
