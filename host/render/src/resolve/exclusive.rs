//! JobSet's exclusive placement, in which each Job has a topology domain, such as a rack, to itself.

use serde_json::Value;
use trainyard_api::{FieldPath, Runtime};
use trainyard_model::record::{EntryScope, Field, Record};

use super::template;
use crate::{json::get, problem::Problem};

/// The annotation of a JobSet or of a replicated job's Jobs. Its value is the label of Kubernetes nodes with their domain.
const EXCLUSIVE: &str = "alpha.jobset.sigs.k8s.io/exclusive-topology";
/// The annotation beside it for the strategy in which an administrator has labelled the Kubernetes nodes for the Jobs.
const NODE_SELECTOR: &str = "alpha.jobset.sigs.k8s.io/node-selector";

/// Returns a problem if a gang has exclusive placement by JobSet's webhook. The webhook rejects the pods of a Job until the first one is
/// scheduled, and the gang's scheduler waits for all of them before it schedules one.
pub(super) fn check(runtime: &Runtime, record: &Record) -> Option<Problem> {
    let group = runtime.pod_group_policy.as_ref()?;
    let of_job_set = [EXCLUSIVE, NODE_SELECTOR].map(|key| {
        record
            .entry(EntryScope::Job, Field::Annotations, key)
            .is_some()
    });
    let mut sets = record.pod_sets.iter().enumerate();
    let (at, of_jobs) = sets.find_map(|(at, set)| {
        let of_jobs = [EXCLUSIVE, NODE_SELECTOR].map(|key| has_annotation(record, at, key));
        let levels = [of_job_set, of_jobs];
        let is_exclusive = levels.iter().any(|[exclusive, _]| *exclusive);
        let is_labelled = levels.contains(&[true, true]);
        let waits = set.count > 1 && is_exclusive && !is_labelled;
        waits.then_some((at, of_jobs))
    })?;
    let message = format!(
        "cannot be combined with `podGroupPolicy.{}`: JobSet creates the pods of a Job only after the first one is scheduled, but a gang's scheduler waits until all of them exist; remove one of both, or use JobSet's strategy with labelled nodes (annotation {NODE_SELECTOR})",
        group.key()
    );
    let annotations = ["template", "metadata", "annotations"];
    if of_jobs == [true, false] {
        let path = template::replicated_jobs().index(at).fields(annotations);
        return Some(Problem::runtime(path.key(EXCLUSIVE), message));
    }
    let path = FieldPath::of(["spec"]).fields(annotations);
    Some(Problem::runtime(path.key(EXCLUSIVE), message))
}

/// Returns whether the Jobs of a pod set have the annotation.
fn has_annotation(record: &Record, at: usize, key: &str) -> bool {
    let template = record.template.as_deref();
    let job = template.and_then(|spec| get(spec, "replicatedJobs")?.get(at));
    let annotations = job.and_then(|job| job.pointer("/template/metadata/annotations"));
    annotations
        .and_then(|all| all.get(key))
        .is_some_and(Value::is_string)
}
