//! What a runtime and a TrainJob have that mpirun can't run with.

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

/// The label whose pods run a TrainJob's command.
const ANCESTOR_LABEL: &str = "trainer.kubeflow.org/trainjob-ancestor-step";

/// Reports what can't run.
pub(crate) fn check(ctx: &Context, config: &MpiConfig, members: &Members) {
    command(ctx, &members.launcher);
    label(ctx, members);
    volumes(ctx, members);
    names(ctx, config, members);
    if config.run_launcher_as_node {
        host_network(ctx, config, &members.launcher);
    }
}

/// A TrainJob that takes the launcher's command away leaves nothing that starts mpirun.
fn command(ctx: &Context, launcher: &Pods) {
    let path = "/trainer/command";
    let spec = ctx.job().spec();
    let is_taken_away = spec.kind(path).as_deref() == Some("array") && spec.len(path) == 0;
    let first = launcher.container.command().unwrap_or_default();
    let is_blank = first
        .first()
        .is_some_and(|program| program.trim().is_empty());
    if !is_taken_away && !is_blank {
        return;
    }
    let field = if spec.kind(path).is_some() {
        "spec.trainer.command".to_owned()
    } else {
        launcher.set.path_in(&launcher.container, "command")
    };
    let message = "is empty: nothing would start mpirun; write it as `[mpirun, python, train.py]`, or leave it out for the runtime's own";
    ctx.error(message, Some(&field));
}

/// A TrainJob's command takes the place of that of the pods with the trainer's label. On the nodes that is the SSH server.
fn label(ctx: &Context, members: &Members) {
    let nodes = members.nodes.iter();
    let mut labelled = nodes.filter(|nodes| nodes.set.ancestor().as_deref() == Some(TRAINER));
    let spec = ctx.job().spec();
    let mut words = ["command", "args"].into_iter();
    let Some(word) = words.find(|word| spec.len(&format!("/trainer/{word}")) > 0) else {
        return;
    };
    if labelled.next().is_some() {
        let message = format!(
            "is on the nodes, so that the TrainJob's `{word}` would replace their SSH server; move the label to the replicated job `{LAUNCHER}`"
        );
        let path = format!("{REPLICATED_JOBS}[{NODE}].template.metadata.labels[{ANCESTOR_LABEL}]");
        ctx.error(&message, Some(&path));
    }
}

/// A volume of the runtime under a name of this plugin's would have to go, and what mounts it would have the keys instead.
fn volumes(ctx: &Context, members: &Members) {
    for Pods { set, .. } in members.all() {
        let Some(base) = ctx.base().pod_set(&set.name()) else {
            continue;
        };
        for volume in [KEYS_VOLUME, HOSTFILE_VOLUME] {
            let is_own = volume == KEYS_VOLUME || set.name() == LAUNCHER;
            if is_own && base.volume(volume).is_some() {
                let message = format!(
                    "the volume name `{volume}` is reserved for MPI; rename the runtime's volume"
                );
                ctx.error(
                    &message,
                    Some(&set.path(&format!("volumes[{volume}].name"))),
                );
            }
        }
    }
}

/// mpirun finds each host of its hostfile by the name of a pod; and the nodes find the launcher so, if their daemons call it back.
fn names(ctx: &Context, config: &MpiConfig, members: &Members) {
    let nodes = members.nodes.as_ref();
    let has_others = nodes.is_some_and(|nodes| nodes.set.address_count() > 0);
    if has_others && !ctx.info().has_host_names() {
        let message =
            "is false, so mpirun can't find the pods by name; remove it, or set it to true";
        ctx.error(message, Some(HOST_NAMES));
    }
    let is_called_back = has_others && config.mpi_implementation.calls_back_by_name();
    for Pods { set, .. } in members.all() {
        let is_named = match &*set.name() {
            LAUNCHER => config.run_launcher_as_node || is_called_back,
            _ => has_others,
        };
        if is_named && !set.is_indexed() {
            let message = "is `NonIndexed`, so mpirun can't find its pods by name; remove it, or set it to `Indexed`";
            ctx.error(message, Some(&set.job_path("completionMode")));
        }
    }
}

/// With the machine's host name, which is not known here, only some versions of mpirun find that the launcher is one of the hosts.
fn host_network(ctx: &Context, config: &MpiConfig, launcher: &Pods) {
    let Some(versions) = config.mpi_implementation.compares_names() else {
        return;
    };
    if OwnName::of(ctx, &launcher.set) == OwnName::Machine {
        let message = format!(
            "is true, and the launcher is a node: {versions} does not find its own line of the hostfile by the machine's name, and would call itself by SSH; take `hostNetwork` out of the launcher, or set `runLauncherAsNode: false`"
        );
        ctx.warn(&message, Some(&launcher.set.path("hostNetwork")));
    }
}
