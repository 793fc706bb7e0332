//! Errors of a reconcile.
//!
//! [`api`] has the errors of calls to the API server, [`snapshot_error`] those of snapshots, and [`summary`] the short forms of an error: its kind,
//! its reason and its subject. [`stopped_by`] says whether the API server is what stops a TrainJob.

mod api;
mod blame;
mod paused;
mod snapshot_error;
mod stopped_by;
mod summary;

use std::{sync::Arc, time::Duration};

use thiserror::Error;
use trainyard_api::{Runtime, TrainJob, names};
use trainyard_model::{deadline::Overdue, lookup::LookupKey, plan::Plan};
use trainyard_render::{PendingLookup, Problem, Stopped};

pub(crate) use blame::Blame;
pub use snapshot_error::SnapshotError;
pub(crate) use stopped_by::{StoppedBy, is_over_quota};
pub(crate) use summary::{AnnotationTiming, ErrorSummary, NOT_CREATED, WAITS};

use super::object_ref::ObjectRef;
use crate::{client::message_of, keys::KeyError, threads::TaskError};

/// Why a reconcile failed. It is retried.
#[derive(Debug, Error)]
pub enum ReconcileError {
    /// The TrainJob is invalid.
    #[error("{}", .0.join("; "))]
    TrainJob(Vec<String>),
    /// The TrainJob or its JobSet cannot be decoded.
    #[error(
        "{kind} `{name}`: {why}; the controller does not change this TrainJob until the {kind} is fixed"
    )]
    Unreadable {
        kind: &'static str,
        name: String,
        /// What cannot be decoded, and what to do.
        why: String,
    },
    /// The runtime does not exist.
    #[error(
        "spec.runtimeRef.name: there is no {kind} `{name}`; create it, or recreate the TrainJob with another `spec.runtimeRef`"
    )]
    NoRuntime { kind: String, name: String },
    /// The runtime is invalid.
    #[error("{kind} {name}: {problem}")]
    Runtime {
        kind: String,
        name: String,
        /// Everything that is wrong with it.
        problem: String,
    },
    /// The TrainJob and its runtime cannot be rendered.
    #[error("{}", .0.sentences().join("; "))]
    Render(Refused),
    /// A plugin call or the rendering timed out. A retry may succeed.
    #[error("{}", texts_of(.0).join("; "))]
    Busy(Vec<Problem>),
    /// An object that a plugin looks up does not exist yet.
    #[error("{0}, but this object does not exist; create it, and the TrainJob continues")]
    NoObject(Box<PendingLookup>),
    /// A plugin looked up a Secret.
    #[error(
        "{0}: plugins cannot read Secrets; use a version of the plugin without this lookup, or report it to its author"
    )]
    Secret(LookupKey),
    /// The keys of a Secret could not be generated.
    #[error("Secret `{name}`: its keys could not be generated: {problem}")]
    Keys {
        /// The Secret.
        name: String,
        /// Why.
        problem: KeyError,
    },
    /// The API server does not serve the kind of an object that the TrainJob needs.
    #[error(
        "{kind} `{name}` is needed, but the API server does not serve {kind} ({api_version}); install its CRD, and the TrainJob continues"
    )]
    NotServed {
        api_version: String,
        kind: String,
        name: String,
    },
    /// The snapshot cannot be used.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// An object with a name that the TrainJob needs belongs to another owner.
    #[error(
        "{kind} `{name}` does not belong to this TrainJob: it is {owner}; create the TrainJob under another name, {}",
        other_way(.kind)
    )]
    Foreign {
        kind: String,
        name: String,
        owner: String,
    },
    /// An object of an earlier TrainJob of the same name has not been garbage-collected yet.
    #[error(
        "{kind} `{name}` belongs to a deleted TrainJob of the same name, and has not been garbage-collected yet; the TrainJob continues once it is gone"
    )]
    Stale { kind: String, name: String },
    /// An object of the TrainJob is being deleted.
    #[error(
        "{kind} `{name}` is being deleted{}; it has the finalizers {finalizers}, which their controllers remove; if these wait for pods on a node that was lost, delete the Node",
        if *.is_recreated { ", and is recreated afterwards" } else { "" }
    )]
    Deleting {
        kind: String,
        name: String,
        finalizers: String,
        /// Whether the TrainJob needs it. One that is deleted itself does not.
        is_recreated: bool,
    },
    /// A started TrainJob would be rendered by other plugins, or under other settings, than before.
    #[error(
        "this TrainJob was started with the plugins {pinned}, and {change}; existing objects are left unchanged; undo this change to have missing ones recreated"
    )]
    PlanIsPinned {
        /// The plugins of its plan.
        pinned: String,
        /// What has changed since.
        change: String,
    },
    /// An object beside a running JobSet is missing and cannot be recreated.
    #[error(
        "{kind} `{name}` is missing although the running JobSet uses it, and cannot be recreated because {why}; restore it, or recreate the TrainJob"
    )]
    Lost {
        kind: String,
        name: String,
        /// Why it cannot be recreated.
        why: &'static str,
    },
    /// A Secret with the keys of a running JobSet is missing. Pods with new keys could not connect to those that run.
    #[error(
        "Secret `{name}` is missing while its JobSet runs, and is not recreated, because running pods have its keys and new pods would get others; restore it, or suspend and resume the TrainJob to create it with new keys"
    )]
    KeysLost {
        /// The Secret.
        name: String,
    },
    /// The JobSet has run and was deleted, and it is not known whether it had ended.
    #[error(
        "JobSet `{name}` has run and was deleted, and is not recreated, because it may have ended before; recreate the TrainJob to run it again"
    )]
    EndIsUnknown {
        /// The JobSet.
        name: String,
    },
    /// Jobs or pods of the running JobSet could not be created.
    #[error("{kind} `{name}`: {why}")]
    NotCreated {
        /// The object whose controller could not create them.
        kind: &'static str,
        name: String,
        /// What could not be created, why, and what to do.
        why: String,
    },
    /// An object that a plugin emitted is in a state for which the pods wait.
    #[error("{kind} `{name}`: {why}")]
    Waits {
        /// The kind of the object.
        kind: String,
        name: String,
        /// The plugin's message, and that of the object's condition.
        why: String,
    },
    /// Jobs of a suspended JobSet still have the placement of an earlier admission.
    #[error(
        "the Jobs of JobSet `{name}` still have the placement of an earlier admission; they are deleted, and the JobSet is unsuspended once they are recreated"
    )]
    JobsHaveOldPlacement {
        /// The JobSet.
        name: String,
    },
    /// Another client changed the object concurrently.
    #[error("{what}: another client changed the object concurrently")]
    Conflict {
        /// What was to be written.
        what: String,
    },
    /// The API server refused a call or did not answer.
    #[error("{what}: {}", message_of(.problem))]
    Api {
        /// What was to be done.
        what: String,
        /// The error.
        problem: Box<kube::Error>,
    },
    /// Rendering panicked with this message.
    #[error(
        "rendering panicked: {0}; this is a bug in Trainyard, please report it with the TrainJob and its runtime"
    )]
    Panicked(String),
    /// The API server timed out writing one large JobSet. It may still answer for smaller ones.
    #[error(
        "writing JobSet `{name}` ({kib} KiB) timed out after {after:?}; make it smaller, especially the labels, annotations and node selectors of its pods"
    )]
    TooSlow {
        /// The JobSet.
        name: String,
        /// Its size.
        kib: usize,
        /// The timeout.
        after: Duration,
    },
    /// An internal error of the reconcile.
    #[error(
        "internal error: {0}; this is a bug in Trainyard, please report it with the TrainJob and its runtime"
    )]
    Internal(String),
    /// The process is stopping, and its plugin calls are abandoned.
    #[error("a plugin call was abandoned because the process is stopping")]
    Abandoned,
}

