//! The Torch policy: it sets the `PET_*` env vars of PyTorch's elastic launcher, opens the port of the rendezvous, and completes the command
//! of torchtune.

mod config;
mod torchtune;

use trainyard_sdk::{Container, Context, Failure, POD_INDEX, PodSet, RENDEZVOUS_PORT, Transform};

use self::config::{EnvInjection, Processes, TorchConfig};

/// The Torch policy.
pub struct Torch;

trainyard_sdk::plugin!(Torch: transform; config = TorchConfig);

impl Transform for Torch {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<TorchConfig>()?;
        let (pod_set, node) = ctx.trainer("torch")?;
        if ctx.job().nodes() > 1 {
            ctx.warn_of_unreachable_nodes("Torch", &pod_set);
        }
        let environment = Environment::of(ctx, &pod_set, &node, config.num_proc_per_node);
        environment.set_nodes(ctx, &node);
        let command = node.command().unwrap_or_default();
        if torchtune::is_incomplete(&command, &node) {
            torchtune::complete(ctx, &pod_set, &node, &environment.processes);
        } else {
            environment.set_master(ctx, &node);
            torchtune::warn_of_local_rendezvous(ctx, &pod_set, &node, &command);
        }
        ctx.because("rendezvous port");
        node.open_rendezvous_port();
        if let Some(injection) = &config.env_injection {
            inject(ctx, injection, &environment)?;
        }
        Ok(())
    }
}

/// The environment of every node.
struct Environment {
    nodes: String,
    processes: String,
    processes_because: &'static str,
    master: String,
}

impl Environment {
    fn of(ctx: &Context, pod_set: &PodSet, node: &Container, default: Option<Processes>) -> Self {
        let (processes, processes_because) = processes(ctx, pod_set, node, default);
        Self {
            nodes: ctx.job().nodes().to_string(),
            processes,
            processes_because,
            master: pod_set.address(0, 0),
        }
    }

    fn set(&self, ctx: &Context, container: &Container) {
        self.set_nodes(ctx, container);
        self.set_master(ctx, container);
    }

    fn set_nodes(&self, ctx: &Context, container: &Container) {
        ctx.because("the number of nodes");
        container.put_env("PET_NNODES", &self.nodes);
        ctx.because(self.processes_because);
        container.put_env("PET_NPROC_PER_NODE", &self.processes);
        ctx.because("the pod's index in its Job");
        container.put_env_field("PET_NODE_RANK", POD_INDEX);
    }

    fn set_master(&self, ctx: &Context, container: &Container) {
        ctx.because("the first pod of the trainer's replicated job");
        container.put_env("PET_MASTER_ADDR", &self.master);
        ctx.because("the port on which the nodes meet");
        container.put_env("PET_MASTER_PORT", &RENDEZVOUS_PORT.to_string());
    }
}

/// The number of processes per node, and the reason. It is `auto` if torchrun itself can count the accelerators.
fn processes(
    ctx: &Context,
    pod_set: &PodSet,
    node: &Container,
    default: Option<Processes>,
) -> (String, &'static str) {
    if let Some(explicit) = ctx.job().processes_per_node() {
        return (
            explicit.to_string(),
            "the number in the TrainJob or the runtime",
        );
    }
    match default {
        Some(Processes::Gpu) => return ("gpu".to_owned(), "the runtime sets `gpu`"),
        Some(Processes::Cpu) => {
            return (
                cpus(ctx, node).to_string(),
                "the runtime sets `cpu`: the CPUs of a node",
            );
        }
        _ => {}
    }
    let has_resource = |device: &trainyard_sdk::Devices| {
        device.accelerator && device.source.starts_with("resource/")
    };
    let devices = pod_set.devices();
    if devices.iter().any(has_resource) {
        return (
            "auto".to_owned(),
            "a node has accelerators, which torchrun counts",
        );
    }
    match pod_set.accelerators() {
        Some(0) => (
            cpus(ctx, node).to_string(),
            match devices.is_empty() {
                true => "a node requests no known accelerator: its CPUs",
                false => "none of a node's devices counts as an accelerator: its CPUs",
            },
        ),
        Some(claimed) => (
            claimed.to_string(),
            "the accelerators of a node's resource claims",
        ),
        None => (
            "auto".to_owned(),
            "the number of accelerators in a node's resource claims is not known",
        ),
    }
}

/// The number of whole CPUs of the node container, at least 1.
fn cpus(ctx: &Context, node: &Container) -> i64 {
    node.request("cpu")
        .and_then(|amount| ctx.quantity_ceil(&amount))
        .unwrap_or(1)
        .max(1)
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
