//! Sets NCCL's env vars for nodes with accelerators, unless a runtime or a TrainJob sets them.

use trainyard_sdk::{Context, Failure, Transform};

/// The plugin.
pub struct Nccl;

trainyard_sdk::plugin!(Nccl: transform);

/// The default values.
const DEFAULTS: &[(&str, &str)] = &[
    ("NCCL_DEBUG", "WARN"),
    ("NCCL_IB_DISABLE", "0"),
    ("NCCL_ASYNC_ERROR_HANDLING", "1"),
];

impl Transform for Nccl {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        for pod_set in ctx.info().with_ancestor("trainer") {
            if pod_set.accelerators() == Some(0) {
                continue;
            }
            let Some(node) = pod_set.container("node") else {
                continue;
            };
            ctx.because("a node has accelerators");
            for (name, value) in DEFAULTS {
                node.default_env(name, value);
            }
            if node.env("NCCL_SOCKET_IFNAME").is_none() {
                ctx.because("the interface that every pod has");
                node.put_env("NCCL_SOCKET_IFNAME", "eth0");
            }
            ctx.because("more sockets for more nodes");
            let threads = if ctx.job().nodes() > 8 { "8" } else { "4" };
            node.default_env("NCCL_SOCKET_NTHREADS", threads);
        }
        Ok(())
    }
}
