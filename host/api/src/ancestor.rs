//! The step of a TrainJob that a replicated job runs.

use serde_json::Value;
use trainyard_text::json;

use crate::names;

/// The step of the TrainJob that a replicated job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ancestor<'a> {
    /// The value of the label [`names::ANCESTOR_LABEL`].
    pub step: &'a str,
    /// Whether the label is only on the pods, as in early proposals. Other clients do not read it there.
    pub on_pods: bool,
}

impl<'a> Ancestor<'a> {
    /// The metadata of a replicated job's pods.
    pub(crate) const POD_METADATA: [&'static str; 4] = ["template", "spec", "template", "metadata"];

    /// Reads the label of a replicated job, on its Job template or else on its pods. There it only counts for one replica, because the
    /// pods of several would share ranks, and other clients do not read it.
    pub fn of(job: &'a Value) -> Option<Self> {
        let on_job = label(job, &["template", "metadata"]).map(|step| Self {
            step,
            on_pods: false,
        });
        let has_one_replica = || json::get(job, "replicas").is_none_or(|replicas| replicas == 1);
        on_job.or_else(|| {
            Self::label_on_pods(job)
                .filter(|_| has_one_replica())
                .map(|step| Self {
                    step,
                    on_pods: true,
                })
        })
    }

    /// Returns the label on the pods of a replicated job, whether or not it counts.
    pub(crate) fn label_on_pods(job: &'a Value) -> Option<&'a str> {
        label(job, &Self::POD_METADATA)
    }
}

fn label<'a>(job: &'a Value, metadata: &[&str]) -> Option<&'a str> {
    let metadata = json::get_at(job, metadata)?;
    json::get_at(metadata, &["labels", names::ANCESTOR_LABEL])?.as_str()
}
