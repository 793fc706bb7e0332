//! Updates a suspended JobSet that has never run, and resumes any other.

use std::sync::Arc;

use super::{
    Flow, Result, SuspendedJobSet, because,
    choose::{Chosen, Started},
    write::JobSetStage,
};
use crate::{
    reconcile::{
        cluster::{Apply, Basis, Cluster, WantedPlacement},
        error::ReconcileError,
        facts::RenderedFacts,
        inputs::have_same_rendering,
        last_reconcile::AppliedObject,
        object_ref::ObjectRef,
        outcome::Report,
        start::{Start, has_never_run},
    },
    watch::JobSetState,
};

impl<C: Cluster> Flow<'_, C> {
    /// Updates or resumes a suspended JobSet.
    pub(super) async fn update_or_resume(&mut self, found: &JobSetState) -> Result<()> {
        let job = &self.start.job;
        let never_run = has_never_run(found, &job.status);
        // If the TrainJob is not suspended, its JobSet is unsuspended, even if another client suspended it.
        if job.desired.suspend && self.is_up_to_date(found, never_run) {
            if self.start.last.is_none() {
                self.remember(None);
            }
            return Ok(());
        }
        because(if never_run {
            "the JobSet has never run and may be outdated"
        } else {
            "the JobSet has run and is suspended"
        });
        self.cluster.begin();
        let train_job = self.cluster.train_job().await?;
        match self.choose_for_suspended(&train_job, never_run).await? {
            Chosen::New(basis) => self.update(&train_job, found, basis).await,
            Chosen::Started(inputs) => self.resume_if_needed(&train_job, found, inputs).await,
        }
    }

    /// Whether a suspended JobSet is up to date, by the last reconcile or by its own digest. One that has run does not follow the plugins.
    fn is_up_to_date(&self, found: &JobSetState, never_run: bool) -> bool {
        if self.start.outdated || self.may_be_unfinished() {
            return false;
        }
        if let Some(last) = &self.start.last {
            let same_plugins = !never_run || last.common == self.start.common;
            return same_plugins && last.fingerprint == self.start.job.fingerprint;
        }
        // The snapshot of a recreated JobSet may not be updated yet.
        let noted = found.inputs.as_deref().filter(|_| !found.recreated);
        noted.is_some_and(|noted| self.cluster.inputs().are_all_of(noted))
    }

    /// Whether the last update may have written the snapshot or objects, and not the JobSet. After a restart, only the annotation about its error
    /// shows it.
    fn may_be_unfinished(&self) -> bool {
        let Start {
            job,
            last,
            unfinished,
            ..
        } = self.start;
        *unfinished || last.is_none() && job.error.is_some()
    }

    /// Resumes a JobSet that has run, unless it stays suspended and no object follows the TrainJob.
    async fn resume_if_needed(
        &mut self,
        train_job: &C::TrainJob,
        found: &JobSetState,
        inputs: Started<C>,
    ) -> Result<()> {
        let follows = |object: &ObjectRef| JobSetStage::Suspended.lets_change(object.apply);
        let listed = match inputs {
            Started::Nothing => Arc::default(),
            _ => self.snapshot.listed(),
        };
        if self.start.job.desired.suspend && !listed.iter().any(follows) {
            self.remember(Some(AppliedObject::unknown(&listed)));
            return Ok(());
        }
        let found = self.cluster.suspended_job_set(&found.uid).await?;
        self.resume(train_job, found, inputs).await
    }

    /// Updates a JobSet that has never run: writes the snapshot, the objects beside it and then the JobSet.
    async fn update(
        &mut self,
        train_job: &C::TrainJob,
        known: &JobSetState,
        basis: Basis<C::Snapshot>,
    ) -> Result<()> {
        let rendered = self.render(train_job, &basis).await;
        if let Ok(rendering) = &rendered
            && self.is_as_applied(known, &rendering.facts)
        {
            self.remember_unchanged(&rendering.facts);
            return Ok(());
        }
        let found = self.cluster.suspended_job_set(&known.uid).await?;
        if found.facts.started {
            return self.resume_unnoted(train_job, found, basis).await;
        }
        let mut rendering = rendered?;
        self.save(&mut rendering).await?;
        self.report_warnings(&rendering.facts);
        let objects = self
            .write_all(&rendering.facts.objects, JobSetStage::Fresh)
            .await?;
        if self.apply_over(train_job, found, &rendering.value).await? {
            self.note_applied(&rendering.facts).await?;
        }
        // The deletion of the JobSet triggers another reconcile.
        self.remember(Some(objects));
        Ok(())
    }

    /// Whether a JobSet that stays suspended was applied as it is rendered now, maybe from other inputs. Other inputs that the snapshot pins count,
    /// because the JobSet vouches for it. The store has every write of this process that was answered; if another client changes the JobSet,
    /// the watch will show it.
    fn is_as_applied(&self, known: &JobSetState, rendered: &RenderedFacts) -> bool {
        let is_vouched = rendered.saved && self.snapshot.is_vouched();
        let noted = known.inputs.as_deref();
        let is_same = noted.is_some_and(|noted| have_same_rendering(noted, &rendered.inputs));
        is_same && is_vouched && self.start.job.desired.suspend && !self.may_be_unfinished()
    }

    /// Remembers that a suspended JobSet was left unchanged. Its TrainJob may have warnings that are new.
    fn remember_unchanged(&mut self, rendered: &RenderedFacts) {
        let (last, fingerprint) = (self.start.last.as_ref(), self.start.job.fingerprint);
        if last.is_none_or(|last| last.fingerprint != fingerprint) {
            self.report_warnings(rendered);
        }
        let objects = rendered.objects.iter().map(|it| it.object.clone());
        let objects: Vec<_> = objects.collect();
        self.remember(Some(AppliedObject::unknown(&objects)));
    }

    /// Applies the JobSet over the suspended one, whose Jobs first lose entries that are not wanted. Returns whether it still exists.
    async fn apply_over(
        &mut self,
        train_job: &C::TrainJob,
        mut found: SuspendedJobSet<C>,
        rendering: &C::Rendering,
    ) -> Result<bool> {
        let wanted = WantedPlacement::Applied(rendering);
        let compared = self.cluster.placement(train_job, &found.value, wanted);
        let placement = compared.await?;
        if placement.facts.loses {
            let held = Some(&placement.value);
            if !self.apply_or_delete(&found, rendering, held).await? {
                return Ok(false);
            }
            found = self.read_suspended(&found).await?;
            if found.facts.started {
                return Err(ReconcileError::changed_job_set(&self.start.job.name));
            }
            self.delete_old_jobs(&found).await?;
        }
        self.apply_or_delete(&found, rendering, None).await
    }

    /// Applies the JobSet over the suspended one. If immutable fields would change, deletes the existing JobSet, provided that another could be
    /// created. Returns whether it still exists.
    async fn apply_or_delete(
        &mut self,
        found: &SuspendedJobSet<C>,
        rendering: &C::Rendering,
        held: Option<&C::Placement>,
    ) -> Result<bool> {
        let how = Apply {
            over: Some(&found.facts.at),
            held,
            recreated: self.snapshot.is_to_recreate(),
        };
        match self.cluster.apply_job_set(rendering, how).await {
            Ok(()) => return Ok(true),
            Err(error) if !error.is_immutable() || found.facts.active => return Err(error),
            Err(_) => because("fields changed that are immutable in a JobSet"),
        }
        self.cluster.check_creatable(rendering, how).await?;
        self.cluster.delete_job_set(&found.facts.at).await?;
        Ok(false)
    }

    /// Resumes a JobSet that another client unsuspended and suspended again. The controller did not record its start.
    async fn resume_unnoted(
        &mut self,
        train_job: &C::TrainJob,
        found: SuspendedJobSet<C>,
        basis: Basis<C::Snapshot>,
    ) -> Result<()> {
        let has_both = found.facts.inputs.is_some();
        self.mark_started().await?;
        let started = Basis {
            started: true,
            ..basis
        };
        if has_both {
            self.reports.push(Report::BothMarks);
        }
        self.resume(train_job, found, Started::Basis(started)).await
    }
}
