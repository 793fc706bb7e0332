//! The step of a TrainJob that a replicated job runs.

use serde_json::Value;

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

    /// Reads the label of a replicated job, on its Job template or else on its pods.
    pub fn of(job: &'a Value) -> Option<Self> {
        let label = |metadata: &[&str]| {
            let mut keys = metadata.iter().chain(&["labels", names::ANCESTOR_LABEL]);
            keys.try_fold(job, |value, key| value.get(key))?.as_str()
        };
        let on_job = label(&["template", "metadata"]).map(|step| Self {
            step,
            on_pods: false,
        });
        on_job.or_else(|| {
            label(&Self::POD_METADATA).map(|step| Self {
                step,
                on_pods: true,
            })
        })
    }
}
