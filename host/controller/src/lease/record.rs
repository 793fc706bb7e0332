//! The Lease as a candidate reads and writes it.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::Timestamp,
};
use kube::api::PostParams;
use tokio::time::{Instant, timeout};

use super::{Candidate, wait::LeaseError};

/// The holder of the Lease.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Holder {
    Mine,
    Other(String),
    /// Nobody, and this candidate lets others go first.
    Nobody,
}

impl Candidate {
    /// Attempts once to acquire or renew the Lease.
    pub(super) async fn attempt(&mut self) -> Result<Holder, LeaseError> {
        let within = self.options.renew_deadline / 2;
        timeout(within, self.try_once())
            .await
            .map_err(|_| LeaseError::NoAnswer(within))?
    }

    async fn try_once(&mut self) -> Result<Holder, LeaseError> {
        // The version that was written last is usually current, which saves a call.
        if let Some((lease, _)) = &self.seen
            && holder(lease) == Some(&self.options.identity)
        {
            let renewed = self.mine(Some(lease));
            match self.put(&renewed).await {
                Ok(()) => return Ok(Holder::Mine),
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let Some(lease) = self.leases.get_opt(&self.options.name).await? else {
            if self.waits_for_others() {
                return Ok(Holder::Nobody);
            }
            let lease = self.mine(None);
            let lease = self.leases.create(&PostParams::default(), &lease).await?;
            self.seen = Some((lease, Instant::now()));
            return Ok(Holder::Mine);
        };
        let since = self.observe(&lease);
        if let Some(holder) = holder(&lease)
            && *holder != self.options.identity
            && since.elapsed() < self.duration(&lease)
        {
            self.free_since = None;
            return Ok(Holder::Other(holder.clone()));
        }
        if self.waits_for_others() {
            return Ok(Holder::Nobody);
        }
        let taken = self.mine(Some(&lease));
        self.put(&taken).await?;
        Ok(Holder::Mine)
    }

    pub(super) async fn put(&mut self, lease: &Lease) -> Result<(), kube::Error> {
        let parameters = PostParams::default();
        let lease = self
            .leases
            .replace(&self.options.name, &parameters, lease)
            .await?;
        self.seen = Some((lease, Instant::now()));
        Ok(())
    }

    /// Whether the Lease, which is free, is left to other candidates.
    fn waits_for_others(&mut self) -> bool {
        let since = *self.free_since.get_or_insert_with(Instant::now);
        let is_behind = self.is_behind.as_ref().is_some_and(|is_behind| is_behind());
        is_behind && since.elapsed() < self.options.lease_duration * 2
    }

    /// Returns since when the Lease is unchanged.
    fn observe(&mut self, lease: &Lease) -> Instant {
        match &self.seen {
            Some((seen, since)) if seen.spec == lease.spec => *since,
            _ => {
                let now = Instant::now();
                self.seen = Some((lease.clone(), now));
                now
            }
        }
    }

    /// Returns how long candidates have to wait.
    pub(super) fn duration(&self, lease: &Lease) -> Duration {
        lease
            .spec
            .as_ref()
            .and_then(|spec| spec.lease_duration_seconds)
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or(self.options.lease_duration, Duration::from_secs)
    }

    /// Returns the Lease with this candidate as its holder.
    fn mine(&self, old: Option<&Lease>) -> Lease {
        let now = MicroTime(Timestamp::now());
        let seconds = self.options.lease_duration.as_secs_f64().ceil();
        let mut lease = old.cloned().unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(self.options.name.clone()),
                namespace: Some(self.options.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: None,
        });
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_ref() != Some(&self.options.identity) {
            spec.holder_identity = Some(self.options.identity.clone());
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(match old {
                Some(_) => spec.lease_transitions.unwrap_or(0).saturating_add(1),
                None => 0,
            });
        }
        spec.renew_time = Some(now);
        // The cast saturates.
        spec.lease_duration_seconds = Some((seconds as i32).max(1));
        lease
    }
}

/// Returns the holder of a Lease; `None` if it was released.
pub(super) fn holder(lease: &Lease) -> Option<&String> {
    let holder = lease.spec.as_ref()?.holder_identity.as_ref()?;
    (!holder.is_empty()).then_some(holder)
}

/// Makes a Lease one that nobody holds.
pub(super) fn release(lease: &mut Lease) {
    let now = MicroTime(Timestamp::now());
    let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions);
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: Some(now.clone()),
        renew_time: Some(now),
        lease_transitions: transitions,
        ..lease.spec.take().unwrap_or_default()
    });
}
