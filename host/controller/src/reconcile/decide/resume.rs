//! Unsuspends a JobSet that has run, with the current placement of its pods. While it stays suspended, it does not change. The objects
//! beside it are updated as their modes allow.

use trainyard_model::object::ApplyMode;

use super::{
    Decided, Pending, Report, Reports,
    objects::{self, JobSetStage},
    placement,
    remember::remember,
    snapshot,
};
use crate::reconcile::{
    last_reconcile::AppliedObject,
    object_ref::ObjectRef,
    observed::{JobFacts, LiveJobSet, Observed},
    step::{Basis, PlacementSource},
};

/// Resumes the JobSet, if the TrainJob is not to be suspended.
pub(super) fn resume(
    o: &Observed,
    job: &JobFacts,
    live: &LiveJobSet,
    basis: Option<Basis>,
) -> Decided<Reports> {
    let mut reports = Reports::new();
    let Some(basis) = basis else {
        // It is not known which entries of the placement are from an earlier admission.
        if !job.desired.suspend {
            reports.extend(placement::unsuspend(o, live, PlacementSource::Live)?);
        }
        remember(o, job, Some(AppliedObject::unknown(&[])))?;
        return Ok(reports);
    };
    let rendered = match snapshot::rendering(o, basis)? {
        Ok(rendered) => Some(rendered),
        // Its plugins are missing or have changed; the snapshot notes their placement.
        Err(failure) if failure.is_of_input() || failure.is_of_plugins() => {
            reports.push(Report::Failure(failure));
            None
        }
        Err(failure) => return Err(Pending::Failed(failure)),
    };
    let listed = snapshot::listed(o);
    let objects = match rendered {
        None => AppliedObject::unknown(listed),
        Some(rendered) => {
            // The placement puts pods into a gang or takes them out of it, also in a JobSet of the reference, so its counts must follow.
            let is_gang = |object: &ObjectRef| {
                object.apply == ApplyMode::WhileSuspended && snapshot::is_of_reference(o)
            };
            let objects = rendered.objects.iter();
            let objects = objects.filter(|it| listed.contains(&it.object) || is_gang(&it.object));
            objects::write_all(o, objects, JobSetStage::Suspended)?
        }
    };
    if !job.desired.suspend {
        // Without a rendering, only the snapshot distinguishes the placement by plugins from that of an earlier admission.
        let wanted = match rendered {
            Some(_) => PlacementSource::Rendered,
            None => PlacementSource::Noted,
        };
        reports.extend(placement::unsuspend(o, live, wanted)?);
    }
    remember(o, job, Some(objects))?;
    Ok(reports)
}
