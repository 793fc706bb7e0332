//! The requirements of mpirun on a runtime and a TrainJob.

use trainyard_sdk::{
    Context, NODE, TRAINER,
    paths::{HOST_NAMES, REPLICATED_JOBS},
};

use crate::{
    HOSTFILE_VOLUME, KEYS_VOLUME,
    config::MpiConfig,
    own_name::OwnName,
    pods::{LAUNCHER, Members, Pods},
};

/// The label of pods that run the TrainJob's command.
const ANCESTOR_LABEL: &str = "trainer.kubeflow.org/trainjob-ancestor-step";

/// Reports all requirements that are not met.
pub(crate) fn check(ctx: &Context, config: &MpiConfig, members: &Members) {
    command(ctx, &members.launcher);
    label(ctx, members);
    volumes(ctx, members);
    names(ctx, config, members);
    if config.run_launcher_as_node {
        host_network(ctx, config, &members.launcher);
    }
}

/// Checks that the launcher's command is a program. Without one, the image's entry point has to start mpirun.
fn command(ctx: &Context, launcher: &Pods) {
    let path = "/trainer/command";
    let spec = ctx.job().spec();
    if spec.kind(path).as_deref() == Some("array") && spec.len(path) == 0 {
        let message = "is empty, so the launcher runs the entry point of its image, which has to start mpirun; remove it to use the runtime's command";
        ctx.warn(message, Some("spec.trainer.command"));
    }
    let first = launcher.container.command().unwrap_or_default();
    let is_blank = first
        .first()
        .is_some_and(|program| program.trim().is_empty());
    if !is_blank {
        return;
    }
    let field = if spec.kind(path).is_some() {
        "spec.trainer.command".to_owned()
    } else {
        launcher.set.path_in(&launcher.container, "command")
    };
    let message = "must begin with the name of a program; found an empty word; set it to a command such as `[mpirun, python, train.py]`, or remove it to use the runtime's";
    ctx.error(message, Some(&field));
}

/// Checks that the TrainJob does not replace the SSH server of the nodes. Its command and arguments are those of the pods with the trainer's
/// label.
fn label(ctx: &Context, members: &Members) {
    let nodes = members.nodes.iter();
    let mut labelled = nodes.filter(|nodes| nodes.set.ancestor().as_deref() == Some(TRAINER));
    if labelled.next().is_none() {
        return;
    }
    let path = format!("{REPLICATED_JOBS}[{NODE}].template.metadata.labels[{ANCESTOR_LABEL}]");
    let spec = ctx.job().spec();
    if spec.len("/trainer/command") > 0 {
        let message = format!(
            "must not be on the nodes, because the TrainJob's `command` would replace their SSH server; move the label to the replicated job `{LAUNCHER}`"
        );
        ctx.error(&message, Some(&path));
    } else if spec.len("/trainer/args") > 0 {
        let message = format!(
            "is on the nodes, so the TrainJob's `args` are those of their SSH server; move the label to the replicated job `{LAUNCHER}` if they belong to the command that starts mpirun"
        );
        ctx.warn(&message, Some(&path));
    }
}

/// Checks that the runtime does not use the names of this plugin's volumes.
fn volumes(ctx: &Context, members: &Members) {
    for Pods { set, .. } in members.all() {
        let Some(base) = ctx.base_of(set) else {
            continue;
        };
        for volume in [KEYS_VOLUME, HOSTFILE_VOLUME] {
            let is_own = volume == KEYS_VOLUME || set.name() == LAUNCHER;
            if is_own && base.volume(volume).is_some() {
                let message = format!(
                    "the volume name `{volume}` is reserved by the MPI plugin; rename the volume"
                );
                ctx.error(
                    &message,
                    Some(&set.path(&format!("volumes[{volume}].name"))),
                );
            }
        }
    }
}

/// Checks that pods have DNS names: mpirun finds each host of its hostfile by name, and daemons on the nodes may call the launcher by name.
fn names(ctx: &Context, config: &MpiConfig, members: &Members) {
    let nodes = members.nodes.as_ref();
    let has_others = nodes.is_some_and(|nodes| nodes.set.address_count() > 0);
    if has_others && !ctx.info().has_host_names() {
        let message = "must not be false, because mpirun finds the pods by their DNS names";
        ctx.error(message, Some(HOST_NAMES));
    }
    let is_called_back = has_others && config.mpi_implementation.calls_back_by_name();
    for Pods { set, .. } in members.all() {
        let is_named = match &*set.name() {
            LAUNCHER => config.run_launcher_as_node || is_called_back,
            _ => has_others,
        };
        if is_named && !set.is_indexed() {
            let message =
                "must not be `NonIndexed`, because mpirun finds the pods by their indexed names";
            ctx.error(message, Some(&set.job_path("completionMode")));
        }
    }
}

/// Warns if mpirun may not recognize the launcher as one of the hosts, because its host name is that of the machine.
fn host_network(ctx: &Context, config: &MpiConfig, launcher: &Pods) {
    let Some(versions) = config.mpi_implementation.compares_names() else {
        return;
    };
    if OwnName::of(ctx, &launcher.set) == OwnName::Machine {
        let message = format!(
            "is true on a launcher that is a node; {versions} does not recognize its own line of the hostfile under the machine's name, and connects to itself by SSH; remove `hostNetwork` from the launcher, or set `runLauncherAsNode: false`"
        );
        ctx.warn(&message, Some(&launcher.set.path("hostNetwork")));
    }
}
