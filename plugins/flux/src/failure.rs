//! When the run fails, the TrainJob does.
//!
//! The followers end in order, with status 0, before the first pod has the status of a run that failed. A first pod that started
//! again by itself would wait for them without end: an instance starts again as a whole, or not at all.

use trainyard_sdk::{Context, PodSet};

/// The member of the pod spec that says whether its containers start again.
const RESTART_POLICY: &str = "restartPolicy";

/// Has the Job fail with its first pod, unless the runtime says otherwise; then a warning tells what follows from it.
pub(crate) fn ends_the_job(ctx: &Context, pod_set: &PodSet) {
    let Some(runtimes) = ctx.base().pod_set(&pod_set.name()) else {
        return;
    };
    match runtimes.backoff_limit() {
        None => {
            ctx.because("a pod that restarts alone would wait for the others forever");
            pod_set.set_backoff_limit(0);
        }
        Some(0) => {}
        Some(limit) => {
            let message = format!(
                "is {limit}: if the run fails, its first pod restarts alone and waits for the others forever; set it to 0, and let the JobSet restart all pods with `failurePolicy.maxRestarts`"
            );
            ctx.warn(&message, Some(&pod_set.job_path("backoffLimit")));
        }
    }
    if runtimes.raw(RESTART_POLICY).is_none() {
        ctx.because(
            "the exit status of the run becomes the pod's, and a restart of the container would lose it",
        );
        pod_set.set_raw(RESTART_POLICY, r#""Never""#);
    }
}
