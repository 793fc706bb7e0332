//! The Torch policy: it sets the `PET_*` env vars of PyTorch's elastic launcher, opens the port of the rendezvous, and completes the command
//! of torchtune.

mod config;
mod elastic;
mod processes;
mod torchtune;

use trainyard_sdk::{
    Container, Context, Failure, POD_INDEX, PodSet, RendezvousConfig, RendezvousPort, Transform,
};

use self::{
    config::{EnvInjection, TorchConfig},
    elastic::Bounds,
    processes::{count, processes, warn_of_several_slices},
};

/// The Torch policy.
pub struct Torch;

trainyard_sdk::plugin!(Torch: transform; config = TorchConfig; operator_config = RendezvousConfig);

impl Transform for Torch {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<TorchConfig>()?;
        let (pod_set, node) = ctx.trainer("torch")?;
        if ctx.job().nodes() > 1 {
            ctx.warn_of_unreachable_nodes("Torch", &pod_set);
        }
        let operator = ctx.job().operator_config_as::<RendezvousConfig>()?;
        let port = RendezvousPort::of(ctx, &pod_set, &node, &operator);
        port.warn_of_host_network(ctx, &pod_set, "torch");
        let environment = Environment::of(ctx, &pod_set, &node, &config, port);
        warn_of_several_slices(ctx, &pod_set, &environment.processes);
        environment.set_nodes(ctx, &node);
        let command = node.command().unwrap_or_default();
        match environment.bounds {
            Some(bounds) => bounds.warn_of_backoff_limit(ctx, &pod_set),
            None => ctx.warn_of_lone_restarts(&pod_set),
        }
        if torchtune::is_incomplete(&command, &node) {
            if let Some(bounds) = environment.bounds {
                bounds.refuse_for_torchtune(ctx);
            }
            torchtune::complete(ctx, &pod_set, &node, &environment);
        } else {
            environment.set_master(ctx, &node);
            torchtune::warn_of_local_rendezvous(ctx, &pod_set, &node, &command);
        }
        let processes = count(&pod_set, &environment.processes);
        ctx.warn_of_little_shared_memory(&pod_set, &node, processes);
        ctx.because("rendezvous port");
        port.open(&node);
        if let Some(injection) = &config.env_injection {
            inject(ctx, injection, &environment)?;
        }
        Ok(())
    }
}

/// The environment of every node.
pub(crate) struct Environment {
    bounds: Option<Bounds>,
    processes: String,
    processes_because: &'static str,
    master: String,
    port: RendezvousPort,
}

impl Environment {
    fn of(
        ctx: &Context,
        pod_set: &PodSet,
        node: &Container,
        config: &TorchConfig,
        port: RendezvousPort,
    ) -> Self {
        let (processes, processes_because) =
            processes(ctx, pod_set, node, config.num_proc_per_node);
        Self {
            bounds: Bounds::of(ctx, config),
            processes,
            processes_because,
            master: pod_set.address(0, 0),
            port,
        }
    }

    /// Returns the address and the port at which the nodes meet.
    pub(crate) fn endpoint(&self) -> String {
        format!("{}:{}", self.master, self.port.number)
    }

    fn set(&self, ctx: &Context, container: &Container) {
        self.set_nodes(ctx, container);
        self.set_master(ctx, container);
    }

    fn set_nodes(&self, ctx: &Context, container: &Container) {
        let (nodes, because) = match self.bounds {
            Some(bounds) => (
                bounds.nodes(),
                "the runtime's minimum, and the number of nodes",
            ),
            None => (ctx.job().nodes().to_string(), "the number of nodes"),
        };
        ctx.because(because);
        container.put_env("PET_NNODES", &nodes);
        ctx.because(self.processes_because);
        container.put_env("PET_NPROC_PER_NODE", &self.processes);
        ctx.because("the pod's index in its Job");
        container.put_env_field("PET_NODE_RANK", POD_INDEX);
    }

    fn set_master(&self, ctx: &Context, container: &Container) {
        ctx.because("the first pod of the trainer's replicated job");
        container.put_env("PET_MASTER_ADDR", &self.master);
        ctx.because(self.port.because);
        container.put_env("PET_MASTER_PORT", &self.port.number.to_string());
        if let Some(bounds) = self.bounds {
            bounds.set(ctx, container, &self.endpoint());
        }
    }
}

/// Sets the environment in the containers that the runtime names.
fn inject(
    ctx: &Context,
    injection: &EnvInjection,
    environment: &Environment,
) -> Result<(), Failure> {
    let path = "spec.mlPolicy.torch.envInjection.targets";
    for (at, target) in injection.targets.iter().enumerate() {
        let Some(pod_set) = ctx.info().pod_set(&target.job_name) else {
            let message = format!("the runtime has no replicated job `{}`", target.job_name);
            return Err(Failure::from(message).at(format!("{path}[{at}].jobName")));
        };
        for (index, name) in target.container_names.iter().enumerate() {
            let Some(container) = pod_set.container(&name.0) else {
                let message = format!(
                    "the replicated job `{}` has no container `{}`",
                    target.job_name, name.0
                );
                return Err(
                    Failure::from(message).at(format!("{path}[{at}].containerNames[{index}]"))
                );
            };
            environment.set(ctx, &container);
        }
    }
    Ok(())
}
