//! `trainyard diff --back`: what the reference would do to TrainJobs and runtimes if it replaced Trainyard. It compares nothing, because
//! the reference leaves what runs: it finds what the reference does not know, and the few TrainJobs that it touches.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use trainyard_api::names;
use trainyard_divergences::{listing::used, seen::Subject, table::fields_without_reference};
use trainyard_model::record::Accelerators;

use super::{
    compare::state,
    keys::{Key, id, reference_of},
    live::{Maker, OwnedObjects},
    objects::cleaned,
    source::Source,
};
use crate::{input, live_objects::annotation, output::counted};

/// The MPI implementations with which the reference can reconcile a TrainJob.
const IMPLEMENTATIONS: [&str; 1] = ["OpenMPI"];

/// Annotations of TrainJobs and runtimes that the reference does not read.
const ANNOTATIONS: [&str; 5] = [
    "trainyard.dev/exclude-resource-claims",
    names::PLUGINS_ANNOTATION,
    names::DISABLED_PLUGINS_ANNOTATION,
    names::PLUGIN_PARAMETERS_ANNOTATION,
    names::RESOURCE_CLAIMS_ANNOTATION,
];

/// The rows about the hostfile.
const HOSTFILE: [&str; 2] = ["mpi-own-line", "mpi-slots"];

/// The row about the hostfile of a TrainJob that leaves the number of nodes to its runtime.
const HOSTFILE_OF_RUNTIME: &str = "mpi-runtime-nodes";

/// The reason of the condition `Failed` that the reference keeps.
const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";

/// What to do about an object before or after the move back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Action {
    /// Wait until the TrainJob has ended, or delete it.
    Wait,
    /// Delete its JobSet after the move.
    DeleteJobSet,
    /// Delete the TrainJob, and create it again after the move.
    Recreate,
    /// Delete the TrainJob, which has ended.
    Delete,
    /// Nothing can be done: the runtime loses the field.
    Loses,
}

impl Action {
    /// Returns what the text output calls it.
    const fn text(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::DeleteJobSet => "delete JobSet",
            Self::Recreate => "recreate",
            Self::Delete => "delete",
            Self::Loses => "loses",
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    action: Action,
    /// The field that the reference does not know, with its object if that is another one.
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
    why: &'static str,
}

/// A TrainJob or a runtime for which something has to be done.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Touched {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
    /// What a TrainJob does: `running`, `suspended`, `failed` or `waiting` for its JobSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    findings: Vec<Finding>,
}

/// The result.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BackReport {
    objects: Vec<Touched>,
    /// The number of TrainJobs that have not ended.
    train_jobs: usize,
    /// The number of runtimes.
    runtimes: usize,
    /// What could not be read.
    not_read: Vec<String>,
    notes: Vec<String>,
}

impl BackReport {
    /// Looks at all TrainJobs that have not ended or have failed, and at all runtimes.
    pub(super) fn new(source: &Source, accelerators: &Accelerators) -> Self {
        let objects: BTreeMap<Key, &Value> = source.objects.iter().map(keyed).collect();
        let mut report = Self {
            objects: Vec::new(),
            train_jobs: 0,
            runtimes: 0,
            not_read: source.gaps.clone(),
            notes: [notes(&source.live), source.releases.clone()].concat(),
        };
        for object in &source.objects {
            let (key, value) = keyed(object);
            let (state, findings) = if input::is_runtime(object) {
                report.runtimes += 1;
                (None, of_runtime(&key.0, value))
            } else if !input::is_train_job(object) || is_of_another(value) {
                continue;
            } else if state(value) == Some("failed") {
                (Some("failed"), of_failed(value, &source.live))
            } else if state(value) != Some("complete") {
                report.train_jobs += 1;
                of_train_job(value, &objects, &source.live, accelerators)
            } else {
                continue;
            };
            if findings.is_empty() {
                continue;
            }
            report.objects.push(Touched {
                kind: cleaned(&key.0),
                namespace: key.1.as_deref().map(cleaned),
                name: cleaned(&key.2),
                state,
                findings,
            });
        }
        let order = |it: &Touched| (it.state.is_none(), it.namespace.clone(), it.name.clone());
        report.objects.sort_by_key(order);
        report
    }

    /// Returns the exit code: 0 if there is nothing to do, 1 if there is, and 2 if something could not be read.
    pub(super) fn code(&self) -> u8 {
        // Nothing can be done about the fields that runtimes lose.
        let mut findings = self.objects.iter().flat_map(|object| &object.findings);
        let is_done = findings.all(|finding| finding.action == Action::Loses);
        match (self.not_read.is_empty(), is_done) {
            (false, _) => 2,
            (true, false) => 1,
            (true, true) => 0,
        }
    }

