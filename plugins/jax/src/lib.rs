//! The JAX policy: programs pass `JAX_*` env vars to `jax.distributed.initialize()`; this plugin sets them, and opens the port of the
//! coordinator.

use trainyard_sdk::{Context, Failure, POD_INDEX, PROCESSES, RENDEZVOUS_PORT, Transform};

/// The JAX policy.
pub struct Jax;

trainyard_sdk::plugin!(Jax: transform);

impl Transform for Jax {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let (pod_set, node) = ctx.trainer("jax")?;
        ctx.warn_of_unreachable_nodes("JAX", &pod_set);
        warn_of_processes(ctx);
        ctx.because("one process for each node");
        node.put_env("JAX_NUM_PROCESSES", &pod_set.address_count().to_string());
        ctx.because("the pod's index in its Job");
        node.put_env_field("JAX_PROCESS_ID", POD_INDEX);
        ctx.because("the coordinator runs in the first pod of the trainer's replicated job");
        let coordinator = format!("{}:{RENDEZVOUS_PORT}", pod_set.address(0, 0));
        node.put_env("JAX_COORDINATOR_ADDRESS", &coordinator);
        ctx.because("the coordinator listens on this port");
        node.open_rendezvous_port();
        Ok(())
    }
}

/// Warns of a number of processes that no env var reflects: a pod has one index, and so one process ID.
fn warn_of_processes(ctx: &Context) {
    let Some(processes @ 2..) = ctx.job().processes_per_node() else {
        return;
    };
    let message = format!(
        "is {processes}, but has no effect: JAX runs one process on each node, which uses all of its devices; remove it, or set a larger `numNodes`"
    );
    ctx.warn(&message, Some(PROCESSES));
}
