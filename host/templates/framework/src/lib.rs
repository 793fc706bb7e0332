//! Tells the processes of a framework how many nodes there are, which one they run on, and where the first one listens.

use trainyard_sdk::{Config, Context, Failure, POD_INDEX, Transform};

/// `mlPolicy.plugin.config` of a runtime.
#[derive(Config, Debug)]
pub struct FrameworkConfig {
    /// The port on which the first node listens.
    #[config(default = 29400, minimum = 1, maximum = 65535)]
    pub port: u32,
}

/// The plugin.
pub struct Framework;

trainyard_sdk::plugin!(Framework: transform; config = FrameworkConfig);

impl Transform for Framework {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<FrameworkConfig>()?;
        let (pod_set, node) = ctx.trainer("trainyard-template-framework")?;
        ctx.warn_of_unreachable_nodes("trainyard-template-framework", &pod_set);
        ctx.because("one process for each node");
        node.put_env("FRAMEWORK_NODES", &pod_set.address_count().to_string());
        ctx.because("the pod's index in its Job");
        node.put_env_field("FRAMEWORK_NODE", POD_INDEX);
        ctx.because("the first node listens there");
        let address = format!("{}:{}", pod_set.address(0, 0), config.port);
        node.put_env("FRAMEWORK_ADDRESS", &address);
        Ok(())
    }
}
