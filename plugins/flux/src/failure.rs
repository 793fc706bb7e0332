//! A failed run fails the TrainJob.
//!
//! The followers exit with status 0 before the first pod exits with the status of the run. If only the first pod restarted, it would wait
//! for them forever, so the instance has to restart as a whole.

use trainyard_sdk::{Context, PodSet};

use crate::Runtimes;

/// The member of the pod spec that determines whether containers are restarted.
const RESTART_POLICY: &str = "restartPolicy";

/// Makes the Job fail with its first pod, or warns if the runtime sets another `backoffLimit`.
pub(crate) fn ends_the_job(ctx: &Context, pod_set: &PodSet, runtimes: Option<&Runtimes>) {
    let Some(Runtimes { set: runtimes, .. }) = runtimes else {
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
                "is {limit}, so the first pod of a failed run restarts alone and waits for the others forever; set it to 0, so that all pods restart, as often as the JobSet's `failurePolicy.maxRestarts` allows"
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
