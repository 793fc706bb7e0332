//! The answer, decided from what was read.

use serde::Serialize;
use serde_json::Value;
use trainyard_api::names::{ERROR_ANNOTATION, MANAGED_BY_TRAINER, QUEUE_LABEL};

use super::{
    events::{self, EventReport},
    plugins::RenderedWith,
    pods::{self, PodGroup},
    read::Facts,
};
use crate::live_objects::{annotation, items, text};

/// The reasons of errors with which a TrainJob waits although its JobSet runs.
const WAITS: [&str; 2] = ["NotCreated", "ObjectWaits"];

/// Why a TrainJob does not run, or that it does.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    train_job: String,
    namespace: String,
    /// `waiting`, `suspended`, `running`, `complete`, `failed` or `deleting`.
    state: &'static str,
    /// The reasons, the most important one first.
    because: Vec<String>,
    /// The pods that do not run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pods: Vec<PodGroup>,
    /// What its JobSet was rendered with.
    #[serde(flatten)]
    rendered_with: RenderedWith,
    /// The last Events of the TrainJob and its JobSet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<EventReport>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unread: Vec<String>,
}

impl Answer {
    pub(super) fn of(facts: &Facts) -> Self {
        let (state, because) = decide(facts);
        let own = |pointer: &str| {
            let found = text(&facts.train_job, pointer);
            found.unwrap_or_default().to_owned()
        };
        let ended = ["complete", "failed"].contains(&state);
        Self {
            train_job: own("/metadata/name"),
            namespace: own("/metadata/namespace"),
            state,
            because,
            pods: if state == "complete" {
                Vec::new()
            } else {
                pods::groups(&facts.pods.0)
            },
            rendered_with: RenderedWith::of(
                facts.job_set.as_ref(),
                facts.snapshot.as_ref(),
                facts.revision.as_ref(),
            ),
            events: events::last(if ended { &[] } else { &facts.events }),
            unread: facts.unread.clone(),
        }
    }

