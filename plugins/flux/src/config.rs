//! The block `mlPolicy.flux` of a runtime.

use trainyard_sdk::Config;

/// `mlPolicy.flux`.
#[derive(Config, Debug)]
pub(crate) struct FluxConfig {
    /// Tasks on each node where the TrainJob gives no number; the host counts it among the explicit ones from 2 on, since 1 is what
    /// the API server writes where nothing was written.
    #[expect(
        dead_code,
        reason = "the host counts the number, and this is its schema"
    )]
    #[config(minimum = 1, maximum = 2147483647)]
    pub(crate) num_proc_per_node: Option<i64>,
}
