//! The MPI policy: mpirun in the launcher's pod starts processes on the nodes by SSH. This plugin gives it the nodes' names with
//! the number of processes on each, the keys, and the environment that the implementation of MPI reads.

mod config;
mod implementation;
mod pods;

use trainyard_sdk::{Build, Context, Failure, KeyFile, Mount, PodSet, Transform};

use self::{
    config::MpiConfig,
    implementation::{HOSTFILE, HOSTFILE_DIR},
    pods::{Hosts, Members, Pods},
};

/// The volume with the keys, and that with the hostfile.
const KEYS_VOLUME: &str = "mpi-ssh-auth";
const HOSTFILE_VOLUME: &str = "mpi-hostfile";
/// The same as endings of objects' names.
const KEYS_SUFFIX: &str = "-mpi-ssh-auth";
const HOSTFILE_SUFFIX: &str = "-mpi-hostfile";
/// The keys of the Secret. The first is the one that its type demands.
const PRIVATE_KEY: &str = "ssh-privatekey";
const PUBLIC_KEY: &str = "ssh-publickey";
/// Where the home of root is.
const ROOT_HOME: &str = "/root/";
/// The configuration's path of the keys.
const MOUNT_PATH: &str = "spec.mlPolicy.mpi.sshAuthMountPath";

/// The MPI policy.
pub struct Mpi;

trainyard_sdk::plugin!(Mpi: transform, build; config = MpiConfig);

impl Transform for Mpi {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<MpiConfig>()?;
        let mount_path = mount_path(ctx, &config);
        let members = Members::find(ctx, &config);
        if let Some(members) = &members {
            members.check_counts(ctx, &config);
            check_command(ctx, &members.launcher);
        }
        let hosts = Hosts::of(ctx, &config);
        if let (Some(members), Some(hosts), Some(path)) = (members, hosts, mount_path) {
            mount_keys(ctx, &members, &path);
            mount_hostfile(ctx, &members.launcher, &hosts);
            set_environment(ctx, &config, &members.launcher, &hosts);
            if config.mpi_implementation.calls_back_by_name() {
                search_pods(ctx, &members);
            }
        }
        Ok(())
    }
}

impl Build for Mpi {
    fn build(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<MpiConfig>()?;
        emit_keys(ctx);
        emit_hostfile(ctx, &config);
        Ok(())
    }
}

/// Where the keys are mounted; an error if nothing can be mounted there.
fn mount_path(ctx: &Context, config: &MpiConfig) -> Option<String> {
    let path = &config.ssh_auth_mount_path;
    let problem = if !path.starts_with('/') {
        "is not an absolute path"
    } else if path.contains(':') {
        "holds a `:`, which no mount path may"
    } else if path.trim_end_matches('/') == HOSTFILE_DIR {
        "is where the launcher has the hostfile"
    } else {
        return Some(path.clone());
    };
    let message = format!("`{path}` {problem}; name the folder `.ssh` of the image's user");
    ctx.error(&message, Some(MOUNT_PATH));
    None
}

/// A TrainJob that takes the launcher's command away leaves nothing that starts mpirun.
fn check_command(ctx: &Context, launcher: &Pods) {
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

/// The keys in each pod: the launcher's mpirun logs in by them, and the nodes let it in by them.
fn mount_keys(ctx: &Context, members: &Members, path: &str) {
    // ssh refuses a private key that others than its owner may read if its owner, which is root, runs it. Where the pods have an
    // `fsGroup`, the kubelet lets that group read the file in any case.
    let is_of_root = path.starts_with(ROOT_HOME);
    let mode = if is_of_root { 0o600 } else { 0o640 };
    for Pods { set, container } in members.all() {
        ctx.because("the keys by which mpirun starts processes on the nodes");
        let files = [
            KeyFile::new(PRIVATE_KEY, "id_rsa").mode(mode),
            KeyFile::new(PUBLIC_KEY, "id_rsa.pub").mode(0o644),
            KeyFile::new(PUBLIC_KEY, "authorized_keys").mode(0o644),
        ];
        set.put_own_secret(KEYS_VOLUME, KEYS_SUFFIX, Some(0o400), &files);
        ctx.because("where ssh looks for keys, by `sshAuthMountPath`");
        container.put_mount(&Mount::new(KEYS_VOLUME, path));
    }
}

fn mount_hostfile(ctx: &Context, launcher: &Pods, hosts: &[Hosts]) {
    let told: Vec<_> = hosts.iter().map(Hosts::told).collect();
    ctx.because(&format!("mpirun starts {}", told.join("; ")));
    let files = [KeyFile::new(HOSTFILE, HOSTFILE).mode(0o444)];
    let set = &launcher.set;
    set.put_own_config_map(HOSTFILE_VOLUME, HOSTFILE_SUFFIX, None, &files);
    launcher
        .container
        .put_mount(&Mount::new(HOSTFILE_VOLUME, HOSTFILE_DIR));
}

fn set_environment(ctx: &Context, config: &MpiConfig, launcher: &Pods, hosts: &[Hosts]) {
    let of_nodes = hosts.iter().find(|hosts| hosts.set.name() == pods::NODE);
    let slots = of_nodes.or(hosts.first()).map_or(1, |hosts| hosts.slots);
    for var in config.mpi_implementation.environment(slots) {
        ctx.because(var.because);
        launcher.container.put_env(var.name, &var.value);
    }
}

/// Makes the pods' host names known to each other, without their subdomain.
fn search_pods(ctx: &Context, members: &Members) {
    let info = ctx.info();
    let (subdomain, namespace) = (info.subdomain(), ctx.job().namespace());
    let domain = format!("{subdomain}.{namespace}.svc.{}", info.cluster_domain());
    ctx.because("processes on the nodes call the launcher by its host name");
    for Pods { set, .. } in members.all() {
        set.add_dns_search(&domain);
    }
}

fn emit_keys(ctx: &Context) {
    let objects = ctx.objects();
    let pair = objects.key_pair("ssh", "ecdsa-p521");
    let secret = objects.emit("v1", "Secret", KEYS_SUFFIX, None);
    secret.set_type("kubernetes.io/ssh-auth");
    secret.set_immutable();
    secret.append_secret(PRIVATE_KEY, &pair.private("sec1-pem"));
    secret.append_secret(PUBLIC_KEY, &pair.public("openssh"));
}

fn emit_hostfile(ctx: &Context, config: &MpiConfig) {
    let hostfile = ctx.objects().emit("v1", "ConfigMap", HOSTFILE_SUFFIX, None);
    for Hosts { set, slots, .. } in Hosts::of(ctx, config).into_iter().flatten() {
        let end = config.mpi_implementation.line_end(slots);
        hostfile.append(HOSTFILE, &lines(&set, &end));
    }
}

/// A line for each pod.
fn lines(set: &PodSet, end: &str) -> String {
    set.joined_addresses(0, set.address_count(), end) + end
}
