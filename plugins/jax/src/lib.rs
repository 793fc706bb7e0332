//! The JAX policy: programs pass `JAX_*` env vars to `jax.distributed.initialize()`; this plugin sets them, and opens the port of the
//! coordinator.

use trainyard_sdk::{
    Container, Context, Failure, POD_INDEX, PROCESSES, RendezvousConfig, RendezvousPort, Transform,
};

/// The JAX policy.
pub struct Jax;

trainyard_sdk::plugin!(Jax: transform; operator_config = RendezvousConfig);

impl Transform for Jax {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let operator = ctx.job().operator_config_as::<RendezvousConfig>()?;
        let (pod_set, node) = ctx.trainer("jax")?;
        let port = RendezvousPort::of(ctx, &pod_set, &node, &operator);
        ctx.warn_of_unreachable_nodes("JAX", &pod_set);
        port.warn_of_host_network(ctx, &pod_set, "jax");
        ctx.warn_of_lone_restarts(&pod_set);
        warn_of_processes(ctx);
        ctx.because("one process for each node");
        node.put_env("JAX_NUM_PROCESSES", &pod_set.address_count().to_string());
        ctx.because("the pod's index in its Job");
        node.put_env_field("JAX_PROCESS_ID", POD_INDEX);
        let host = pod_set.address(0, 0);
        let on_port = format!("{host}:{}", port.number);
        if let Some(other) = on_other_port(&node, &host).filter(|other| *other != on_port) {
            ctx.because("the coordinator runs in the first pod of the trainer's replicated job, on the port of the TrainJob");
            node.put_env(COORDINATOR, &other);
            return Ok(());
        }
        ctx.because("the coordinator runs in the first pod of the trainer's replicated job");
        node.put_env(COORDINATOR, &on_port);
        ctx.because("the coordinator listens on this port");
        port.open(&node);
        Ok(())
    }
}

/// The address of the coordinator.
const COORDINATOR: &str = "JAX_COORDINATOR_ADDRESS";

/// Returns the TrainJob's address of the coordinator if only its port can differ: JAX's coordinator listens on any.
fn on_other_port(node: &Container, host: &str) -> Option<String> {
    let owner = node.env_owner(COORDINATOR)?;
    let address = node.env(COORDINATOR).filter(|_| owner == "trainjob")?;
    let port = address.strip_prefix(host)?.strip_prefix(':')?;
    is_port(port).then_some(address)
}

/// Whether it is a port in plain decimal form. How other spellings are read, such as `+5` and `05`, depends on the release of JAX.
fn is_port(text: &str) -> bool {
    let number = text.parse::<u16>();
    number.is_ok_and(|number| number > 0 && number.to_string() == text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_have_one_spelling() {
        assert!(is_port("1") && is_port("65535"));
        for text in ["", "0", "+005", "05", "-1", "65536", "1 "] {
            assert!(!is_port(text), "{text}");
        }
    }
}
