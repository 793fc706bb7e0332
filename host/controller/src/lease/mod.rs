//! Leader election: of several controllers, only the holder of the Lease reconciles.
//!
//! Every write of the Lease is a PUT with its resourceVersion, so that one of two candidates wins. The record is that of client-go, and the
//! Lease is the reference's, so that the two controllers do not run side by side. Correctness does not depend on it: what two
//! controllers at once do to a TrainJob is repaired (docs/decisions/reconcile.md).
//!
//! `record` makes the calls that read and write the Lease, and `wait` says why a candidate waits.

mod record;
mod wait;

use std::{fmt, sync::Arc, time::Duration};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use record::{Holder, holder, release};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

pub use wait::identity;
use wait::{ForeignHolder, Wait, WaitLog};

use crate::{metrics::Metrics, serve::Readiness};

/// The part of readiness for the Lease. A candidate that stands by is ready as soon as the API server has answered it once.
const PART: &str = "Lease";

/// The reference's Lease.
pub const LEASE_NAME: &str = "trainer.kubeflow.org";

/// The Lease, the candidate and the timing of leader election.
#[derive(Debug, Clone)]
pub struct LeaseOptions {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// The candidate's [`identity`].
    pub identity: String,
    /// How long other candidates wait after the last renewal. Whole seconds.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it gives up; less than the lease duration.
    pub renew_deadline: Duration,
    /// How long a candidate waits between two attempts; less than the renew deadline.
    pub retry_period: Duration,
}

/// A candidate for the Lease.
pub struct Candidate {
    leases: Api<Lease>,
    options: LeaseOptions,
    metrics: Arc<Metrics>,
    readiness: Arc<Readiness>,
    /// The Lease as last observed, and when this state was first observed. Clocks of other machines are not trusted.
    seen: Option<(Lease, Instant)>,
    /// Whether another candidate should lead rather than this one, if one can.
    is_behind: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Since when this candidate sees that nobody holds the Lease.
    free_since: Option<Instant>,
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A held Lease, which is renewed in the background. If it is dropped without [`Leadership::release`], it expires.
#[derive(Debug)]
pub struct Leadership {
    lost: CancellationToken,
    stop: CancellationToken,
    renewal: AbortOnDropHandle<Candidate>,
}

impl Candidate {
    /// Returns a candidate. It should have its own client, so that other calls do not delay its own.
    #[must_use]
    pub fn new(
        client: Client,
        options: LeaseOptions,
        metrics: Arc<Metrics>,
        readiness: Arc<Readiness>,
    ) -> Self {
        Self {
            leases: Api::namespaced(client, &options.namespace),
            options,
            metrics,
            readiness,
            seen: None,
            is_behind: None,
            free_since: None,
        }
    }

    /// Leaves a free Lease to other candidates while `is_behind`, for at most twice the lease duration. Then this candidate takes it, because
    /// one has to lead.
    #[must_use]
    pub fn letting_others_go_first(
        self,
        is_behind: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            is_behind: Some(Box::new(is_behind)),
            ..self
        }
    }

    /// Waits until the Lease is held. Errors are logged and retried. The future can be dropped at any time.
    pub async fn acquire(mut self) -> Leadership {
        let LeaseOptions {
            name, namespace, ..
        } = self.options.clone();
        let (mut log, mut answered) = (WaitLog::default(), Instant::now());
        let mut foreign = ForeignHolder::default();
        let mut wait = Wait::unanswered();
        self.show(&wait);
        let renewed = loop {
            let started = Instant::now();
            wait = match self.attempt().await {
                Ok(Holder::Mine) => break started,
                Ok(Holder::Other(holder)) => {
                    answered = Instant::now();
                    let stale = self.stale(&holder);
                    stale.unwrap_or_else(|| foreign.wait(&holder))
                }
                Ok(Holder::Nobody) => {
                    answered = Instant::now();
                    Wait::normal("nobody holds it, and candidates that have loaded all plugins of the cluster go first".to_owned())
                }
                Err(error) => wait.after(&error, answered.elapsed(), self.options.lease_duration),
            };
            if log.is_due(&wait) {
                if wait.is_problem {
                    tracing::warn!(
                        name,
                        namespace,
                        reason = wait.reason,
                        "the Lease cannot be taken, so this process reconciles no TrainJobs; retrying"
                    );
                } else {
                    tracing::info!(
                        name,
                        namespace,
                        reason = wait.reason,
                        "waiting for the Lease"
                    );
                }
            }
            self.show(&wait);
            sleep(self.pause()).await;
        };
        self.show(&Wait::normal(String::new()));
        tracing::info!(
            name,
            namespace,
            identity = self.options.identity,
            "became the leader"
        );
        self.metrics.set_leader(true);
        // It holds the Lease from now on, whatever becomes of its plugins.
        self.is_behind = None;
        let (lost, stop) = (CancellationToken::new(), CancellationToken::new());
        let renewal = tokio::spawn(self.renew(renewed, lost.clone(), stop.clone()));
        Leadership {
            lost,
            stop,
            renewal: AbortOnDropHandle::new(renewal),
        }
    }

