//! Checks the names that JobSet derives from a TrainJob's name.

use trainyard_api::FieldPath;
use trainyard_model::record::Record;

use crate::problem::Problem;

/// The maximum length of the name of a Job or pod (RFC 1035 label).
const MAX_NAME: usize = 63;

/// The length of the suffix that the Job controller adds to a pod's name: `-` and five characters.
const POD_SUFFIX: usize = 6;

/// Returns a problem if pod names, `JOB-REPLICATEDJOB-JOBINDEX-PODINDEX-abcde`, would be longer than JobSet accepts.
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
            "is too long: its pods would be named `{name}-xxxxx` with {longest} characters, but at most {MAX_NAME} \
             are allowed; use at most {room} characters with this runtime"
        ),
    ))
}
