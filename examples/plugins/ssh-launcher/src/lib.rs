//! Lets the first node of a TrainJob, the head, start the workers on all nodes over SSH.

use trainyard_sdk::{
    Build, Check, Config, Container, Context, Failure, KeyFile, Mount, NODE, POD_INDEX, PROCESSES,
    PodSet, Port, Transform,
    paths::{HOST_NAMES, REPLICATED_JOBS},
};

/// The volume with the keys, and where it is mounted.
const SSH: &str = "ssh-launcher-keys";
const SSH_PATH: &str = "/etc/ssh-launcher/keys";
/// The Secret with the keys.
const SECRET: &str = "-ssh-launcher-keys";
/// The volume with the hostfile, and where the file is mounted.
const HOSTFILE: &str = "ssh-launcher-hostfile";
const HOSTFILE_PATH: &str = "/etc/ssh-launcher/hostfile";
/// The ConfigMap with the hostfile, and its key.
const CONFIG_MAP: &str = "-ssh-launcher-hostfile";
const KEY: &str = "hostfile";
/// `config` of the plugin in a runtime.
#[derive(Config, Debug)]
pub struct LaunchConfig {
    /// The port on which the SSH servers of the nodes listen.
    #[config(default = 22, minimum = 1)]
    pub port: u16,
    /// The number of workers on each node; by default the number of processes per node.
    #[config(minimum = 1)]
    pub slots: Option<u32>,
}

/// The plugin.
pub struct Launch;

trainyard_sdk::plugin!(Launch: transform, build, check; config = LaunchConfig);

/// How the pods of a pod set get their rank.
enum Rank {
    Index,
    Number(u32),
}

/// The pod sets whose pods are the nodes, in the order of the ranks, without those that have no pods.
fn node_sets(ctx: &Context) -> Vec<PodSet> {
    let sets = ctx.info().nodes().into_iter();
    sets.filter(|set| set.address_count() > 0).collect()
}

/// Returns how the pods of a pod set after `before` other nodes get their rank. A pod can tell its index, but cannot add to it.
fn rank(set: &PodSet, before: u32) -> Result<Rank, Failure> {
    match (before, set.replicas(), set.count()) {
        (0, 1, _) => Ok(Rank::Index),
        (_, 1, 1) => Ok(Rank::Number(before)),
        _ => {
            let message = "ssh-launcher cannot number these nodes: all of them have to be the pods of one Job, apart from single pods in replicated jobs after it";
            let field = format!("{REPLICATED_JOBS}[{}]", set.name());
            Err(Failure::from(message).at(field))
        }
    }
}

/// Refuses a volume of the runtime with a name of this plugin.
fn no_volume(base: Option<&PodSet>, name: &str) -> Result<(), Failure> {
    match base.filter(|base| base.volume(name).is_some()) {
        Some(base) => {
            let field = base.path(&format!("volumes[{name}]"));
            Err(Failure::from("is a name of a volume of ssh-launcher; rename it").at(field))
        }
        None => Ok(()),
    }
}

fn node_of(set: &PodSet) -> Result<Container, Failure> {
    set.container(NODE).ok_or_else(|| {
        let message = format!("ssh-launcher needs a container `{NODE}`, in which the workers run");
        Failure::from(message).at(set.path("containers"))
    })
}

