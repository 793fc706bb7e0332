//! Whether the Jobs and pods of a running JobSet were created. JobSet and Kubernetes' Job controller report failures only in Events, and retry.

use std::{
    pin::pin,
    sync::{Arc, Mutex, Once, PoisonError},
    time::Duration,
};

use k8s_openapi::jiff::{Timestamp, ToSpan as _};
use kube::{
    Resource as _,
    api::{ListParams, ObjectMeta},
};
use serde::Deserialize;
use tokio::time::timeout;
use trainyard_api::names;
use trainyard_model::text::clean_to;

use super::LiveCluster;
use crate::{
    fair::Permit,
    kubernetes::kind_of,
    reconcile::{
        cluster::{Diagnosis, Result},
        error::ReconcileError,
        object_ref::ObjectRef,
        owner, status,
    },
    watch::JobSetObject,
    wire::{self, without_managed_fields},
};

/// How far the clock of a controller that writes Events may be ahead. In minutes.
const SKEW: i64 = 1;

/// The most characters of an Event's message in an error.
const LONGEST: usize = 600;

/// The reasons of Events about objects that JobSet or the Job controller could not create.
const FAILURES: [&str; 4] = [
    "FailedCreate",
    "HeadlessServiceCreationFailed",
    "JobCreationFailed",
    "PVCCreationFailed",
];

/// How long after an Event the Job controller has certainly retried. An older Event may be about a failure that has ended. In minutes.
const RETRIED_AFTER: i64 = 20;

/// Whether it was logged that the role has no permission to list Events. It is the same for all TrainJobs.
static LOGGED: Once = Once::new();

/// How often it is checked whether the TrainJob has changed while its reconcile waits for its turn.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// How long after the start of a JobSet its Jobs should exist, in minutes.
const CREATED_AFTER: i64 = 1;

const ADVICE: &str = "this is retried until the cause is removed; if the cause is in the TrainJob or its runtime, correct it and recreate the TrainJob";

impl Diagnosis for LiveCluster<'_> {
    async fn check_creation(&mut self) -> Result<()> {
        self.worker.free_while(self.look_for_failure()).await
    }

    async fn waiting_object(&mut self, objects: &[ObjectRef]) -> Result<Option<ReconcileError>> {
        for object in objects {
            if let Some(why) = self.waits_for(object).await? {
                return Ok(Some(ReconcileError::Waits {
                    kind: object.kind.to_string(),
                    name: object.name.to_string(),
                    why,
                }));
            }
        }
        Ok(None)
    }
}

