//! Paths of fields of the runtime, for warnings and errors.

use crate::contract::{Container, PodSet};

/// The field of a runtime that sets whether its pods have DNS names.
pub const HOST_NAMES: &str = "spec.template.spec.network.enableDNSHostnames";

/// The field of a runtime that contains its replicated jobs.
pub const REPLICATED_JOBS: &str = "spec.template.spec.replicatedJobs";

impl PodSet {
    /// Returns the path of a field of the pod spec in the runtime, such as `volumes[data]`.
    #[must_use]
    pub fn path(&self, field: &str) -> String {
        self.job_path(&format!("template.spec.{field}"))
    }

    /// Returns the path of a label or an annotation of the pods in the runtime. `list` is `labels` or `annotations`.
    #[must_use]
    pub fn metadata_path(&self, list: &str, key: &str) -> String {
        self.job_path(&format!("template.metadata.{list}[{key}]"))
    }

    /// Returns the path of a field of the Job's spec in the runtime, such as `backoffLimit`.
    #[must_use]
    pub fn job_path(&self, field: &str) -> String {
        let name = self.name();
        format!("{REPLICATED_JOBS}[{name}].template.spec.{field}")
    }

    /// Returns the path of a field of this container in the runtime, such as `command`.
    #[must_use]
    pub fn path_in(&self, container: &Container, field: &str) -> String {
        let list = match container.is_init() {
            true => "initContainers",
            false => "containers",
        };
        self.path(&format!("{list}[{}].{field}", container.name()))
    }
}
