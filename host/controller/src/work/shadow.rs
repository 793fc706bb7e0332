//! What a worker does with a TrainJob in the shadow mode.

use std::{panic::AssertUnwindSafe, time::Instant};

use futures_util::FutureExt as _;
use tracing::Instrument as _;

use super::Work;
use crate::{
    metrics::Outcome,
    queue::Running,
    shadow::{Shadow, ShadowedJob},
    spans,
};

impl Work {
    /// Compares a TrainJob with what the reference made of it, and keeps the result. Nothing is written, not even an Event.
    pub(super) async fn compare(&self, shadow: &Shadow, running: Running) {
        let key = running.key().clone();
        let (namespace, job) = (&*key.namespace, &*key.name);
        let span = tracing::trace_span!("compare", namespace, job);
        let started = Instant::now();
        let compared = self.reconciler.compare(&key, running.worker());
        let compared = AssertUnwindSafe(compared).catch_unwind();
        let outcome = match compared.instrument(span.clone()).await {
            Ok(Ok(job)) => {
                shadow.set(&key, job);
                running.succeed();
                Outcome::Success
            }
            Ok(Err(error)) => {
                // It is retried. Until then, the page says why it could not be compared.
                shadow.set(&key, Some(ShadowedJob::not_compared(&error.to_string())));
                let retry_after = match error.is_outage() {
                    true => running.fail_in_outage(),
                    false => running.fail(),
                };
                tracing::debug!(%error, ?retry_after, "a TrainJob could not be compared; retrying");
                Outcome::Error(error.kind())
            }
            Err(_) => {
                running.fail();
                shadow.set(
                    &key,
                    Some(ShadowedJob::not_compared(
                        "comparing it panicked; this is a bug in Trainyard",
                    )),
                );
                tracing::error!(
                    namespace,
                    job,
                    "a comparison panicked; this is a bug in Trainyard"
                );
                Outcome::Error("panic")
            }
        };
        let failed = matches!(outcome, Outcome::Error(_));
        spans::end(&span, ("outcome", outcome.name()), failed);
        self.metrics.reconciled(outcome, started.elapsed());
    }
}