impl LiveCluster<'_> {
    /// Looks for Jobs that the JobSet lacks, or else for pods that a Job lacks.
    async fn look_for_failure(&self) -> Result<()> {
        let job_set = self.reconciler.stores.job_sets.get(self.key);
        let started = status::started(self.job.created, &self.job.status);
        let (Some(job_set), Some(started)) = (job_set, started) else {
            return Ok(());
        };
        let uid = job_set.uid.clone();
        let read = move |text: &str| CountedJob::read(text, &uid);
        let _turn = self.turn().await?;
        let jobs = self.jobs(read).await?;
        match self.reported(&job_set.uid, &jobs, started).await {
            // The role may be of an earlier release. Then only the number of Jobs is known.
            Err(error) if error.status() == Some(403) => {
                LOGGED.call_once(|| tracing::warn!(%error, "the reasons why Jobs or pods are not created cannot be read; apply the role that `trainyard rbac` prints"));
            }
            reported => reported?,
        }
        if jobs.is_empty() {
            self.check_that_jobs_are_not_late(started).await?;
        }
        Ok(())
    }

    /// Waits for the turn of the namespace, as long as the TrainJob does not change: it may have to be suspended, and lists of other namespaces
    /// may take long.
    async fn turn(&self) -> Result<Permit> {
        let diagnoses = &self.reconciler.diagnoses;
        let mut turn = pin!(diagnoses.acquire(&self.key.namespace, 1));
        loop {
            if let Ok(permit) = timeout(BETWEEN_LOOKS, turn.as_mut()).await {
                return Ok(permit);
            }
            let job = self.reconciler.stores.jobs.get(self.key);
            if job.is_none_or(|job| job.resource_version() != self.job.resource_version()) {
                let what = format!("TrainJob `{}`", self.key.name);
                return Err(ReconcileError::Conflict { what });
            }
        }
    }

    /// Fails if Events report a failure.
    async fn reported(&self, uid: &str, jobs: &[CountedJob], started: Timestamp) -> Result<()> {
        let newest = jobs.iter().filter_map(|job| job.created).max();
        let since = newest.map_or(started, |newest| newest.max(started));
        if let Some(why) = self.last_failure(uid, since).await? {
            let name = self.key.name.to_string();
            let kind = names::JOB_SET;
            return Err(ReconcileError::NotCreated { kind, name, why });
        }
        let Some(job) = jobs.iter().find(|job| job.lacks_pods) else {
            return Ok(());
        };
        let retried = self
            .now
            .checked_sub(RETRIED_AFTER.minutes())
            .unwrap_or(started);
        match self.last_failure(&job.uid, started.max(retried)).await? {
            None => Ok(()),
            Some(why) => Err(ReconcileError::NotCreated {
                kind: "Job",
                name: job.name.clone(),
                why,
            }),
        }
    }

    /// Fails if a JobSet has been without any Jobs for long. There is no Event if its message was too long or the JobSet controller is not
    /// running.
    async fn check_that_jobs_are_not_late(&self, started: Timestamp) -> Result<()> {
        let name = &self.key.name;
        let found: Option<JobSetObject> = self.read(name).await?;
        let created = found.and_then(|found| found.meta().creation_timestamp.clone());
        let late = created.and_then(|created| {
            let since = created.0.max(started);
            since.checked_add(CREATED_AFTER.minutes()).ok()
        });
        if late.is_none_or(|late| late > self.now) {
            return Ok(());
        }
        Err(ReconcileError::NotCreated {
            kind: names::JOB_SET,
            name: name.to_string(),
            why: "it has no Jobs although it is not suspended, and no Event gives the reason; check that the JobSet controller runs, and see its log".to_owned(),
        })
    }

    /// Returns what the object with that UID last failed to create since that time, and what to do.
    async fn last_failure(&self, uid: &str, since: Timestamp) -> Result<Option<String>> {
        let fields = format!("involvedObject.uid={uid},type=Warning");
        let params = ListParams::default().fields(&fields);
        // Whoever may create Events in the namespace could otherwise hide the newest real one behind one of the future.
        let until = self.now.checked_add(SKEW.minutes()).unwrap_or(self.now);
        // Only one is kept, because there may be many large ones.
        let newest = Arc::new(Mutex::new(None::<Event>));
        let keep = Arc::clone(&newest);
        let read = move |text: &str| -> Option<()> {
            let is_recent = |event: &Event| {
                let last = event.last();
                last.is_some_and(|last| (since..=until).contains(&last))
            };
            let event = Event::read(text).filter(is_recent)?;
            let mut newest = keep.lock().unwrap_or_else(PoisonError::into_inner);
            if newest
                .as_ref()
                .is_none_or(|known| known.last() <= event.last())
            {
                *newest = Some(event);
            }
            None
        };
        let kind = kind_of("v1", "Event");
        self.list(&kind, params, read, |()| 0).await?;
        let newest = newest.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(newest.map(|event| {
            let message = without_pod_name(&event.message);
            let message = clean_to(message, LONGEST);
            format!("{}: {message}; {ADVICE}", event.reason)
        }))
    }
}

/// Returns the message without the name of a pod, which differs from retry to retry.
fn without_pod_name(message: &str) -> &str {
    let refused = message.strip_prefix("Error creating: pods \"");
    let reason = refused.and_then(|rest| rest.split_once("\" is forbidden: "));
    reason.map_or(message, |(_, reason)| reason)
}

/// An Event, of either API: those of `events.k8s.io` have an `eventTime` and a series.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Event {
    reason: String,
    message: String,
    last_timestamp: Option<Timestamp>,
    event_time: Option<Timestamp>,
    series: Option<Series>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Series {
    last_observed_time: Option<Timestamp>,
}

impl Event {
    /// Parses an Event; `None` if it cannot be decoded, or reports no failure.
    fn read(text: &str) -> Option<Self> {
        let event: Option<Self> = wire::decode(&without_managed_fields(text)).ok();
        event.filter(|event| FAILURES.contains(&&*event.reason))
    }

    /// Returns when it last happened.
    fn last(&self) -> Option<Timestamp> {
        let series = self.series.as_ref();
        let observed = series.and_then(|series| series.last_observed_time);
        self.last_timestamp.max(self.event_time).max(observed)
    }
}

