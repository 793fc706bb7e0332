//! Deletes a Job, which JobSet recreates from its template.

use kube::api::{DeleteParams, Preconditions};

use crate::{
    kubernetes::{kind_of, unless_gone},
    reconcile::{context::Context, error::ReconcileError, observed::Effect},
};

/// Deletes the Job of that name and UID.
pub(super) async fn delete(
    cx: &Context<'_>,
    name: &str,
    uid: Option<&str>,
) -> Result<Effect, ReconcileError> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: uid.map(Into::into),
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    let jobs = cx.dynamic(&kind_of("batch/v1", "Job"));
    let deleted = unless_gone(jobs.delete(name, &params).await);
    let failed = |error| ReconcileError::api(format!("deleting Job `{name}`"), error);
    deleted.map(|_| Effect::Done).map_err(failed)
}
