//! The parts of a TrainJob's spec that are needed without rendering it.

use serde_json::Value;
use trainyard_api::{dialect, names};

/// The parts of a spec that are read even if the rest is invalid, so that suspending, ending and deleting always work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DesiredState {
    pub(crate) suspend: bool,
    pub(crate) deadline: Option<i64>,
    pub(crate) managed_by_us: bool,
    pub(crate) not_supported: Option<String>,
}

impl DesiredState {
    /// Reads them from the object.
    pub(crate) fn of(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let flag = |pointer: &str| object.pointer(pointer).and_then(Value::as_bool);
        let group = text("/spec/runtimeRef/apiGroup").unwrap_or(names::TRAINER_GROUP);
        let group = dialect::runtime_group(group);
        let kind = text("/spec/runtimeRef/kind").unwrap_or(names::CLUSTER_TRAINING_RUNTIME);
        let kinds = [names::CLUSTER_TRAINING_RUNTIME, names::TRAINING_RUNTIME];
        let supported = group == names::TRAINER_GROUP && kinds.contains(&kind);
        let managed_by = text("/spec/managedBy").unwrap_or(names::MANAGED_BY_TRAINER);
        Self {
            suspend: flag("/spec/suspend").unwrap_or(false),
            deadline: object
                .pointer("/spec/activeDeadlineSeconds")
                .and_then(Value::as_i64),
            managed_by_us: managed_by == names::MANAGED_BY_TRAINER,
            not_supported: (!supported).then(|| {
                format!(
                    "the runtime {kind}.{group} is not supported; {} and {} of {} are",
                    kinds[0],
                    kinds[1],
                    names::TRAINER_GROUP
                )
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn not_supported(group: &str) -> Option<String> {
        let reference = json!({"name": "torch", "apiGroup": group});
        DesiredState::of(&json!({"spec": {"runtimeRef": reference}})).not_supported
    }

    #[test]
    fn the_runtime_guides_api_group_is_the_current_one() {
        assert_eq!(not_supported("trainer.kubeflow.org"), None);
        assert_eq!(not_supported("kubeflow.org"), None);
        let other = not_supported("example.com");
        assert!(other.is_some_and(|why| why.contains("ClusterTrainingRuntime.example.com")));
    }
}