impl Transform for Launch {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<LaunchConfig>()?;
        if !ctx.info().has_host_names() {
            let message = "is false, so the head of ssh-launcher cannot find the nodes by their DNS names; remove it, or set it to true";
            return Err(Failure::from(message).at(HOST_NAMES));
        }
        let sets = node_sets(ctx);
        let Some(first) = sets.first() else {
            let message = "ssh-launcher needs a replicated job with the label `trainer.kubeflow.org/trainjob-ancestor-step: trainer`";
            return Err(Failure::from(message).at(REPLICATED_JOBS));
        };
        if let Some(set) = sets.iter().find(|set| !set.is_indexed()) {
            let message = "is `NonIndexed`, so the nodes have no addresses; remove it, or set it to `Indexed`";
            return Err(Failure::from(message).at(set.job_path("completionMode")));
        }
        let head = first.address(0, 0);
        let nodes: u32 = sets.iter().map(PodSet::address_count).sum();
        let mut before = 0;
        for set in &sets {
            let node = node_of(set)?;
            let base = ctx.base_of(set);
            no_volume(base.as_ref(), SSH)?;
            no_volume(base.as_ref(), HOSTFILE)?;

            ctx.because("the head starts the workers over SSH with the TrainJob's own keys");
            let files = [
                KeyFile::new("ssh-privatekey", "id_ecdsa"),
                KeyFile::new("ssh-publickey", "id_ecdsa.pub"),
                KeyFile::new("authorized_keys", "authorized_keys"),
            ];
            set.put_own_secret(SSH, SECRET, Some(0o400), &files);
            node.default_mount(&Mount::new(SSH, SSH_PATH).read_only());

            ctx.because("the nodes and their slots");
            set.put_own_config_map(HOSTFILE, CONFIG_MAP, None, &[]);
            let file = Mount::new(HOSTFILE, HOSTFILE_PATH).sub_path(KEY);
            node.default_mount(&file.read_only());

            ctx.because("the SSH servers of the nodes listen there");
            if node.port(config.port, "TCP").is_none() {
                node.put_port(&Port::tcp(config.port));
            }
            node.default_env("LAUNCH_PORT", &config.port.to_string());
            ctx.because("the first node, which starts the workers");
            node.default_env("LAUNCH_HEAD", &head);
            ctx.because("the number of nodes");
            node.default_env("LAUNCH_NODES", &nodes.to_string());
            ctx.because("the pod's index");
            match rank(set, before)? {
                Rank::Number(number) => node.default_env("LAUNCH_RANK", &number.to_string()),
                // There is no default for fields.
                Rank::Index if node.env_owner("LAUNCH_RANK").is_none() => {
                    node.put_env_field("LAUNCH_RANK", POD_INDEX);
                }
                Rank::Index => {}
            }
            before += set.address_count();
        }
        Ok(())
    }
}

impl Build for Launch {
    fn build(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<LaunchConfig>()?;
        let hostfile = ctx.objects().emit("v1", "ConfigMap", CONFIG_MAP, None);
        for set in node_sets(ctx) {
            // If the number of devices is not known, one process runs, as with MPI. DRA warns of it.
            let slots = config.slots.or_else(|| set.processes()).unwrap_or(1);
            let end = format!(" slots={slots}\n");
            let hosts = set.joined_addresses(0, set.address_count(), &end);
            hostfile.append(KEY, &format!("{hosts}{end}"));
        }

        let secret = ctx.objects().emit("v1", "Secret", SECRET, None);
        secret.set_type("kubernetes.io/ssh-auth");
        let pair = ctx.objects().key_pair("ssh", "ecdsa-p521");
        secret.append_secret("ssh-privatekey", &pair.private("sec1-pem"));
        secret.append_secret("ssh-publickey", &pair.public("openssh"));
        secret.append_secret("authorized_keys", &pair.public("openssh"));
        Ok(())
    }
}

impl Check for Launch {
    fn check(ctx: &Context) {
        let sets = node_sets(ctx);
        let nodes: u32 = sets.iter().map(PodSet::address_count).sum();
        if nodes == 1 {
            let message = "is 1, so ssh-launcher has no other node to start workers on; use a runtime without ssh-launcher for one node";
            ctx.warn(message, Some(&ctx.job().nodes_path()));
        }
        let slots = ctx
            .job()
            .config_as::<LaunchConfig>()
            .ok()
            .and_then(|config| config.slots);
        if let (Some(slots), Some(processes)) = (slots, ctx.job().processes_per_node())
            && slots != processes
        {
            let message = format!(
                "is {processes}, but the runtime's configuration of ssh-launcher sets {slots} slots, which the hostfile has"
            );
            ctx.warn(&message, Some(PROCESSES));
        }
    }
}