    /// Returns the text output.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for object in &self.objects {
            let place = object.namespace.as_ref();
            let place = place.map(|namespace| format!("{namespace}/"));
            let place = place.unwrap_or_default();
            let state = object.state.map(|state| format!(" ({state})"));
            let state = state.unwrap_or_default();
            lines.push(format!("{} {place}{}{state}", object.kind, object.name));
            for finding in &object.findings {
                let field = match finding.field.as_str() {
                    "" => String::new(),
                    field => format!("{field}: "),
                };
                lines.push(format!(
                    "  {:<15}{field}{}",
                    finding.action.text(),
                    finding.why
                ));
            }
            lines.push(String::new());
        }
        let gaps = self.not_read.iter();
        lines.extend(gaps.map(|gap| format!("not read: {gap}")));
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        let of = |action: Action| {
            let is = |it: &&Touched| it.findings.iter().any(|finding| finding.action == action);
            self.objects.iter().filter(is).count()
        };
        lines.push(format!(
            "{}: {} to wait for, {} whose JobSet has to be deleted after the move, {} to recreate",
            counted(self.train_jobs, "unfinished TrainJob"),
            of(Action::Wait),
            of(Action::DeleteJobSet),
            of(Action::Recreate),
        ));
        let failed = of(Action::Delete);
        if failed > 0 {
            let failed = counted(failed, "failed TrainJob");
            lines.push(format!("{failed} to delete before the move"));
        }
        lines.push(format!(
            "{}: {} with fields that are lost",
            counted(self.runtimes, "runtime"),
            of(Action::Loses),
        ));
        lines
    }
}

/// Returns what was not in the input, and what follows.
fn notes(live: &OwnedObjects) -> Vec<String> {
    let notes = [
        (
            (names::JOB_SET_API_VERSION, names::JOB_SET),
            "the input has no JobSets: TrainJobs count as waiting, and not as running",
        ),
        (
            ("v1", "ConfigMap"),
            "the input has no ConfigMaps: the current runtimes were read, and not those in the snapshots of TrainJobs, and each JobSet counts as Trainyard's",
        ),
    ];
    let is_missing = |&((api_version, kind), _): &(_, &str)| !live.has_read(api_version, kind);
    let missing = notes.into_iter().filter(is_missing);
    missing.map(|(_, note)| note.to_owned()).collect()
}

fn keyed(object: &trainyard_api::Object) -> (Key, &Value) {
    let is_cluster_wide = object.kind == names::CLUSTER_TRAINING_RUNTIME;
    let namespace = object.metadata.namespace.clone();
    let namespace = namespace.filter(|_| !is_cluster_wide);
    let key = (object.kind.clone(), namespace, object.metadata.name.clone());
    (key, &object.value)
}

fn is_of_another(job: &Value) -> bool {
    let manager = job.pointer("/spec/managedBy").and_then(Value::as_str);
    manager.is_some_and(|manager| manager != names::MANAGED_BY_TRAINER)
}

/// Returns what the reference does to a TrainJob that has failed. It removes the condition, unless a deadline is the reason, and derives it
/// from the JobSet again.
fn of_failed(job: &Value, live: &OwnedObjects) -> Vec<Finding> {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
    let mut reasons = conditions.into_iter().flatten();
    let is_overdue = reasons.any(|it| it.get("reason").is_some_and(|it| it == DEADLINE_EXCEEDED));
    let may_be_there =
        live.of(job).is_some() || !live.has_read(names::JOB_SET_API_VERSION, names::JOB_SET);
    if is_overdue || may_be_there {
        return Vec::new();
    }
    vec![Finding {
        action: Action::Delete,
        field: String::new(),
        why: "the Kubeflow Trainer runs a failed TrainJob again whose JobSet was deleted",
    }]
}

fn of_runtime(kind: &str, runtime: &Value) -> Vec<Finding> {
    let unknown = unknown_fields(kind, runtime).into_iter();
    let lost = unknown.map(|field| Finding {
        action: Action::Loses,
        field,
        why: "the Kubeflow Trainer does not know it, so TrainJobs that are created after the move do not have it",
    });
    lost.collect()
}

