//! From a TrainJob and its snapshot to what it should own.

use std::sync::Arc;

use trainyard_api::runtime::RuntimeKind;
use trainyard_model::lookup::{Asker, Lookups};
use trainyard_render::{Problem, Rendered};

use super::Pass;
use crate::plugins::NotRendered;
use crate::reconcile::defaults;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::plan::{Plan, Planned};
use crate::reconcile::snapshot::Snapshot;
use crate::watch::RuntimeKey;

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
        let snapshot = self.fresh_snapshot()?;
        self.render(if self.has_run {
            snapshot.of_a_started_job()
        } else {
            snapshot
        })
        .await
    }

    /// The snapshot of a JobSet that is there, and may have run, made again of the runtime as it is now.
    pub(super) async fn snapshot_again(&self) -> Result<Snapshot, ReconcileError> {
        let snapshot = self.fresh_snapshot()?.of_a_started_job();
        let mut made = self.render(snapshot).await?;
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
    pub(super) fn fresh_snapshot(&self) -> Result<Snapshot, ReconcileError> {
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
        let snapshot = || runtimes.get(&runtime).map(|runtime| runtime.snapshot());
        if let Some(Ok(snapshot)) = snapshot() {
            return Ok(snapshot);
        }
        // Noted before it is looked at again, so that one which comes in between is not missed.
        self.reconciler.interests.waits_for(self.key, &runtime);
        let (kind, name) = (reference.kind.to_string(), reference.name.clone());
        match snapshot() {
            Some(Ok(snapshot)) => Ok(snapshot),
            None => Err(ReconcileError::NoRuntime { kind, name }),
            Some(Err(problem)) => Err(ReconcileError::Runtime {
                kind,
                name,
                problem,
            }),
        }
    }

    /// Renders the TrainJob on the snapshot's runtime.
    ///
    /// Of a started TrainJob plan and lookups are pinned, and another result is an error; a plan that nobody knows, of a snapshot
    /// that the reference made, pins nothing. For any other TrainJob all is asked for anew.
    pub(super) async fn render(&self, mut snapshot: Snapshot) -> Result<Made, ReconcileError> {
        let pinned = snapshot.plan.clone().filter(|_| snapshot.started);
        if let Some(plan) = &pinned {
            self.still_loaded(plan)?;
        }
        let mut lookups = if snapshot.started {
            snapshot.lookups.clone()
        } else {
            Arc::new(Lookups::default())
        };
        let plugins = &self.reconciler.plugins;
        let mut rendered = loop {
            let namespace = self.key.namespace.clone();
            let runtime = snapshot.runtime.clone();
            let rendered = plugins.render(self.job.clone(), runtime, namespace, lookups.clone());
            match rendered.await {
                Ok(rendered) => break rendered,
                // What a started TrainJob's plugins looked up is known: another lookup would lead to another plan.
                Err(NotRendered::Problems(problems)) if pinned.is_some() => {
                    return Err(ReconcileError::Render(problems));
                }
                Err(NotRendered::Problems(problems)) => {
                    self.look_up(problems, &mut lookups).await?;
                }
                Err(NotRendered::Panicked(words)) => return Err(ReconcileError::Panicked(words)),
                Err(NotRendered::Abandoned) => return Err(ReconcileError::Abandoned),
            }
        };
        let plan = Plan::of(&rendered);
        let same = snapshot.renew(plan.clone(), lookups, plugins.renderer.facts());
        if let (Some(pinned), false) = (&pinned, same) {
            return Err(pinned.pinned_against(&plan));
        }
        let same = match &pinned {
            Some(_) => same,
            None => {
                let placed = snapshot.place(&rendered);
                snapshot.list(&rendered.objects) && placed && same
            }
        };
        let renewed = !same && !snapshot.started;
        if self.reconciler.write_defaults {
            defaults::fill(&mut rendered.job_set);
        }
        Ok(Made {
            rendered,
            snapshot,
            renewed,
        })
    }

    /// Fails if a plugin of the plan is not loaded as it was, or under other settings: no other is called for a started
    /// TrainJob.
    fn still_loaded(&self, plan: &Plan) -> Result<(), ReconcileError> {
        let generation = self.reconciler.plugins.renderer.generation();
        let loaded = |planned: &Planned| {
            let plugin = generation.plugin(&planned.name)?;
            Some(Planned::of(plugin, &planned.config))
        };
        let now = Plan::new(plan.plugins.iter().filter_map(loaded).collect());
        if plan.is_kept_by(&now) {
            Ok(())
        } else {
            Err(plan.pinned_against(&now))
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
            return Err(ReconcileError::Render(problems));
        }
        for key in asked {
            let reconciler = self.reconciler;
            reconciler.interests.asks(self.key, &key);
            let fetched = reconciler
                .lookups
                .fetch(&self.key.namespace, self.asker(), &key)
                .await?;
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
