//! Where the runtime's author can mend something: paths for warnings and errors.

use crate::contract::{Container, PodSet};

/// Where a runtime says whether its pods have DNS names.
pub const HOST_NAMES: &str = "spec.template.spec.network.enableDNSHostnames";

/// Where a runtime has its replicated jobs.
pub const REPLICATED_JOBS: &str = "spec.template.spec.replicatedJobs";

impl PodSet {
    /// The path of a field of the pods' spec in the runtime, as `volumes[data]`.
    #[must_use]
    pub fn path(&self, field: &str) -> String {
        self.job_path(&format!("template.spec.{field}"))
    }

    /// The path of a field of the Job's spec in the runtime, such as `backoffLimit`.
    #[must_use]
    pub fn job_path(&self, field: &str) -> String {
        let name = self.name();
        format!("{REPLICATED_JOBS}[{name}].template.spec.{field}")
    }

    /// The path of a field of one of the containers in the runtime, as `command`.
    #[must_use]
    pub fn path_in(&self, container: &Container, field: &str) -> String {
        let list = match container.is_init() {
            true => "initContainers",
            false => "containers",
        };
        self.path(&format!("{list}[{}].{field}", container.name()))
    }
}
