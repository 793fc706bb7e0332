//! The warnings of TrainJobs with a queue.

use std::collections::BTreeSet;

use serde_json::Value;
use trainyard_api::yaml;

use trainyard_divergences::difference::Answer;

use crate::differences_from_the_reference_are_listed::trainyard;

/// Returns the input with a queue for each TrainJob.
pub(super) fn queued(input: &str) -> String {
    let documents = yaml::read(input).into_iter();
    let mut documents: Vec<Value> = documents.map(|document| document.unwrap().value).collect();
    for document in &mut documents {
        if document["kind"] == "TrainJob" {
            document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "research".into();
        }
    }
    yaml::write_documents(&documents)
}

/// Returns what `render` answers for the input with queues.
pub(super) fn answer(input: &str) -> Answer {
    trainyard::of_text(&queued(input))
}

/// Returns the rows of divergences.md that warnings name.
pub(super) fn rows(warnings: &[String]) -> BTreeSet<&str> {
    let end = "` in docs/kueue.md)";
    let named = warnings.iter().filter_map(|warning| {
        let (_, row) = warning.strip_suffix(end)?.rsplit_once("(see `")?;
        Some(row)
    });
    named.collect()
}