impl ReconcileError {
    /// Returns the error of a started TrainJob whose plan differs from the pinned one.
    pub(crate) fn pinned(plan: &Plan, now: &Plan) -> Self {
        Self::PlanIsPinned {
            pinned: plan.in_words(),
            change: plan.change(now),
        }
    }

    /// Returns the error of the TrainJob's JobSet, which was deleted and is kept by these finalizers.
    pub(crate) fn job_set_deleting(job: &str, finalizers: &str, is_recreated: bool) -> Self {
        Self::Deleting {
            kind: names::JOB_SET.to_owned(),
            name: job.to_owned(),
            finalizers: finalizers.to_owned(),
            is_recreated,
        }
    }

    /// Returns the error of a JobSet that belongs to an earlier TrainJob of this name.
    pub(crate) fn stale_job_set(job: &str) -> Self {
        Self::Stale {
            kind: names::JOB_SET.to_owned(),
            name: job.to_owned(),
        }
    }

    /// Returns the error of a JobSet that is not as it was read.
    pub(crate) fn changed_job_set(job: &str) -> Self {
        Self::Conflict {
            what: format!("JobSet `{job}`"),
        }
    }

    /// Returns the error of an object beside a running JobSet that is missing and cannot be recreated.
    pub(crate) fn lost(object: &ObjectRef, why: &'static str) -> Self {
        Self::Lost {
            kind: object.kind.to_string(),
            name: object.name.to_string(),
            why,
        }
    }

