//! Checks the names that JobSet derives from a TrainJob's name.

use serde_json::Value;
use trainyard_api::FieldPath;
use trainyard_model::record::{PodSet, Record};

use crate::{
    json::{get, get_at},
    problem::Problem,
};

/// The maximum length of the name of a Job or pod (RFC 1035 label).
const MAX_NAME: usize = 63;

/// Returns a problem if the names of Jobs, `JOB-REPLICATEDJOB-JOBINDEX`, or of pods with an index, `JOB-REPLICATEDJOB-JOBINDEX-PODINDEX-abcde`,
/// would be longer than JobSet accepts.
pub(super) fn check(record: &Record) -> Option<Problem> {
    let names = record.pod_sets.iter().enumerate().filter_map(|(at, set)| {
        let job = set.replicas.saturating_sub(1);
        let pod = pods(set, at, record.template.as_deref()).saturating_sub(1);
        let of_job = record.job_name.len() + set.name.len() + "--".len() + digits(job.into());
        let (length, what) = if set.is_indexed {
            (of_job + "--xxxxx".len() + digits(pod), "pods")
        } else {
            (of_job, "Jobs")
        };
        // Most names are short enough and need not be formatted.
        (length > MAX_NAME).then(|| {
            let mut name = format!("{}-{}-{job}", record.job_name, set.name);
            if set.is_indexed {
                name = format!("{name}-{pod}-xxxxx");
            }
            (length, name, what)
        })
    });
    let (longest, name, what) = names.max()?;
    let room = (record.job_name.len() + MAX_NAME).saturating_sub(longest);
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
    let job = template.and_then(|spec| get(spec, "replicatedJobs")?.get(at));
    let completions = job.and_then(|job| get_at(job, &["template", "spec", "completions"]));
    let completions = completions.and_then(Value::as_u64);
    let at_once = u64::from(set.count);
    match completions {
        Some(completions) if !set.counts_nodes => completions.max(at_once),
        _ => at_once,
    }
}

/// Returns the number of decimal digits.
fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}
