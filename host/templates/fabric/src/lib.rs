//! Gives the nodes with accelerators network devices, and tells NCCL to use them.

use trainyard_sdk::{Config, Context, Failure, Transform};

/// The extended resource of a network device. The claim and the grant name it, too.
const NIC: &str = "example.com/nic";

/// The plugin's configuration in a runtime.
#[derive(Config, Debug)]
pub struct FabricConfig {
    /// The number of network devices for each node.
    #[config(default = 1, minimum = 1, maximum = 16)]
    pub devices: u32,
}

/// The plugin.
pub struct Fabric;

trainyard_sdk::plugin!(Fabric: transform; config = FabricConfig);

impl Transform for Fabric {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<FabricConfig>()?;
        for pod_set in ctx.info().nodes() {
            let Some(node) = pod_set.container("node") else {
                continue;
            };
            if pod_set.accelerators() == Some(0) {
                continue;
            }
            if node.limit(NIC).is_none() {
                ctx.because("`devices` in the configuration of trainyard-template-fabric");
                node.set_limit(NIC, &config.devices.to_string());
            }
            ctx.because("a node with accelerators has network devices");
            node.default_env("NCCL_IB_DISABLE", "0");
            node.default_env("NCCL_IB_HCA", "nic");
        }
        Ok(())
    }
}
