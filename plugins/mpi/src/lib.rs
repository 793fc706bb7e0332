//! The MPI policy: mpirun in the launcher's pod starts processes on the nodes by SSH. This plugin provides the hostfile with the number of
//! processes on each node, the SSH keys, and the env vars of the MPI implementation.

mod config;
mod implementation;
mod mount_path;
mod own_name;
mod pods;
mod requirements;

use trainyard_sdk::{Build, Context, Failure, KeyFile, Mount, NODE, Transform};

use self::{
    config::MpiConfig,
    implementation::{HOSTFILE, HOSTFILE_DIR},
    mount_path::MountPath,
    own_name::OwnName,
    pods::{Hosts, Members, Pods},
};

/// The volumes with the keys and with the hostfile.
const KEYS_VOLUME: &str = "mpi-ssh-auth";
const HOSTFILE_VOLUME: &str = "mpi-hostfile";
/// The suffixes of their objects.
const KEYS_SUFFIX: &str = "-mpi-ssh-auth";
const HOSTFILE_SUFFIX: &str = "-mpi-hostfile";
/// The keys of the Secret. Its type requires the first.
const PRIVATE_KEY: &str = "ssh-privatekey";
const PUBLIC_KEY: &str = "ssh-publickey";

/// The MPI policy.
pub struct Mpi;

trainyard_sdk::plugin!(Mpi: transform, build; config = MpiConfig);

impl Transform for Mpi {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<MpiConfig>()?;
        let mount_path = MountPath::read(ctx, &config);
        let members = Members::find(ctx, &config);
        if let Some(members) = &members {
            members.check_counts(ctx, &config);
            requirements::check(ctx, &config, members);
        }
        let hosts = Hosts::of(ctx, &config);
        if let (Some(members), Some(hosts), Some(path)) = (members, hosts, mount_path) {
            for hosts in &hosts {
                hosts.warn_of_shared_accelerators(ctx);
                hosts.warn_of_little_shared_memory(ctx);
            }
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

/// Mounts the keys in each pod. mpirun in the launcher logs in with them, and the nodes authorize them.
fn mount_keys(ctx: &Context, members: &Members, path: &MountPath) {
    // ssh rejects a private key that others can read if it runs as the file's owner, which is root. If the pods have an `fsGroup`, the
    // kubelet makes the file readable for that group in any case.
    let mode = if path.is_of_root() { 0o600 } else { 0o640 };
    for Pods { set, container } in members.all() {
        ctx.because("the keys with which mpirun starts processes on the nodes");
        let files = [
            KeyFile::new(PRIVATE_KEY, "id_rsa").mode(mode),
            KeyFile::new(PUBLIC_KEY, "id_rsa.pub").mode(0o644),
            KeyFile::new(PUBLIC_KEY, "authorized_keys").mode(0o644),
        ];
        set.put_own_secret(KEYS_VOLUME, KEYS_SUFFIX, Some(0o400), &files);
        ctx.because("where ssh looks for keys, from `sshAuthMountPath`");
        container.put_mount(&Mount::new(KEYS_VOLUME, path.as_written()));
    }
}

fn mount_hostfile(ctx: &Context, launcher: &Pods, hosts: &[Hosts]) {
    let summaries: Vec<_> = hosts.iter().map(|hosts| hosts.summary(ctx)).collect();
    ctx.because(&format!("mpirun starts {}", summaries.join("; ")));
    let files = [KeyFile::new(HOSTFILE, HOSTFILE).mode(0o444)];
    let set = &launcher.set;
    set.put_own_config_map(HOSTFILE_VOLUME, HOSTFILE_SUFFIX, None, &files);
    launcher
        .container
        .put_mount(&Mount::new(HOSTFILE_VOLUME, HOSTFILE_DIR));
}

fn set_environment(ctx: &Context, config: &MpiConfig, launcher: &Pods, hosts: &[Hosts]) {
    let of_nodes = hosts.iter().find(|hosts| hosts.set.name() == NODE);
    let slots = of_nodes.or(hosts.first()).map_or(1, |hosts| hosts.slots);
    let is_resolved = config.run_launcher_as_node && OwnName::of(ctx, &launcher.set).is_resolved();
    let resolving = config.mpi_implementation.resolving();
    let resolving = resolving.filter(|_| is_resolved);
    let vars = config.mpi_implementation.environment(slots);
    for var in vars.into_iter().chain(resolving) {
        ctx.because(var.because);
        if var.is_default() {
            launcher.container.default_env(var.name, &var.value);
        } else {
            launcher.container.put_env(var.name, &var.value);
        }
    }
}

/// Lets pods resolve each other's host names without the subdomain.
fn search_pods(ctx: &Context, members: &Members) {
    let info = ctx.info();
    let (subdomain, namespace) = (info.subdomain(), ctx.job().namespace());
    let domain = format!("{subdomain}.{namespace}.svc.{}", info.cluster_domain());
    ctx.because("processes on the nodes connect to the launcher by its host name");
    for Pods { set, .. } in members.all() {
        set.add_dns_search(&domain);
    }
}

fn emit_keys(ctx: &Context) {
    let objects = ctx.objects();
    let pair = objects.key_pair("ssh", "ecdsa-p521");
    let secret = objects.emit("v1", "Secret", KEYS_SUFFIX, None);
    secret.set_type("kubernetes.io/ssh-auth");
    secret.append_secret(PRIVATE_KEY, &pair.private("sec1-pem"));
    secret.append_secret(PUBLIC_KEY, &pair.public("openssh"));
}

/// Emits the hostfile, with a line for each pod that runs processes.
fn emit_hostfile(ctx: &Context, config: &MpiConfig) {
    let hostfile = ctx.objects().emit("v1", "ConfigMap", HOSTFILE_SUFFIX, None);
    for Hosts { set, slots, .. } in Hosts::of(ctx, config).into_iter().flatten() {
        let end = config.mpi_implementation.line_end(slots);
        let names = if set.name() == pods::LAUNCHER {
            OwnName::of(ctx, &set).text(ctx, &set)
        } else {
            set.joined_addresses(0, set.address_count(), &end)
        };
        hostfile.append(HOSTFILE, &(names + &end));
    }
}
