//! Why a TrainJob could not be brought to where it should be.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use trainyard_api::{Runtime, TrainJob};
use trainyard_model::deadline::Overdue;
use trainyard_model::lookup::LookupKey;
use trainyard_model::plan::Plan;
use trainyard_render::{PendingLookup, Problem, Stopped};

use super::snapshot::SnapshotError;
use crate::client::{NoAnswer, is_transient, no_answer, said, without_content};
use crate::keys::KeyError;
use crate::kubernetes::code;
use crate::threads::NotDone;

/// A JobSet that may take an API server long has more bytes.
const LARGE_JOB_SET: usize = 256 << 10;

/// Why a reconcile did not get to its end. It is tried again.
#[derive(Debug, Error)]
pub enum ReconcileError {
    /// The TrainJob itself is refused.
    #[error("{}", .0.join("; "))]
    TrainJob(Vec<String>),
    /// The TrainJob or its JobSet can't be decoded.
    #[error("{kind} `{name}`: {why}; until then the controller changes nothing of this TrainJob")]
    Unreadable {
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
        /// What can't be decoded, and what to do.
        why: String,
    },
    /// There is no such runtime.
    #[error(
        "spec.runtimeRef.name: there is no {kind} `{name}`; create it, and the TrainJob goes on"
    )]
    NoRuntime {
        /// The kind.
        kind: String,
        /// The name.
        name: String,
    },
    /// The runtime is refused.
    #[error("{kind} {name}: {problem}")]
    Runtime {
        /// The kind.
        kind: String,
        /// The name.
        name: String,
        /// Everything that is wrong with it.
        problem: String,
    },
    /// The TrainJob and its runtime do not become a JobSet.
    #[error("{}", .0.sentences().join("; "))]
    Render(Refused),
    /// A plugin or the whole rendering took too long, which says nothing of the TrainJob: it may be in time later.
    #[error("{}", in_words(.0).join("; "))]
    Busy(Vec<Problem>),
    /// A plugin asks for an object that does not exist yet.
    #[error("{0}, which does not exist; create it, and the TrainJob goes on")]
    NoObject(Box<PendingLookup>),
    /// A plugin asks for what no plugin gets.
    #[error("{0}: no plugin gets the content of a Secret")]
    Secret(LookupKey),
    /// The key material of a Secret could not be made.
    #[error("the keys of Secret `{name}` could not be made: {problem}")]
    Keys {
        /// The Secret.
        name: String,
        /// Why.
        problem: KeyError,
    },
    /// The snapshot can't be used.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// An object of the name that one of ours must have belongs to somebody else.
    #[error(
        "{kind} `{name}` is not this TrainJob's: it is {owner}; delete it, or give the TrainJob another name"
    )]
    Foreign {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// Whose it is.
        owner: String,
    },
    /// An object of an earlier TrainJob of the same name is about to be collected.
    #[error("{kind} `{name}` of an earlier TrainJob of this name is still there")]
    Stale {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// An object of the TrainJob is being deleted.
    #[error(
        "{kind} `{name}` is being deleted, and is created again once it is gone; its finalizers are: {finalizers}"
    )]
    Deleting {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// What keeps it.
        finalizers: String,
    },
    /// A started TrainJob was rendered by other plugins, or under other settings of the operator, than it would be now.
    #[error(
        "the plan of this TrainJob is pinned to {pinned}, and {change}; existing objects are left unchanged, and missing ones are not recreated"
    )]
    PlanIsPinned {
        /// The plugins of its plan.
        pinned: String,
        /// What is different now.
        change: String,
    },
    /// An object beside a running JobSet is missing, and nothing says any more how it was made.
    #[error(
        "{kind} `{name}`, which the running JobSet had beside it, is gone, and {why}: put it back, or create the TrainJob anew"
    )]
    Lost {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// Why it can't be made again.
        why: &'static str,
    },
    /// A Secret with the keys of a running JobSet is missing: with other keys, its next pods could not talk to those that run.
    #[error(
        "Secret `{name}`: it is missing while its JobSet runs, and is not created again, because the pods that run have its keys and new ones would get others; restore it, or suspend the TrainJob and resume it, which creates it with new keys"
    )]
    KeysLost {
        /// The Secret.
        name: String,
    },
    /// The JobSet of a TrainJob has run and is gone, and nobody saw how it went.
    #[error(
        "JobSet `{name}`: it has run and is gone, and it is not known whether it ended; it is not created again"
    )]
    EndIsUnknown {
        /// The JobSet.
        name: String,
    },
    /// Jobs of a suspended JobSet have what an earlier admission added to the placement of their pods.
    #[error(
        "JobSet `{name}`: its Jobs still have the placement of an earlier admission; they are deleted, and the JobSet is unsuspended once JobSet has created them again"
    )]
    JobsHaveOldPlacement {
        /// The JobSet.
        name: String,
    },
    /// Somebody else wrote in between.
    #[error("{what} changed in between")]
    Conflict {
        /// What was to be written.
        what: String,
    },
    /// The API server said no, or nothing.
    #[error("{what}: {}", said(.problem))]
    Api {
        /// What was to be done.
        what: String,
        /// What it said.
        problem: Box<kube::Error>,
    },
    /// Rendering panicked, with these words.
    #[error(
        "rendering panicked, which is a bug of Trainyard: {0}; please report it, with the TrainJob and its runtime"
    )]
    Panicked(String),
    /// The API server did not answer in time when one large JobSet was written. It may do so for smaller ones.
    #[error(
        "the API server did not answer within {after:?} when JobSet `{name}` of {kib} KiB was written; make it smaller: labels, annotations and node selectors of pods count most"
    )]
    TooSlow {
        /// The JobSet.
        name: String,
        /// Its size.
        kib: usize,
        /// How long it was waited for.
        after: Duration,
    },
    /// The reconcile itself went wrong.
    #[error(
        "the reconcile failed, which is a bug of Trainyard: {0}; please report it, with the TrainJob and its runtime"
    )]
    Internal(String),
    /// The threads that plugins run on end, as the process does.
    #[error("a plugin call was abandoned, as the process ends")]
    Abandoned,
}

