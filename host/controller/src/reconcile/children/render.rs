//! From a TrainJob and its snapshot to what it should own.

use std::sync::Arc;

use trainyard_api::runtime::RuntimeKind;
use trainyard_model::lookup::Lookups;
use trainyard_render::{Problem, Rendered};

use super::Pass;
use crate::reconcile::defaults;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::snapshot::{Plan, Snapshot};
use crate::watch::RuntimeKey;

/// A TrainJob's JobSet and what stands beside it, with the snapshot that they were made of.
pub(super) struct Made {
    pub(super) rendered: Rendered,
    pub(super) snapshot: Snapshot,
}

impl Pass<'_> {
    /// A TrainJob that comes now.
    pub(super) async fn made_now(&self) -> Result<Made, ReconcileError> {
        let (made, _) = self.render(self.fresh_snapshot()?).await?;
        Ok(made)
    }

    /// The same from the snapshot that is already there; the error where there is none.
    pub(super) async fn remade(&self, error: ReconcileError) -> Result<Made, ReconcileError> {
        let Some(snapshot) = self.read_snapshot().await? else {
            return Err(error);
        };
        let before = snapshot.plan.clone();
        let started = snapshot.started;
        let (made, same) = self.render(snapshot).await?;
        if same {
            return Ok(made);
        }
        if started {
            return Err(pinned(before.as_ref(), made.snapshot.plan.as_ref()));
        }
        self.replace_snapshot(&made.snapshot).await?;
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
        let found = runtimes.get(&runtime);
        let (kind, name) = (reference.kind.to_string(), reference.name.clone());
        let error = match found.map(|runtime| runtime.snapshot()) {
            Some(Ok(snapshot)) => return Ok(snapshot),
            None => ReconcileError::NoRuntime { kind, name },
            Some(Err(problem)) => ReconcileError::Runtime {
                kind,
                name,
                problem,
            },
        };
        let mut waiting = self.reconciler.waiting();
        waiting.entry(runtime).or_default().insert(self.key.clone());
        Err(error)
    }

    /// Renders the TrainJob on the snapshot's runtime. Says whether it went the way that the snapshot holds.
    ///
    /// What a started TrainJob's plugins looked up is pinned; for any other it is asked for anew.
    pub(super) async fn render(
        &self,
        mut snapshot: Snapshot,
    ) -> Result<(Made, bool), ReconcileError> {
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
                None => return Err(ReconcileError::Abandoned),
                Some(Ok(rendered)) => break rendered,
                Some(Err(problems)) => self.look_up(problems, &mut lookups).await?,
            }
        };
        let facts = plugins.renderer.facts();
        let same = snapshot.renew(Plan::of(&rendered), lookups, facts);
        if self.reconciler.write_defaults {
            defaults::fill(&mut rendered.job_set);
        }
        Ok((Made { rendered, snapshot }, same))
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
            let plugins = &self.reconciler.plugins;
            let is_missing = problems
                .iter()
                .any(|problem| matches!(problem, Problem::NotLoaded { .. }));
            let refused = if is_missing {
                plugins.refused.to_vec()
            } else {
                Vec::new()
            };
            return Err(ReconcileError::Render { problems, refused });
        }
        for key in asked {
            let fetched = self
                .reconciler
                .lookups
                .fetch(&self.key.namespace, &key)
                .await?;
            let Some(answer) = fetched else {
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

fn pinned(before: Option<&Plan>, now: Option<&Plan>) -> ReconcileError {
    let text = |plan: Option<&Plan>| match plan {
        Some(plan) if plan.plugins.is_empty() => "none".to_owned(),
        Some(plan) => {
            let plugins = plan.plugins.iter();
            let names = plugins
                .map(|plugin| format!("{} {} ({})", plugin.name, plugin.version, plugin.digest));
            names.collect::<Vec<_>>().join(", ")
        }
        None => "an unknown plan".to_owned(),
    };
    ReconcileError::PlanIsPinned {
        pinned: text(before),
        loaded: text(now),
    }
}
