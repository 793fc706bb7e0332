//! The annotation that shows why a TrainJob cannot be reconciled.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::{Flow, ReconcileOutcome, Report, because};
use crate::reconcile::{
    cluster::Cluster,
    error::{AnnotationTiming, ErrorSummary, ReconcileError},
    last_reconcile::AnnotationWrite,
};

/// The shortest time between two texts of the annotation, and between two removals.
const BETWEEN_TEXTS: Duration = Duration::from_secs(60);

/// How long the annotation is left as it is after a write of the same text was refused.
const AFTER_REFUSAL: Duration = Duration::from_secs(600);

impl<C: Cluster> Flow<'_, C> {
    /// Changes nothing but the annotation about this error.
    pub(crate) async fn refuse(mut self, error: ReconcileError) -> ReconcileOutcome {
        self.annotate(Some(&error)).await;
        ReconcileOutcome {
            requeue_after: None,
            reports: self.reports,
            error: Some(error),
        }
    }

    /// Writes or removes the annotation about the error. If the annotation has to be removed later, returns after how long; a TrainJob that
    /// fails is retried anyway. A failed write does not fail the reconcile.
    pub(super) async fn annotate(&mut self, error: Option<&ReconcileError>) -> Option<Duration> {
        let summary = error.map(ErrorSummary::of);
        let is_shown = match summary.as_ref().map(|summary| summary.annotated) {
            None | Some(AnnotationTiming::AtOnce) => true,
            Some(AnnotationTiming::OncePersistent) => self.start.persists,
            Some(AnnotationTiming::Never) => false,
        };
        let text = summary.map(|summary| summary.text);
        let job = &self.start.job;
        if job.deleting || !is_shown || text.as_deref() == job.error.as_deref() {
            return None;
        }
        let is_removed = text.is_none();
        let last = self.start.annotated.as_ref();
        if let Some(wait) = last.and_then(|last| pause(last, text.as_deref(), self.start.now)) {
            return is_removed.then_some(wait);
        }
        because("the annotation about the last error is outdated");
        // The error of the reconcile is its result, not that of the annotation.
        let failed = self.cluster.write_error(text).await.err()?;
        let wait = match failed.is_rejection() {
            true => AFTER_REFUSAL,
            false => BETWEEN_TEXTS,
        };
        self.reports.push(Report::NotAnnotated(failed));
        is_removed.then_some(wait)
    }
}

/// Returns how long the annotation is left as it is after a write of it; `None` if this text may be written now.
///
/// Without the pause, two writers with different texts, or an error whose text differs at each retry, would cause a write for each retry.
fn pause(last: &AnnotationWrite, error: Option<&str>, now: Timestamp) -> Option<Duration> {
    let pause = if last.refused && last.text.as_deref() == error {
        AFTER_REFUSAL
    } else if last.text.is_some() == error.is_some() {
        BETWEEN_TEXTS
    } else {
        // It is written as soon as the TrainJob fails, and removed as soon as it is reconciled.
        return None;
    };
    // A clock that was set back ends the pause.
    let since = Duration::try_from(now.duration_since(last.at)).ok()?;
    pause.checked_sub(since).filter(|rest| !rest.is_zero())
}
