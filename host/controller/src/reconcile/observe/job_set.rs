//! The JobSet in the API server.

use std::sync::Arc;

use kube::{
    Resource as _,
    api::{GetParams, PostParams},
    core::response::{Status, reason},
};
use trainyard_api::names;

use crate::{
    kubernetes::unless_gone,
    reconcile::{
        artifacts::Artifacts,
        context::{Context, creating},
        error::ReconcileError,
        job_set::SuspendedJobSet,
        observed::{Fact, Owner},
        owner as owners,
    },
    watch::{JobSetObject, objects},
};

/// Reads the owner of the JobSet.
pub(super) async fn owner(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
) -> Result<Fact, ReconcileError> {
    let name = &cx.key.name;
    let found: Option<JobSetObject> = cx.read(name).await?;
    let uid = &cx.job()?.uid;
    Ok(Fact::Owner(match found {
        Some(found) if !owners::is_of(uid, found.meta()) => {
            let foreign = owners::foreign(name, names::JOB_SET, name, found.meta());
            Owner::Foreign(artifacts.failure(foreign))
        }
        _ => Owner::OursOrGone,
    }))
}

/// Reads the suspended JobSet with that UID.
///
/// # Errors
/// It was deleted or unsuspended, and the store is outdated; or it cannot be decoded.
pub(super) async fn live(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
    uid: &str,
) -> Result<Fact, ReconcileError> {
    let what = || format!("JobSet `{}`", cx.key.name);
    let job_sets = objects::<JobSetObject>(&cx.key.namespace);
    let request = job_sets.get(&cx.key.name, &GetParams::default());
    let text = unless_gone(cx.text(request).await);
    let text = text.map_err(|error| ReconcileError::api(format!("reading {}", what()), error))?;
    let uid: Box<str> = uid.into();
    let live = cx.on_thread(move |_, _| match text {
        Some(text) => SuspendedJobSet::read(&text, &uid),
        None => Ok(None),
    });
    let live = live.await?.map_err(|why| ReconcileError::Unreadable {
        kind: names::JOB_SET,
        name: cx.key.name.to_string(),
        why: why.to_string(),
    })?;
    let live = live.ok_or_else(|| ReconcileError::Conflict { what: what() })?;
    let facts = live.facts();
    artifacts.large().live = Some(Arc::new(live));
    Ok(Fact::JobSet(facts))
}

/// Checks by a dry run whether a JobSet could be created in place of the existing one.
///
/// # Errors
/// It could not be created.
pub(super) async fn creatable(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
    held: bool,
) -> Result<Fact, ReconcileError> {
    let failed = |error| {
        let name = &cx.key.name;
        let what = format!("recreating JobSet `{name}`, because immutable fields changed");
        ReconcileError::api(what, error)
    };
    let job_set = artifacts.job_set_to_apply(held, false)?;
    let object = serde_json::to_vec(&job_set);
    let object = object.map_err(|error| failed(kube::Error::SerdeError(error)))?;
    let params = PostParams {
        dry_run: true,
        ..creating()
    };
    let job_sets = objects::<JobSetObject>(&cx.key.namespace);
    match cx.text(job_sets.create(&params, object)).await {
        Ok(_) => Ok(Fact::Holds),
        // The API server checks for an existing object last, after admission.
        Err(kube::Error::Api(status)) if status.reason == reason::ALREADY_EXISTS => Ok(Fact::Holds),
        // The new JobSet takes the quota of the deleted one.
        Err(kube::Error::Api(status)) if is_over_quota(&status) => Ok(Fact::Holds),
        Err(error) => Err(failed(error)),
    }
}

/// Whether a ResourceQuota is exceeded.
fn is_over_quota(status: &Status) -> bool {
    status.reason == reason::FORBIDDEN && status.message.contains("exceeded quota")
}
