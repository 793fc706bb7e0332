//! A TrainJob with a gang, and its PodGroup.

use serde_json::Value;
use trainyard_model::object::Content;
use trainyard_sdk::mock::{MockJob, Outcome};

/// A TrainJob with one initializer and four nodes.
pub(crate) fn job() -> MockJob {
    MockJob::new("bert")
        .all_granted()
        .nodes(4)
        .pod_set("dataset-initializer", |set| {
            set.ancestor("dataset-initializer")
                .priority_class("first")
                .container("dataset-initializer", |c| c)
        })
        .pod_set("node", |set| {
            set.ancestor("trainer")
                .count(4)
                .depends_on("dataset-initializer", "Complete")
                .container("node", |c| c.limit("nvidia.com/gpu", "8"))
        })
        .object(class("first"))
}

/// A PriorityClass.
pub(crate) fn class(name: &str) -> Value {
    serde_json::json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 1})
}

/// The spec of the PodGroup.
pub(crate) fn spec(outcome: &Outcome) -> Value {
    let objects = outcome.objects();
    let [group] = &*objects else {
        unreachable!("{objects:?}")
    };
    assert_eq!(group.name.as_str(), "bert");
    assert_eq!(group.apply.name(), "while-suspended");
    let kind = (group.kind.api_version(), group.kind.kind());
    assert_eq!(kind, ("scheduling.volcano.sh/v1beta1", "PodGroup"));
    match &group.content {
        Content::Body(body) => body.get("spec").cloned().unwrap_or_default(),
        other => unreachable!("{other:?}"),
    }
}