impl ReconcileError {
    /// The error of a started TrainJob that is pinned to a plan, and would be rendered by another one now.
    pub(crate) fn pinned(plan: &Plan, now: &Plan) -> Self {
        Self::PlanIsPinned {
            pinned: plan.in_words(),
            change: plan.change(now),
        }
    }

    /// The error of a step that needs a value which no step before it has read.
    pub(crate) fn out_of_order(what: &str) -> Self {
        Self::Internal(format!("{what} was needed before it was read"))
    }

    /// Whether it goes by itself, so that nobody needs to hear of it.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Conflict { .. }
                | Self::Stale { .. }
                | Self::Deleting { .. }
                | Self::JobsHaveOldPlacement { .. }
                | Self::Abandoned
        )
    }

    /// Whether the API server is away, or too busy: what is wrong is wrong for all TrainJobs, and soon for none.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(self, Self::Api { problem, .. } if is_transient(problem))
    }

    /// Whether something changed in between.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// Whether the API server is away, or too busy, for all TrainJobs. An answer of 500 is also a webhook's of one kind or namespace.
    pub(crate) fn is_cluster_wide(&self) -> bool {
        self.is_outage() && self.status() != Some(500)
    }

    /// The HTTP status of the API server's answer, where it is an error of its own.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Api { problem, .. } => code(problem),
            _ => None,
        }
    }

    /// Whether a TrainJob that comes now can't be made of what there is.
    pub(crate) fn is_of_input(&self) -> bool {
        matches!(
            self,
            Self::NoRuntime { .. } | Self::Runtime { .. } | Self::Render(_) | Self::NoObject(_)
        )
    }

    /// Whether a TrainJob that has run can't be rendered by its plugins, or by the plan that it is pinned to.
    pub(crate) fn is_of_plugins(&self) -> bool {
        matches!(
            self,
            Self::PlanIsPinned { .. } | Self::Panicked(_) | Self::Secret(_)
        )
    }

    /// Why a rendering of the TrainJob has no result.
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

    /// Everything that is wrong, one sentence each.
    pub(crate) fn sentences(&self) -> Vec<String> {
        match self {
            Self::TrainJob(sentences) => sentences.clone(),
            Self::Render(refused) => refused.sentences(),
            Self::Busy(problems) => in_words(problems),
            other => vec![other.to_string()],
        }
    }

    /// Placing the pods of a JobSet took too long.
    pub(crate) fn placing(overdue: Overdue) -> Self {
        let step = "the placement of its pods was computed".to_owned();
        Self::Busy(vec![Problem::Overdue { overdue, step }])
    }

    /// Why a JobSet was not written, with so many bytes. A large one that is not answered is no outage: tried again as in one, it
    /// would be a burden for the API server that never ends.
    pub(crate) fn writing_job_set(name: &str, bytes: usize, problem: kube::Error) -> Self {
        match no_answer(&problem) {
            Some(NoAnswer { after, .. }) if bytes > LARGE_JOB_SET => Self::TooSlow {
                name: name.to_owned(),
                kib: bytes >> 10,
                after: *after,
            },
            _ => Self::api(format!("writing JobSet `{name}`"), problem),
        }
    }

    /// An answer of the API server to what was to be done.
    pub(crate) fn api(what: impl Into<String>, problem: kube::Error) -> Self {
        let what = what.into();
        match code(&problem) {
            Some(409) => Self::Conflict { what },
            _ => Self::Api {
                what,
                problem: Box::new(without_content(problem)),
            },
        }
    }
}

/// What keeps a TrainJob from becoming a JobSet.
#[derive(Debug)]
pub struct Refused {
    job: Arc<TrainJob>,
    runtime: Arc<Runtime>,
    /// Everything that is wrong with either.
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

impl From<NotDone> for ReconcileError {
    fn from(why: NotDone) -> Self {
        match why {
            NotDone::Panicked(words) => Self::Panicked(words),
            NotDone::Abandoned => Self::Abandoned,
        }
    }
}

fn in_words(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_job_set_that_is_not_answered_is_no_outage() {
        let error = |bytes| {
            let problem = kube::Error::Service(Box::new(NoAnswer {
                verb: "apply",
                path: "/".to_owned(),
                after: Duration::from_secs(10),
            }));
            ReconcileError::writing_job_set("a", bytes, problem)
        };
        assert!(error(LARGE_JOB_SET).is_outage());
        let large = error(LARGE_JOB_SET + 1);
        assert!(!large.is_outage() && !large.is_passing());
        assert_eq!(large.kind(), "too_slow");
    }
}
