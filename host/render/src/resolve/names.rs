//! Checks the names that JobSet derives from a TrainJob's name.

use serde_json::Value;
use trainyard_api::FieldPath;
use trainyard_model::record::{PodSet, Record};

use crate::problem::Problem;

/// The maximum length of the name of a Job or pod (RFC 1035 label).
const MAX_NAME: usize = 63;

/// Returns a problem if the names of Jobs, `JOB-REPLICATEDJOB-JOBINDEX`, or of pods with an index, `JOB-REPLICATEDJOB-JOBINDEX-PODINDEX-abcde`,
/// would be longer than JobSet accepts.
pub(super) fn check(record: &Record) -> Option<Problem> {
    let names = record.pod_sets.iter().enumerate().map(|(at, set)| {
        let job = set.replicas.saturating_sub(1);
        let name = format!("{}-{}-{job}", record.job_name, set.name);
        if !set.is_indexed {
            return (name.len(), name, "Jobs");
        }
        let name = format!(
            "{name}-{}-xxxxx",
            pods(set, at, record.template.as_deref()).saturating_sub(1)
        );
        (name.len(), name, "pods")
    });
    let (longest, name, what) = names.max()?;
    let over = longest.checked_sub(MAX_NAME).filter(|over| *over > 0)?;
    let room = record.job_name.len().saturating_sub(over);
    Some(Problem::job(
        FieldPath::of(["metadata", "name"]),
        format!(
            "is too long: its {what} would be named `{name}` with {longest} characters, but at most {MAX_NAME} \
             are allowed; use at most {room} characters with this runtime"
        ),
    ))
}

/// Returns the number of pods that a Job creates in its life: of helpers, it can be more than run at once.
fn pods(set: &PodSet, at: usize, template: Option<&Value>) -> u64 {
    let path = format!("/replicatedJobs/{at}/template/spec/completions");
    let completions = template.and_then(|spec| spec.pointer(&path)?.as_u64());
    let at_once = u64::from(set.count);
    match completions {
        Some(completions) if !set.counts_nodes => completions.max(at_once),
        _ => at_once,
    }
}