    /// Whether the condition is expected to be temporary, and is reported only if it lasts.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Conflict { .. }
                | Self::Stale { .. }
                | Self::Deleting { .. }
                | Self::JobsHaveOldPlacement { .. }
                | Self::Abandoned
        )
    }

    /// Whether another client changed the object concurrently.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// Whether an object belongs to another owner.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self, Self::Foreign { .. })
    }

    /// Whether the snapshot cannot be used.
    pub(crate) fn is_of_snapshot(&self) -> bool {
        matches!(self, Self::Snapshot(_))
    }

    /// Whether the API server does not serve the kind of an object.
    pub(crate) fn is_not_served(&self) -> bool {
        matches!(self, Self::NotServed { .. })
    }

    /// Whether the loaded plugins differ from those of the pinned plan.
    pub(crate) fn is_pinned(&self) -> bool {
        matches!(self, Self::PlanIsPinned { .. })
    }

    /// Whether the runtime does not exist.
    pub(crate) fn is_without_runtime(&self) -> bool {
        matches!(self, Self::NoRuntime { .. })
    }

    /// Whether the TrainJob cannot be rendered from its current inputs.
    pub(crate) fn is_of_input(&self) -> bool {
        matches!(
            self,
            Self::NoRuntime { .. } | Self::Runtime { .. } | Self::Render(_) | Self::NoObject(_)
        )
    }

    /// Whether a started TrainJob cannot be rendered from its inputs, by its plugins or with its pinned plan.
    pub(crate) fn is_of_rendering(&self) -> bool {
        let is_of_plugins = matches!(
            self,
            Self::PlanIsPinned { .. } | Self::Panicked(_) | Self::Secret(_)
        );
        is_of_plugins || self.is_of_input()
    }

    /// Returns the error of a rendering.
    pub(crate) fn render(job: Arc<TrainJob>, runtime: Arc<Runtime>, stopped: Stopped) -> Self {
        if stopped.problems().iter().any(Problem::is_transient) {
            return Self::Busy(stopped.into_problems());
        }
        Self::Render(Refused {
            job,
            runtime,
            stopped,
        })
    }

    /// Returns a sentence for each problem.
    pub(crate) fn sentences(&self) -> Vec<String> {
        match self {
            Self::TrainJob(sentences) => sentences.clone(),
            Self::Render(refused) => refused.sentences(),
            Self::Busy(problems) => texts_of(problems),
            other => vec![other.to_string()],
        }
    }

    /// Returns the error of a placement that timed out.
    pub(crate) fn placing(overdue: Overdue) -> Self {
        let step = "the placement of its pods was computed".to_owned();
        Self::Busy(vec![Problem::Overdue { overdue, step }])
    }
}

/// The problems of a TrainJob that cannot be rendered.
#[derive(Debug)]
pub struct Refused {
    job: Arc<TrainJob>,
    runtime: Arc<Runtime>,
    /// The problems of the TrainJob and its runtime.
    stopped: Stopped,
}

impl Refused {
    /// The problems as `render` and `validate` print them: those of the runtime name it, and the others are the TrainJob's. Lookups follow
    /// that a started TrainJob's plugins did not make before.
    fn sentences(&self) -> Vec<String> {
        let sentence = |problem: &Problem| problem.for_event(&self.job, &self.runtime);
        let problems = self.stopped.problems().iter().map(sentence);
        let lookups = self.stopped.lookups().iter().map(ToString::to_string);
        problems.chain(lookups).collect()
    }
}

impl From<TaskError> for ReconcileError {
    fn from(why: TaskError) -> Self {
        match why {
            TaskError::Panicked(words) => Self::Panicked(words),
            TaskError::Abandoned => Self::Abandoned,
        }
    }
}

/// Returns what else to do about an object of another owner. The advice must not cost a run.
fn other_way(kind: &str) -> &'static str {
    if kind == names::JOB_SET {
        "or, if the JobSet is this TrainJob's and was restored from a backup, make the TrainJob its controller in metadata.ownerReferences; deleting the JobSet ends its run"
    } else {
        "or delete the object if nothing else uses it"
    }
}

fn texts_of(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}