fn of_train_job(
    job: &Value,
    objects: &BTreeMap<Key, &Value>,
    live: &OwnedObjects,
    accelerators: &Accelerators,
) -> (Option<&'static str>, Vec<Finding>) {
    let namespace = job.pointer("/metadata/namespace").and_then(Value::as_str);
    let key = reference_of(job, namespace.unwrap_or_default());
    let owned = live.of(job);
    let kept = owned.as_ref().and_then(|owned| owned.runtime.clone()?.ok());
    let runtime = kept.as_ref().or_else(|| objects.get(&key).copied());
    let runtime = runtime.unwrap_or(&Value::Null);
    let is_suspended = state(job) == Some("suspended");
    let has_job_set = owned.is_some();
    let state = match (is_suspended, has_job_set) {
        (true, _) => "suspended",
        (false, true) => "running",
        (false, false) => "waiting",
    };
    let of_runtime = unknown_fields(&key.0, runtime).into_iter();
    let of_runtime = of_runtime.map(|field| format!("{}: {field}", id(&key)));
    let unknown = unknown_fields(names::TRAIN_JOB, job)
        .into_iter()
        .chain(of_runtime);
    let mut findings: Vec<_> = unknown
        .map(|field| Finding {
            action: Action::Wait,
            field: cleaned(&field),
            why: "the Kubeflow Trainer does not know it",
        })
        .collect();
    // Without ConfigMaps, nothing says who made a JobSet.
    let may_be_trainyards = !live.has_read("v1", "ConfigMap")
        || owned.is_some_and(|owned| owned.maker != Maker::Reference);
    let subject = Subject {
        job,
        runtime,
        documents: &[],
        accelerators,
    };
    let of_state = match state {
        "running" if may_be_trainyards => of_running(subject),
        "suspended" if has_job_set && may_be_trainyards => of_suspended(subject),
        "waiting" if annotation(job, names::ERROR_ANNOTATION).is_some() => Some((
            Action::Wait,
            "Trainyard does not start it, for the reason in its column ERROR, but the Kubeflow Trainer may; or delete it",
        )),
        _ => None,
    };
    findings.extend(of_state.map(|(action, why)| Finding {
        action,
        field: String::new(),
        why,
    }));
    (Some(state), findings)
}

/// Returns what the reference does to a TrainJob that runs, and that Trainyard rendered: it leaves the JobSet, and writes objects again that
/// it would render differently.
fn of_running(subject: Subject<'_>) -> Option<(Action, &'static str)> {
    if has(subject.runtime, "/spec/mlPolicy/flux") {
        let why = "the Kubeflow Trainer replaces its scripts and its key under the running pods";
        return Some((Action::Wait, why));
    }
    let own_nodes = has(subject.job, "/spec/trainer/numNodes");
    let has_another_hostfile = used(subject)
        .any(|row| HOSTFILE.contains(&row.id) || (row.id == HOSTFILE_OF_RUNTIME && !own_nodes));
    let why = "the Kubeflow Trainer replaces its hostfile, which a launcher reads again if it is restarted";
    has_another_hostfile.then_some((Action::Wait, why))
}

/// Returns what the reference does to a TrainJob that is suspended, and that Trainyard rendered.
fn of_suspended(subject: Subject<'_>) -> Option<(Action, &'static str)> {
    if has(subject.runtime, "/spec/template/spec/volumeClaimPolicies") {
        let why = "the Kubeflow Trainer cannot start the suspended JobSet of a runtime with volumeClaimPolicies";
        return Some((Action::Recreate, why));
    }
    let is_same = has(subject.runtime, "/spec/mlPolicy/torch")
        && has(subject.job, "/spec/trainer")
        && used(subject).next().is_none();
    let why = "the Kubeflow Trainer cannot start a JobSet that it would render differently, so it has to create a new one";
    (!is_same).then_some((Action::DeleteJobSet, why))
}

fn has(object: &Value, pointer: &str) -> bool {
    object
        .pointer(pointer)
        .is_some_and(|value| !value.is_null())
}

/// Returns the fields of an object that the reference does not know.
fn unknown_fields(kind: &str, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for path in fields_without_reference(kind) {
        let mut places = Vec::new();
        add_fields(object, path.trim_start_matches('.'), "", &mut places);
        let more = places.len().saturating_sub(1);
        let first = places.into_iter().next();
        found.extend(first.map(|place| match more {
            0 => place,
            more => format!("{place} and {more} more"),
        }));
    }
    // Its controller panics for each reconcile of such a TrainJob.
    let group = object.pointer("/spec/runtimeRef/apiGroup");
    if group.is_some_and(|group| group != names::TRAINER_GROUP) {
        found.push("spec.runtimeRef.apiGroup".to_owned());
    }
    let used = ANNOTATIONS.iter();
    let used = used.filter(|name| annotation(object, name).is_some());
    found.extend(used.map(|name| format!("metadata.annotations[{name}]")));
    let implementation = object.pointer("/spec/mlPolicy/mpi/mpiImplementation");
    if let Some(Value::String(implementation)) = implementation
        && !IMPLEMENTATIONS.contains(&implementation.as_str())
    {
        found.push("spec.mlPolicy.mpi.mpiImplementation".to_owned());
    }
    found
}

/// Adds the places of a field, whose path has `[]` behind the name of a list.
fn add_fields(value: &Value, path: &str, place: &str, found: &mut Vec<String>) {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let (name, is_list) = match name.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let Some(member) = value.get(name).filter(|member| !member.is_null()) else {
        return;
    };
    let place = match place {
        "" => name.to_owned(),
        place => format!("{place}.{name}"),
    };
    match member {
        _ if rest.is_empty() => found.push(place),
        Value::Array(items) if is_list => {
            for (at, item) in items.iter().enumerate() {
                add_fields(item, rest, &format!("{place}[{at}]"), found);
            }
        }
        member => add_fields(member, rest, &place, found),
    }
}
