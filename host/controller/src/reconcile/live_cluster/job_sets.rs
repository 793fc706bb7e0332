//! The JobSet.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use kube::{
    Api, Resource as _,
    api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions},
    core::response::{Status, reason},
};
use serde_json::{Value, json};
use trainyard_api::names;
use trainyard_model::plan::Plan;

use super::{
    LiveCluster, MANAGER, creating, merging, placements::PlacementChanges,
    rendering::RenderedJobSet,
};
use crate::{
    kubernetes::unless_gone,
    log_shares::AllowedLine,
    reconcile::{
        cluster::{Apply, JobSets, Result, TrainJobs as _},
        creation_delay::creation_delay,
        error::{ReconcileError, SnapshotError},
        facts::{Owner, SuspendedFacts, WithFacts},
        job_set::{self, SuspendedJobSet},
        object_version::ObjectVersion,
        owner,
    },
    watch::{JobSetObject, answer, objects},
};

impl JobSets for LiveCluster<'_> {
    async fn job_set_owner(&mut self) -> Result<Owner> {
        let name = &self.key.name;
        let found: Option<JobSetObject> = self.read(name).await?;
        Ok(match found {
            Some(found) if !owner::is_of(&self.job.uid, found.meta()) => {
                Owner::Foreign(owner::foreign(name, names::JOB_SET, name, found.meta()))
            }
            _ => Owner::OursOrGone,
        })
    }

    async fn suspended_job_set(
        &mut self,
        uid: &str,
    ) -> Result<WithFacts<SuspendedFacts, Arc<SuspendedJobSet>>> {
        let name = &self.key.name;
        let request = objects::<JobSetObject>(&self.key.namespace);
        let request = request.get(name, &GetParams::default());
        let text = unless_gone(self.text(request).await);
        let text =
            text.map_err(|error| ReconcileError::api(format!("reading JobSet `{name}`"), error))?;
        let uid: Box<str> = uid.into();
        let found = self.on_thread(move |_, _| match text {
            Some(text) => SuspendedJobSet::read(&text, &uid),
            None => Ok(None),
        });
        let found = found.await?.map_err(|why| ReconcileError::Unreadable {
            kind: names::JOB_SET,
            name: name.to_string(),
            why: why.to_string(),
        })?;
        let found = found.ok_or_else(|| ReconcileError::changed_job_set(name))?;
        Ok(WithFacts {
            facts: found.facts(),
            value: Arc::new(found),
        })
    }

    /// The store is updated with the answer.
    async fn confirm_absence(&mut self) -> Result<()> {
        self.confirm_train_job().await?;
        let name = &self.key.name;
        let request = objects::<JobSetObject>(&self.key.namespace);
        let request = request.get(name, &GetParams::default());
        let found = unless_gone(answer::<JobSetObject>(&self.reconciler.client, request).await);
        let found = found
            .map_err(|error| ReconcileError::api(format!("reading JobSet `{name}`"), error))?;
        let Some(found) = found else {
            return Ok(());
        };
        if let Some((key, read)) = found {
            self.reconciler.stores.job_sets.put_read(key, read);
        }
        Err(ReconcileError::changed_job_set(name))
    }

    async fn apply_job_set(
        &mut self,
        rendering: &RenderedJobSet,
        how: Apply<'_, PlacementChanges>,
    ) -> Result<()> {
        let mut job_set = to_apply(rendering, how)?;
        // Only then is it counted which TrainJobs use a plugin.
        let revision = self.pinned.generation().revision();
        if let (Some(revision), Some(plan)) = (revision, &rendering.snapshot.plan) {
            job_set::note_plugins(&mut job_set, plan, revision);
        }
        let params = PatchParams::apply(MANAGER);
        let Some(over) = how.over else {
            let created = self.patch(&Patch::Apply(&job_set), &params).await?;
            let delay = created.and_then(|created| creation_delay(&self.job, created));
            if let Some(delay) = delay.filter(|_| !how.recreated) {
                self.reconciler.metrics.job_set_created(delay);
            }
            let plan = rendering.snapshot.plan.as_ref();
            let plugins = plan.map(Plan::in_words).unwrap_or_default();
            let (namespace, name) = (&*self.key.namespace, &*self.key.name);
            if let Some(AllowedLine { left_out }) = self.reconciler.log.allow(namespace) {
                tracing::info!(namespace, name, plugins, left_out, "JobSet created");
            }
            return Ok(());
        };
        if let Some(metadata) = job_set.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("uid".to_owned(), json!(over.uid));
            metadata.insert("resourceVersion".to_owned(), json!(over.version));
        }
        // Only over the version that was read.
        let applied = self.patch(&Patch::Apply(&job_set), &params.force()).await;
        applied.map(drop)
    }

    async fn check_creatable(
        &mut self,
        rendering: &RenderedJobSet,
        how: Apply<'_, PlacementChanges>,
    ) -> Result<()> {
        let failed = |error| {
            let name = &self.key.name;
            let what = format!("recreating JobSet `{name}`, because immutable fields changed");
            ReconcileError::api(what, error)
        };
        let recreated = false;
        let job_set = to_apply(rendering, Apply { recreated, ..how })?;
        let object = serde_json::to_vec(&job_set);
        let object = object.map_err(|error| failed(kube::Error::SerdeError(error)))?;
        let params = PostParams {
            dry_run: true,
            ..creating()
        };
        let job_sets = objects::<JobSetObject>(&self.key.namespace);
        match self.text(job_sets.create(&params, object)).await {
            Ok(_) => Ok(()),
            // The API server checks for an existing object last, after admission.
            Err(kube::Error::Api(status)) if status.reason == reason::ALREADY_EXISTS => Ok(()),
            // The new JobSet takes the quota of the deleted one.
            Err(kube::Error::Api(status)) if is_over_quota(&status) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    async fn suspend(&mut self, uid: &str) -> Result<()> {
        self.merge(job_set::suspension(uid)).await
    }

    async fn relocate(&mut self, at: &ObjectVersion, placement: &PlacementChanges) -> Result<()> {
        let PlacementChanges { jobs, removed, .. } = placement;
        self.merge(job_set::relocation(at, jobs.clone(), removed))
            .await
    }

    async fn resume(
        &mut self,
        at: &ObjectVersion,
        placement: &PlacementChanges,
        rendering: Option<&RenderedJobSet>,
    ) -> Result<()> {
        let written = rendering.filter(|rendering| rendering.snapshot_written);
        let digests = written.and_then(|rendering| rendering.snapshot.stored.as_ref());
        self.merge(job_set::resumption(at, placement.jobs.clone(), digests))
            .await
    }

    async fn delete_job_set(&mut self, at: &ObjectVersion) -> Result<()> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: at.uid.as_deref().map(Into::into),
                resource_version: at.version.as_deref().map(Into::into),
            }),
            ..DeleteParams::background()
        };
        let name = &self.key.name;
        let api: Api<JobSetObject> = self.api();
        let deleted = unless_gone(api.delete(name, &params).await);
        let failed = |error| ReconcileError::api(format!("deleting JobSet `{name}`"), error);
        deleted.map(drop).map_err(failed)
    }
}

