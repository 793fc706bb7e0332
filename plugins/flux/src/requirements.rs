//! The requirements of a Flux instance. Each error has the field to correct.

use trainyard_sdk::{Container, Context, Failure, PodSet, paths::HOST_NAMES};

use crate::{INSTALLER, Runtimes, VOLUMES};

/// Returns all requirements that are not met.
pub(crate) fn problems(
    ctx: &Context,
    pod_set: &PodSet,
    node: &Container,
    runtimes: Option<&Runtimes>,
) -> Vec<Failure> {
    let mut problems = Vec::new();
    problems.extend(command(node));
    problems.extend(host_names(ctx, pod_set));
    if let Some(runtimes) = runtimes {
        problems.extend(hosts(&runtimes.set));
        problems.extend(names(runtimes));
    }
    problems
}

/// Checks that Flux can run the command.
fn command(node: &Container) -> Option<Failure> {
    let command = node.command().unwrap_or_default();
    let message = match command.first().map(String::as_str) {
        None => {
            "is required, because Flux cannot use the image's default command; use `sleep infinity` for an interactive instance".to_owned()
        }
        Some(program) if program.trim().is_empty() => {
            "must begin with the name of a program; found an empty word".to_owned()
        }
        // `flux run` would parse it as its own option, and would run a preceding `--` as the command.
        Some(option) if option.starts_with('-') => format!(
            "must begin with the name of a program; found the option `{option}`"
        ),
        Some(_) => return None,
    };
    Some(Failure::from(message).at("spec.trainer.command"))
}

/// Checks that brokers can connect to each other.
fn host_names(ctx: &Context, pod_set: &PodSet) -> Vec<Failure> {
    let mut problems = Vec::new();
    // A single broker has no connections.
    if !ctx.info().has_host_names() && pod_set.address_count() > 1 {
        let message =
            "must not be false, because Flux brokers connect by the DNS names of their pods";
        problems.push(Failure::from(message).at(HOST_NAMES));
    }
    if !pod_set.is_indexed() {
        let message = "must not be `NonIndexed`, because a Flux broker derives its rank from the index in its host name";
        problems.push(Failure::from(message).at(pod_set.job_path("completionMode")));
    }
    problems
}

/// Checks that pods have the host names that brokers expect.
fn hosts(runtimes: &PodSet) -> Vec<Failure> {
    let is_true = |member: &str| runtimes.raw(member).and_then(|value| value.boolean(""));
    let mut problems = Vec::new();
    if is_true("setHostnameAsFQDN") == Some(true) {
        let message =
            "must not be true, because a Flux broker derives its rank from the short host name";
        problems.push(Failure::from(message).at(runtimes.path("setHostnameAsFQDN")));
    }
    if is_true("hostNetwork") == Some(true) {
        let message = "must not be true, because a Flux broker derives its rank from the host name of its pod";
        problems.push(Failure::from(message).at(runtimes.path("hostNetwork")));
    }
    problems
}

/// Checks that the runtime does not use names that this plugin needs.
fn names(runtimes: &Runtimes) -> Vec<Failure> {
    let mut problems = Vec::new();
    let set = &runtimes.set;
    match &runtimes.installer {
        Some(container) if !container.is_init() => {
            let message = format!(
                "the container name `{INSTALLER}` is reserved for the init container that installs Flux; rename the container"
            );
            let field = set.path_in(container, "name");
            problems.push(Failure::from(message).at(field));
        }
        Some(installer) if installer.is_sidecar() => {
            let message = "must not be `Always`, because the init container that installs Flux must finish before the node container starts";
            let field = set.path_in(installer, "restartPolicy");
            problems.push(Failure::from(message).at(field));
        }
        _ => {}
    }
    for volume in VOLUMES {
        if set.volume(volume).is_some() {
            let message = format!(
                "the volume name `{volume}` is reserved by the Flux plugin; rename the volume"
            );
            let field = set.path(&format!("volumes[{volume}].name"));
            problems.push(Failure::from(message).at(field));
        }
    }
    problems
}
