//! Certificates that the controller creates and rotates itself, in a Secret.
//!
//! All replicas do the same: [`cluster`] reads the Secret and the webhook configurations, [`plan`] decides what to do, [`change`] has the
//! changes of the Secret, [`issue`] creates certificates, and [`material`] is how they are stored. Everything is read again when [`watch`]
//! notices that one of the objects has changed.

mod change;
mod cluster;
mod issue;
mod material;
mod plan;
#[cfg(test)]
mod tests;
mod watch;

use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, SystemTime},
};

use change::Change;
use cluster::{ClusterError, Objects};
use governor::{DefaultDirectRateLimiter, Quota};
use issue::IssueError;
use material::{Material, bundle};
use plan::{Observed, SecretState, State};
use thiserror::Error;
use tokio::{sync::Notify, time::sleep};

use super::{CertManagement, Clock, READINESS, Served, ServedCertificate};
use crate::{metrics::Metrics, serve::Readiness};

/// The Services of the reference and of our chart. Certificates are for them, too, so that a Secret can be used by both.
const SERVICES: [&str; 2] = [
    "kubeflow-trainer-controller-manager",
    "kubeflow-trainer-webhooks",
];

/// The pause before a failed call is repeated.
const RETRY: Duration = Duration::from_secs(5);

/// The pause after another replica was faster.
const CONFLICT: Duration = Duration::from_millis(50);

/// How often webhook configurations are written, after a burst, in case another controller keeps overwriting them.
const WRITE_EVERY: Duration = Duration::from_secs(10);
const BURST: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);

/// The burst of writes of the Secret, in case the clocks of two replicas differ by months and each replaces the certificate of the other.
const SECRET_BURST: NonZeroU32 = NonZeroU32::MIN.saturating_add(99);

/// What certificates are created with.
pub(crate) struct Managed {
    pub(crate) client: kube::Client,
    pub(crate) namespace: String,
    pub(crate) settings: CertManagement,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Arc<Metrics>,
}

/// Why nothing could be done.
#[derive(Debug, Error)]
enum ManageError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("{secret}: {error}")]
    Issue { secret: String, error: IssueError },
}

/// The running management.
struct Manager<'a> {
    objects: Objects,
    clock: &'a dyn Clock,
    metrics: &'a Metrics,
    served: &'a ServedCertificate,
    readiness: &'a Readiness,
    state: State,
    /// Limit writes of webhook configurations and of the Secret.
    writes: DefaultDirectRateLimiter,
    secret_writes: DefaultDirectRateLimiter,
}

/// Creates and rotates certificates, and serves them.
pub(super) async fn follow(served: &ServedCertificate, managed: Managed, readiness: &Readiness) {
    let Managed {
        client,
        namespace,
        settings,
        clock,
        metrics,
    } = managed;
    let own = settings.webhook_service_name.as_str();
    let others = SERVICES.into_iter().filter(|service| *service != own);
    let names = std::iter::once(own).chain(others);
    let names = names.map(|service| format!("{service}.{namespace}.svc"));
    let names = names.collect();
    let quota = Quota::with_period(WRITE_EVERY).unwrap_or_else(|| Quota::per_minute(BURST));
    let quota = quota.allow_burst(BURST);
    let manager = Manager {
        objects: Objects {
            client,
            namespace,
            secret: settings.webhook_secret_name,
        },
        clock: &*clock,
        metrics: &metrics,
        served,
        readiness,
        state: State::new(names),
        writes: DefaultDirectRateLimiter::direct(quota),
        secret_writes: DefaultDirectRateLimiter::direct(quota.allow_burst(SECRET_BURST)),
    };
    let objects = manager.objects.clone();
    let changed = Notify::new();
    tokio::join!(objects.watch(&changed), manager.run(&changed));
}

impl Manager<'_> {
    async fn run(mut self, changed: &Notify) {
        let mut last_error = None;
        loop {
            let next = match self.update().await {
                Ok(next) => {
                    last_error = None;
                    next
                }
                Err(ManageError::Cluster(error)) if error.is_conflict() => {
                    sleep(CONFLICT).await;
                    None
                }
                Err(error) => {
                    let why = error.to_string();
                    if last_error.as_ref() != Some(&why) {
                        tracing::error!(%error, "certificates cannot be managed; the last valid one is used");
                    }
                    let now = self.clock.now();
                    if !self.state.is_ready(now) {
                        self.readiness.note_missing(READINESS, why.clone());
                    }
                    last_error = Some(why);
                    Some(now + RETRY)
                }
            };
            let Some(next) = next else { continue };
            tokio::select! {
                () = changed.notified() => {}
                () = self.clock.sleep_until(next) => {}
            }
        }
    }

    /// Does what is to do now. Returns when to look again; `None` for at once.
    async fn update(&mut self) -> Result<Option<SystemTime>, ManageError> {
        let secret = self.objects.secret().await?;
        let configurations = self.objects.configurations().await?;
        let observed = Observed {
            secret: secret.state.clone(),
            configurations: configurations.iter().map(|it| it.trusted.clone()).collect(),
        };
        let now = self.clock.now();
        let plan = self.state.plan(&observed, now);
        if let Some(material) = &plan.serve {
            self.serve(material);
        }
        match plan.not_ready {
            None => self.readiness.set(READINESS, true),
            Some(why) => self.readiness.note_missing(READINESS, why),
        }
        if let Some(change) = &plan.change {
            self.log(&observed.secret, change);
            let material = change.apply(self.state.names(), now);
            let material = material.map_err(|error| ManageError::Issue {
                secret: self.objects.secret_name(),
                error,
            })?;
            self.secret_writes.until_ready().await;
            self.objects.write(&secret, &material).await?;
            self.metrics.certificate_changed(change.name());
            return Ok(None);
        }
        let mut is_done = true;
        for (configuration, bundle) in configurations.iter().zip(&plan.bundles) {
            if let Some(bundle) = bundle {
                self.writes.until_ready().await;
                self.objects.inject(configuration, bundle).await?;
                self.metrics.certificate_changed("inject");
                tracing::info!(
                    configuration = configuration.name(),
                    "the authorities of certificates are written into a webhook configuration"
                );
                is_done = false;
            }
        }
        Ok(is_done.then_some(plan.next))
    }

    fn serve(&self, material: &Material) {
        let Some(leaf) = &material.leaf else { return };
        match leaf.key.certified(leaf.chain.clone()) {
            Ok(certificate) => {
                self.served.set(Served {
                    certificate: Arc::new(certificate),
                    authority: Some(bundle(material.authorities()).into()),
                });
                self.metrics.set_certificate_expiration(leaf.not_after);
                tracing::info!(
                    secret = self.objects.secret_name(),
                    "a certificate is loaded"
                );
            }
            // It was checked when it was read.
            Err(problem) => tracing::error!(problem, "a certificate cannot be served"),
        }
    }

    fn log(&self, secret: &SecretState, change: &Change) {
        let name = self.objects.secret_name();
        let change = change.name();
        match secret {
            SecretState::Invalid { error, .. } => {
                self.metrics.certificate_changed("replace-invalid");
                tracing::error!(
                    secret = name,
                    %error,
                    change,
                    "the Secret with the certificate is invalid and is replaced"
                );
            }
            _ => tracing::info!(
                secret = name,
                change,
                "the Secret with the certificate is written"
            ),
        }
    }
}
