//! The names that JobSet makes of a TrainJob's name, and whether they fit.

use trainyard_api::FieldPath;
use trainyard_model::record::Record;

use crate::problem::Problem;

/// The longest name of a Job and of a pod (RFC 1035 label).
const MAX_NAME: usize = 63;

/// What the Job controller adds to a pod's name: `-` and five characters.
const POD_SUFFIX: usize = 6;

/// Refuses a TrainJob whose pods would have names that JobSet refuses: `JOB-REPLICATEDJOB-JOBINDEX-PODINDEX-abcde`.
pub(super) fn check(record: &Record) -> Option<Problem> {
    let (longest, name) = record
        .pod_sets
        .iter()
        .map(|set| {
            let (job, pod) = (set.replicas.saturating_sub(1), set.count.saturating_sub(1));
            let name = format!("{}-{}-{job}-{pod}", record.job_name, set.name);
            (name.len() + POD_SUFFIX, name)
        })
        .max()?;
    let over = longest.checked_sub(MAX_NAME).filter(|over| *over > 0)?;
    let room = record.job_name.len().saturating_sub(over);
    Some(Problem::job(
        FieldPath::of(["metadata", "name"]),
        format!(
            "is too long by {over}: its pods would be named `{name}-xxxxx` with {longest} characters, and {MAX_NAME} \
             are allowed; a name of at most {room} characters fits this runtime"
        ),
    ))
}
