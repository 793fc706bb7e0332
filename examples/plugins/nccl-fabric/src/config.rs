//! The plugin's configuration in a runtime and in its PolicyPlugin.

use std::collections::BTreeMap;

use trainyard_sdk::{Config, Context, Failure};

/// The plugin's configuration in a runtime.
#[derive(Config, Debug)]
pub(crate) struct FabricConfig {
    /// The network devices of each node.
    pub(crate) devices: Option<Devices>,
    /// The networks that Multus adds to the pods, such as `fabric/rail-0`, instead of the operator's.
    pub(crate) networks: Vec<String>,
    /// Env vars of NCCL, such as `NCCL_IB_HCA: mlx5`, in addition to the operator's.
    pub(crate) env: BTreeMap<String, String>,
}

/// Network devices that a device plugin offers.
#[derive(Config, Debug)]
pub(crate) struct Devices {
    /// The extended resource, such as `rdma/rdma_shared_device_a`.
    #[config(min_length = 1, max_length = 317)]
    pub(crate) resource: String,
    /// The number for each node.
    #[config(default = 1, minimum = 1, maximum = 1024)]
    pub(crate) count: u32,
    /// Whether programs may lock memory, which RDMA needs.
    #[config(default = true)]
    pub(crate) lock_memory: bool,
}

/// The operator's configuration.
#[derive(Config, Debug)]
pub(crate) struct ClusterConfig {
    /// The networks that Multus adds to the pods.
    pub(crate) networks: Vec<String>,
    /// Env vars of NCCL, such as `NCCL_SOCKET_IFNAME: eth0`.
    pub(crate) env: BTreeMap<String, String>,
}

/// What both configurations together say.
pub(crate) struct Fabric {
    pub(crate) devices: Option<Devices>,
    pub(crate) networks: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
}

impl Fabric {
    /// Reads the configurations.
    ///
    /// # Errors
    /// An env var is not NCCL's, or has a value that cannot be a line of NCCL's configuration file.
    pub(crate) fn of(ctx: &Context) -> Result<Self, Failure> {
        let config = ctx.job().config_as::<FabricConfig>()?;
        let cluster = ctx.job().operator_config_as::<ClusterConfig>()?;
        let mut env = cluster.env;
        env.extend(config.env);
        for (name, value) in &env {
            if !name.starts_with("NCCL_") || value.contains(char::is_control) {
                let message = format!(
                    "`env` of the plugin nccl-fabric: `{name}` must begin with `NCCL_`, and its value must be one line; remove it, or correct it in the configuration of the runtime or the operator"
                );
                return Err(Failure::from(message).at("spec.plugins"));
            }
        }
        let networks = match config.networks.is_empty() {
            true => cluster.networks,
            false => config.networks,
        };
        Ok(Self {
            devices: config.devices,
            networks,
            env,
        })
    }
}
