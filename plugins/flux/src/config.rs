//! The block `mlPolicy.flux` of a runtime.

use trainyard_sdk::Config;

/// `mlPolicy.flux`.
#[derive(Config, Debug)]
pub(crate) struct FluxConfig {
    /// The number of tasks per node if the TrainJob does not set it. 1 is the same as unset, because the API server sets it by default.
    #[expect(
        dead_code,
        reason = "the host counts the number, and this is its schema"
    )]
    #[config(minimum = 1, maximum = 2147483647)]
    pub(crate) num_proc_per_node: Option<i64>,
}