    /// Returns the wait for a holder that does not renew the Lease; `None` if it does.
    fn stale(&self, holder: &str) -> Option<Wait> {
        let (lease, since) = self.seen.as_ref()?;
        let is_stale = since.elapsed() >= self.options.lease_duration * 2;
        is_stale.then(|| {
            Wait::unready(format!(
                "it is held by {holder}, which does not renew it; it expires {:?} after the last renewal, unless you delete it",
                self.duration(lease)
            ))
        })
    }

    /// Shows in the metrics and the readiness whether the wait is a problem.
    fn show(&self, wait: &Wait) {
        self.metrics.set_lease_unavailable(wait.is_problem);
        if wait.is_ready {
            self.readiness.set(PART, true);
        } else {
            self.readiness.note_missing(PART, wait.reason.clone());
        }
    }

    /// Renews the Lease until it is stopped, or the Lease is lost.
    async fn renew(
        mut self,
        mut renewed: Instant,
        lost: CancellationToken,
        stop: CancellationToken,
    ) -> Self {
        // A panic in this task loses the Lease too.
        let _lost = lost.drop_guard();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(self.options.retry_period) => {}
            }
            let started = Instant::now();
            let deadline = renewed + self.options.renew_deadline;
            let problem = match tokio::time::timeout_at(deadline, self.attempt()).await {
                Ok(Ok(Holder::Mine)) => {
                    renewed = started;
                    continue;
                }
                Ok(Ok(Holder::Other(holder))) => {
                    tracing::error!(holder, "the Lease is lost to another candidate");
                    break;
                }
                Ok(Ok(Holder::Nobody)) => "nobody holds it".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            if Instant::now() >= deadline {
                tracing::error!(
                    problem,
                    "the Lease is lost, because it could not be renewed in time"
                );
                break;
            }
            tracing::warn!(problem, "the Lease could not be renewed; retrying");
        }
        self.metrics.set_leader(false);
        self
    }

    /// Releases the Lease, so that another candidate does not have to wait until it expires.
    async fn release(mut self) {
        let Some((mut lease, _)) = self.seen.take() else {
            return;
        };
        if holder(&lease) != Some(&self.options.identity) {
            return;
        }
        release(&mut lease);
        match timeout(self.options.renew_deadline / 2, self.put(&lease)).await {
            Ok(Ok(())) => tracing::info!("the Lease is released"),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the Lease could not be released; it expires")
            }
            Err(_) => tracing::warn!("the Lease could not be released in time; it expires"),
        }
    }

    /// Returns the pause between two attempts, with up to 20 % jitter.
    fn pause(&self) -> Duration {
        self.options
            .retry_period
            .mul_f64(1.0 + fastrand::f64() / 5.0)
    }
}

impl Leadership {
    /// Returns when the Lease is lost. Everything that requires leadership has to stop at once.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Releases the Lease if it is still held. Call it after the last write as the leader.
    pub async fn release(self) {
        self.stop.cancel();
        if let Ok(candidate) = self.renewal.await {
            candidate.release().await;
        }
    }
}