    /// Returns the lines of the text.
    pub(super) fn lines(&self) -> Vec<String> {
        let Self {
            train_job,
            namespace,
            state,
            ..
        } = self;
        let mut lines = vec![format!("TrainJob {namespace}/{train_job}: {state}")];
        lines.extend(self.because.iter().map(|why| format!("  {why}")));
        let more = |count| match count {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let pods = self.pods.iter();
        lines.extend(
            pods.map(|PodGroup { pod, count, why }| format!("  pod {pod}{}: {why}", more(*count))),
        );
        if !self.rendered_with.is_empty() {
            lines.extend(self.rendered_with.lines());
        }
        if !self.events.is_empty() {
            lines.push("Events:".to_owned());
            let events = self.events.iter().map(EventReport::line);
            lines.extend(events.map(|line| format!("  {line}")));
        }
        if !self.unread.is_empty() {
            lines.push("Not known:".to_owned());
            lines.extend(self.unread.iter().map(|why| format!("  {why}")));
        }
        lines
    }
}

/// Returns the state and the reasons.
fn decide(facts: &Facts) -> (&'static str, Vec<String>) {
    let job = &facts.train_job;
    if text(job, "/metadata/deletionTimestamp").is_some() {
        let finalizers = items(job, "/metadata/finalizers").filter_map(Value::as_str);
        let finalizers = finalizers.collect::<Vec<_>>().join(", ");
        return (
            "deleting",
            vec![format!(
                "it was deleted, and waits for the controllers of its finalizers: {finalizers}"
            )],
        );
    }
    for (condition, state) in [("Complete", "complete"), ("Failed", "failed")] {
        if let Some(condition) = is_true(job, condition) {
            return (state, vec![reason(condition)]);
        }
    }
    let manager = text(job, "/spec/managedBy").filter(|manager| *manager != MANAGED_BY_TRAINER);
    if let Some(manager) = manager {
        let why = format!("spec.managedBy: another controller reconciles it: {manager}");
        return ("waiting", vec![why]);
    }
    let error = annotation(job, ERROR_ANNOTATION).map(str::to_owned);
    let suspended = job.pointer("/spec/suspend") == Some(&Value::Bool(true));
    if suspended {
        let why = admission(facts);
        return ("suspended", error.into_iter().chain(why).collect());
    }
    let job_set = facts.job_set.as_ref();
    let runs = job_set.is_some_and(|found| found.pointer("/spec/suspend") != Some(&true.into()));
    match error {
        Some(error) if !runs => return ("waiting", vec![error]),
        Some(error) if WAITS.iter().any(|reason| error.starts_with(reason)) => {
            return ("waiting", vec![error, pod_counts(facts)]);
        }
        Some(error) => return ("running", vec![error, pod_counts(facts)]),
        None if runs => {
            let state = match pods::all_wait(&facts.pods.0) {
                true => "waiting",
                false => "running",
            };
            return (state, vec![pod_counts(facts)]);
        }
        None => {}
    }
    let why = match job_set {
        Some(_) => "its JobSet is still suspended; the controller unsuspends it",
        // The role may not allow to read it.
        None if facts.unread.iter().any(|line| line.starts_with("JobSet ")) => {
            "no error is reported"
        }
        None => {
            "it has no JobSet, and no error is reported; if this lasts, check that a replica of the controller leads: kubectl -n kubeflow-system get pods,lease"
        }
    };
    ("waiting", vec![why.to_owned()])
}

/// Returns why a suspended TrainJob is not admitted.
fn admission(facts: &Facts) -> Vec<String> {
    let labels = facts.train_job.pointer("/metadata/labels");
    let queue = labels.and_then(|labels| labels.get(QUEUE_LABEL)?.as_str());
    let Some(queue) = queue else {
        return vec!["spec.suspend is true; to run it, set it to false".to_owned()];
    };
    let Some(workloads) = &facts.workloads else {
        return vec![format!("it waits for Kueue to admit it from queue {queue}")];
    };
    let Some(workload) = workloads.first() else {
        return vec![format!(
            "Kueue has no Workload for it; check that the LocalQueue {queue} exists, and that Kueue's configuration has the framework trainer.kubeflow.org/trainjob"
        )];
    };
    let conditions = items(workload, "/status/conditions");
    let refused = conditions.filter(|condition| {
        let kind = text(condition, "/type");
        let status = text(condition, "/status");
        let is_missing =
            matches!(kind, Some("QuotaReserved" | "Admitted")) && status == Some("False");
        is_missing || (kind == Some("Evicted") && status == Some("True"))
    });
    let mut why: Vec<_> = refused
        .map(|condition| {
            let kind = text(condition, "/type").unwrap_or_default();
            format!("Kueue, queue {queue}: {kind}: {}", reason(condition))
        })
        .collect();
    if why.is_empty() {
        why.push(format!("it waits for Kueue to admit it from queue {queue}"));
    }
    why
}

/// Returns how many pods are in which phase.
fn pod_counts(facts: &Facts) -> String {
    let (pods, more) = &facts.pods;
    let phases = pods::phases(pods);
    if phases.is_empty() {
        return "its JobSet runs, and no pods are known".to_owned();
    }
    let counts = phases
        .iter()
        .map(|(phase, count)| format!("{count} {phase}"));
    let counts = counts.collect::<Vec<_>>().join(", ");
    let of_first = if *more { " of the first ones" } else { "" };
    format!("its JobSet runs; pods{of_first}: {counts}")
}

/// Returns a condition that is true.
fn is_true<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    let mut conditions = items(object, "/status/conditions");
    conditions.find(|condition| {
        text(condition, "/type") == Some(kind) && text(condition, "/status") == Some("True")
    })
}

/// Returns the reason and the message of a condition.
fn reason(condition: &Value) -> String {
    let own = |pointer| text(condition, pointer).unwrap_or_default();
    format!("{}: {}", own("/reason"), own("/message"))
}