impl LiveCluster<'_> {
    async fn merge(&self, patch: Value) -> Result<()> {
        let merged = self.patch(&Patch::Merge(&patch), &merging()).await;
        merged.map(drop)
    }

    /// Patches the JobSet and updates the store. Returns when the JobSet was created, if the answer can be decoded.
    async fn patch(
        &self,
        patch: &Patch<&Value>,
        params: &PatchParams,
    ) -> Result<Option<Timestamp>> {
        let (name, store) = (&self.key.name, &self.reconciler.stores.job_sets);
        let job_sets = objects::<JobSetObject>(&self.key.namespace);
        let request = job_sets.patch(name, params, patch);
        let bytes = request.as_ref().map_or(0, |request| request.body().len());
        let written = answer::<JobSetObject>(&self.reconciler.client, request).await;
        let written =
            written.map_err(|error| ReconcileError::writing_job_set(name, bytes, error))?;
        let Some((key, read)) = written else {
            return Ok(None);
        };
        let created = read.as_ref().ok().and_then(|job_set| job_set.created);
        store.put_read(key, read);
        Ok(created)
    }
}

/// Returns the rendered JobSet as it is applied ([`job_set::to_apply`]).
fn to_apply(rendering: &RenderedJobSet, how: Apply<'_, PlacementChanges>) -> Result<Value> {
    let removed = how.held.map(|changes| &changes.removed);
    let RenderedJobSet {
        job,
        job_set,
        inputs,
        snapshot,
        ..
    } = rendering;
    // An answer without data is not what was written.
    let digests = snapshot.stored.as_ref();
    let digests = digests.ok_or_else(|| SnapshotError::changed(&job.metadata.name))?;
    let (inputs, recreated) = (inputs, how.recreated);
    Ok(job_set::to_apply(
        job_set, inputs, digests, job, removed, recreated,
    ))
}

/// Whether a ResourceQuota is exceeded.
fn is_over_quota(status: &Status) -> bool {
    status.reason == reason::FORBIDDEN && status.message.contains("exceeded quota")
}