/// A Job of the JobSet whose pods were counted.
#[derive(Debug)]
struct CountedJob {
    name: String,
    uid: String,
    created: Option<Timestamp>,
    /// Whether it has fewer pods than it should.
    lacks_pods: bool,
}

/// The same as the API server sends it.
#[derive(Deserialize)]
struct WireCountedJob {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    suspend: bool,
    parallelism: Option<i64>,
    completions: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    active: i64,
    succeeded: i64,
    terminating: i64,
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    status: String,
}

impl CountedJob {
    /// Parses a Job; `None` if it cannot be decoded, or is not the JobSet's.
    fn read(text: &str, job_set: &str) -> Option<Self> {
        let sent: WireCountedJob = wire::decode(&without_managed_fields(text)).ok()?;
        if !owner::is_controlled_by(job_set, &sent.metadata) {
            return None;
        }
        let WireCountedJob {
            metadata,
            spec,
            status,
        } = sent;
        let pods = spec.parallelism.unwrap_or(1);
        let pods = spec
            .completions
            .map_or(pods, |all| pods.min(all.saturating_sub(status.succeeded)));
        // A Job that has ended, or is about to, gets no more pods. One with terminating pods may wait for them.
        let mut conditions = status.conditions.iter();
        let may_get_pods = !spec.suspend && !conditions.any(|it| it.status == "True");
        Some(Self {
            lacks_pods: may_get_pods && status.active.saturating_add(status.terminating) < pods,
            created: metadata.creation_timestamp.map(|time| time.0),
            name: metadata.name?,
            uid: metadata.uid?,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    fn lacks_pods(spec: &Value, status: &Value) -> bool {
        let job = json!({
            "metadata": {
                "name": "a-node-0", "uid": "j", "creationTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [{
                    "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "a", "uid": "s", "controller": true,
                }],
            },
            "spec": spec, "status": status,
        });
        assert!(CountedJob::read(&job.to_string(), "other").is_none());
        CountedJob::read(&job.to_string(), "s").unwrap().lacks_pods
    }

    #[test]
    fn a_job_lacks_pods_only_if_it_should_have_more() {
        let four = json!({"parallelism": 4, "completions": 4});
        assert!(lacks_pods(&four, &json!({})));
        assert!(lacks_pods(&four, &json!({"active": 2, "succeeded": 1})));
        assert!(lacks_pods(&json!({}), &json!({})));
        assert!(!lacks_pods(&four, &json!({"active": 2, "succeeded": 2})));
        assert!(!lacks_pods(&four, &json!({"active": 2, "terminating": 2})));
        let ended = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        assert!(!lacks_pods(&four, &ended));
        let suspended = json!({"parallelism": 4, "suspend": true});
        assert!(!lacks_pods(&suspended, &json!({})));
    }

    #[test]
    fn event_times_are_the_last_ones_in_both_apis() {
        let last = |mut event: Value| {
            let members = event.as_object_mut().unwrap();
            members.insert("reason".to_owned(), "FailedCreate".into());
            Event::read(&event.to_string()).unwrap().last()
        };
        let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
        let core = json!({"lastTimestamp": "2026-01-01T00:00:07Z", "eventTime": null});
        assert_eq!(last(core), at("2026-01-01T00:00:07Z"));
        let single = json!({"eventTime": "2026-01-01T00:00:01.5Z", "lastTimestamp": null});
        assert_eq!(last(single), at("2026-01-01T00:00:01.5Z"));
        let series = json!({
            "eventTime": "2026-01-01T00:00:01.5Z",
            "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:09Z"},
        });
        assert_eq!(last(series), at("2026-01-01T00:00:09Z"));
    }

    #[test]
    fn only_events_about_failures_are_kept() {
        let read = |reason: &str| Event::read(&json!({"reason": reason}).to_string());
        for reason in FAILURES {
            assert!(read(reason).is_some(), "{reason}");
        }
        assert!(read("TrainJobResourcesCreationFailed").is_none() && read("BackOff").is_none());
    }

    #[test]
    fn retries_of_one_failure_have_one_text() {
        let message = |pod: &str| {
            format!("Error creating: pods \"a-node-0-{pod}\" is forbidden: exceeded quota: q")
        };
        for pod in ["x7k2p", "0-9fz4c"] {
            assert_eq!(without_pod_name(&message(pod)), "exceeded quota: q");
        }
        assert_eq!(
            without_pod_name("job \"a\" creation failed"),
            "job \"a\" creation failed"
        );
    }
}
