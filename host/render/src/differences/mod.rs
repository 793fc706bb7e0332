//! Warnings about what a TrainJob gets here and not from the Kubeflow Trainer: another number of processes (`processes`), or other pods than
//! Kueue reserves quota for with that controller's code (`kueue`). Each names its row in `tests/reference/divergences.md`, which a test
//! compares with the code of both.

mod kueue;
mod processes;

use serde_json::Value;
use trainyard_api::{Runtime, TrainJob, runtime::Member};
use trainyard_model::{lookup::Lookups, session::Session};

pub(crate) use self::kueue::lookups;
use crate::{
    json::{get, items},
    problem::{InputObject, Warning},
};

/// A rendered TrainJob with its inputs.
#[derive(Clone, Copy)]
pub(crate) struct Rendering<'a> {
    pub(crate) job: &'a TrainJob,
    pub(crate) runtime: &'a Runtime,
    /// The `spec` of the runtime's template with the TrainJob's patches.
    pub(crate) patched: &'a Value,
    pub(crate) session: &'a Session,
    /// The objects that are known of the TrainJob's namespace.
    pub(crate) known: &'a Lookups,
    /// The `spec` of the JobSet.
    pub(crate) job_set: &'a Value,
}

impl<'a> Rendering<'a> {
    /// Returns the key and the value of the framework in the runtime's `mlPolicy`.
    fn policy(&self) -> Option<(&'a str, &'a Value)> {
        match self.runtime.ml_policy.as_ref()?.member.as_ref()? {
            Member::Key(policy) => Some((&policy.key, &policy.config)),
            Member::Plugin(_) => None,
        }
    }

    /// Returns the replicated job of this name in the patched template.
    fn replicated_job(&self, name: &str) -> Option<&'a Value> {
        let mut jobs = items(self.patched, "replicatedJobs").iter();
        jobs.find(|job| get(job, "name").and_then(Value::as_str) == Some(name))
    }

    /// Whether the framework is this one.
    fn is(&self, key: &str) -> bool {
        self.policy().is_some_and(|(policy, _)| policy == key)
    }
}

/// Returns the warnings of a TrainJob, each for a row.
pub(crate) fn warnings(rendering: &Rendering<'_>) -> Vec<Warning> {
    let processes = processes::of(rendering).into_iter();
    processes.chain(kueue::warnings(rendering)).collect()
}

/// Returns a warning that names a row of a page, where a user finds what to do.
fn warning(
    about: InputObject,
    field: Option<String>,
    message: &str,
    row: &str,
    page: &str,
) -> Warning {
    Warning {
        about,
        field,
        message: format!("{message} (see `{row}` in {page})"),
        plugin: None,
    }
}
