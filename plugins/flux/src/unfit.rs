//! What no Flux instance can run with, each with the field where it can be mended.

use trainyard_sdk::{Container, Context, Failure, PodSet, paths::HOST_NAMES};

use crate::{INSTALLER, VOLUMES};

/// Returns all that no instance can run with.
pub(crate) fn problems(ctx: &Context, pod_set: &PodSet, node: &Container) -> Vec<Failure> {
    let mut problems = Vec::new();
    problems.extend(command(node));
    problems.extend(host_names(ctx, pod_set));
    let Some(runtimes) = ctx.base().pod_set(&pod_set.name()) else {
        return problems;
    };
    problems.extend(hosts(&runtimes));
    problems.extend(names(&runtimes));
    problems
}

/// A command that Flux can't run.
fn command(node: &Container) -> Option<Failure> {
    let command = node.command().unwrap_or_default();
    let message = match command.first().map(String::as_str) {
        None => {
            "is required: Flux runs a command on the nodes, and does not know the image's own; `sleep infinity` keeps an instance for interactive use".to_owned()
        }
        Some(program) if program.trim().is_empty() => {
            "begins with an empty word: Flux runs a command on the nodes; begin with the name of a program".to_owned()
        }
        // `flux run` would read it as an option, and takes a `--` in front of it for the command.
        Some(option) if option.starts_with('-') => format!(
            "begins with `{option}`, an option: Flux runs a command on the nodes; begin with the name of a program"
        ),
        Some(_) => return None,
    };
    Some(Failure::from(message).at("spec.trainer.command"))
}

/// Pods that do not find each other.
fn host_names(ctx: &Context, pod_set: &PodSet) -> Vec<Failure> {
    let mut problems = Vec::new();
    // One broker connects to no other.
    if !ctx.info().has_host_names() && pod_set.address_count() > 1 {
        let message = "must not be false: Flux brokers connect by the DNS names of their pods";
        problems.push(Failure::from(message).at(HOST_NAMES));
    }
    if !pod_set.is_indexed() {
        let message = "must not be `NonIndexed`: a Flux broker finds its rank by the index that its host name ends in";
        problems.push(Failure::from(message).at(pod_set.job_path("completionMode")));
    }
    problems
}

/// Pods that do not have the host names that the brokers know.
fn hosts(runtimes: &PodSet) -> Vec<Failure> {
    let is_true = |member: &str| runtimes.raw(member).and_then(|value| value.boolean(""));
    let mut problems = Vec::new();
    if is_true("setHostnameAsFQDN") == Some(true) {
        let message =
            "must not be true: a Flux broker finds its rank by the short name of its host";
        problems.push(Failure::from(message).at(runtimes.path("setHostnameAsFQDN")));
    }
    if is_true("hostNetwork") == Some(true) {
        let message = "must not be true: a Flux broker finds its rank by the host name of its pod, and would have that of its machine";
        problems.push(Failure::from(message).at(runtimes.path("hostNetwork")));
    }
    problems
}

/// Names that Flux needs, where the runtime has something else of them.
fn names(runtimes: &PodSet) -> Vec<Failure> {
    let mut problems = Vec::new();
    match runtimes.container(INSTALLER) {
        Some(container) if !container.is_init() => {
            let message = format!(
                "the container name `{INSTALLER}` is reserved for the init container that brings Flux"
            );
            let field = runtimes.path_in(&container, "name");
            problems.push(Failure::from(message).at(field));
        }
        Some(installer) if installer.is_sidecar() => {
            let message = "must not be `Always`: the init container that brings Flux ends before the node container starts";
            let field = runtimes.path_in(&installer, "restartPolicy");
            problems.push(Failure::from(message).at(field));
        }
        _ => {}
    }
    for volume in VOLUMES {
        if runtimes.volume(volume).is_some() {
            let message = format!(
                "the volume name `{volume}` is reserved for Flux: rename the runtime's volume"
            );
            let field = runtimes.path(&format!("volumes[{volume}].name"));
            problems.push(Failure::from(message).at(field));
        }
    }
    problems
}
