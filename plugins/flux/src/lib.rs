//! The Flux policy (KEP-2841): the nodes become one Flux instance, which runs the TrainJob's command. An init container installs Flux
//! from an image, and a script that runs before the command joins the instance.

mod config;
mod failure;
mod files;
mod installer;
mod instance;
mod requirements;
mod settings;

use trainyard_sdk::{
    Build, Container, Context, Failure, Mount, NODE, PodSet, Transform, json::quoted,
};

use self::{config::FluxConfig, instance::Instance};

/// The init container that installs Flux.
const INSTALLER: &str = "flux-installer";

/// The volumes: Flux, its libraries, the scripts, the certificate, and shared memory.
const INSTALL: &str = "flux-install";
const SPACK: &str = "spack-install";
const CONFIG: &str = "flux-config";
const CURVE: &str = "flux-curve";
const MEMORY: &str = "shared-memory";
const VOLUMES: [&str; 5] = [INSTALL, SPACK, CONFIG, CURVE, MEMORY];

/// Their mount paths.
const INSTALL_PATH: &str = "/mnt/flux";
const SPACK_PATH: &str = "/opt/software";
const CONFIG_PATH: &str = "/etc/flux-config";
const CURVE_PATH: &str = "/curve";
const MEMORY_PATH: &str = "/dev/shm";

/// The suffixes of the ConfigMap with the scripts and the Secret with the certificate, and the Secret's key.
const SCRIPTS: &str = "-flux-entrypoint";
const CERTIFICATE: &str = "-flux-curve";
const CERTIFICATE_FILE: &str = "curve.cert";

/// The size of shared memory if the node container has neither a memory request nor a limit.
const MEMORY_SIZE: &str = "8Gi";
/// The group of a pod's files if its user is not root, but not known.
const SOME_GROUP: i64 = 1000;

/// The Flux policy.
pub struct Flux;

trainyard_sdk::plugin!(Flux: transform, build; config = FluxConfig);

impl Transform for Flux {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let (pod_set, node) = ctx.trainer("flux")?;
        let (instance, mut problems) = Instance::read(ctx, &pod_set, &node);
        let runtimes = Runtimes::read(ctx, &pod_set);
        let runtimes = runtimes.as_ref();
        problems.extend(requirements::problems(ctx, &pod_set, &node, runtimes));
        if !problems.is_empty() {
            for problem in problems {
                ctx.error(&problem.message, problem.field.as_deref());
            }
            return Ok(());
        }
        instance.warn_of_shared_accelerators(ctx);
        installer::install(ctx, &pod_set, &node, runtimes, &instance.settings);
        share_memory(ctx, &pod_set, &node, runtimes);
        ctx.because("brokers authenticate to each other with the certificate");
        pod_set.put_own_secret(CURVE, CERTIFICATE, Some(0o400), &[]);
        node.put_mount(&Mount::new(CURVE, CURVE_PATH).read_only());
        let_group_read(ctx, &pod_set, runtimes);
        spread(ctx, &pod_set, &instance);
        failure::ends_the_job(ctx, &pod_set, runtimes);
        wrap(ctx, &node, &instance);
        Ok(())
    }
}

/// The pods as the runtime and the patches made them.
pub(crate) struct Runtimes {
    pub(crate) set: PodSet,
    pub(crate) node: Option<Container>,
    pub(crate) installer: Option<Container>,
}

impl Runtimes {
    fn read(ctx: &Context, pod_set: &PodSet) -> Option<Self> {
        let set = ctx.base_of(pod_set)?;
        Some(Self {
            node: set.container(NODE),
            installer: set.container(INSTALLER),
            set,
        })
    }
}

impl Build for Flux {
    fn build(ctx: &Context) -> Result<(), Failure> {
        let (pod_set, node) = ctx.trainer("flux")?;
        let (instance, _) = Instance::read(ctx, &pod_set, &node);
        let scripts = ctx.objects().emit("v1", "ConfigMap", SCRIPTS, None);
        for (file, script) in files::SCRIPTS {
            scripts.append(file, script);
        }
        scripts.append(files::SETTINGS, &files::settings(&instance));
        scripts.append(files::BROKER, &files::broker(&instance));
        certify(ctx);
        Ok(())
    }
}

/// Emits the certificate, which contains two keys that the host generates.
fn certify(ctx: &Context) {
    let objects = ctx.objects();
    let pair = objects.key_pair("curve", "curve25519");
    let certificate = objects.emit("v1", "Secret", CERTIFICATE, None);
    let append = |text: &str| certificate.append(CERTIFICATE_FILE, text);
    append(&format!(
        "#  ZeroMQ CURVE Secret Certificate\n\nmetadata\n    name = {}\ncurve\n    public-key = \"",
        quoted(&ctx.job().name())
    ));
    certificate.append_secret(CERTIFICATE_FILE, &pair.public("z85"));
    append("\"\n    secret-key = \"");
    certificate.append_secret(CERTIFICATE_FILE, &pair.private("z85"));
    append("\"\n");
}

/// Mounts shared memory in the node container, unless the runtime does.
fn share_memory(ctx: &Context, pod_set: &PodSet, node: &Container, runtimes: Option<&Runtimes>) {
    let mounts = runtimes.and_then(|runtimes| Some(runtimes.node.as_ref()?.mounts()));
    let is_there = |mount: &Mount| mount.path.trim_end_matches('/') == MEMORY_PATH;
    if mounts.is_some_and(|mounts| mounts.iter().any(is_there)) {
        return;
    }
    let size = node.limit("memory").or_else(|| node.request("memory"));
    ctx.because("tasks of a node share memory; a node's own /dev/shm has 64 MiB");
    pod_set.put_empty_dir(
        MEMORY,
        Some("Memory"),
        Some(size.as_deref().unwrap_or(MEMORY_SIZE)),
    );
    node.put_mount(&Mount::new(MEMORY, MEMORY_PATH));
}

/// Lets users other than root read the certificate, by the group of the pod's files.
fn let_group_read(ctx: &Context, pod_set: &PodSet, runtimes: Option<&Runtimes>) {
    let Some(Runtimes { set, node, .. }) = runtimes else {
        return;
    };
    let number = |name: &str| {
        let member = format!("securityContext/{name}");
        let of_node = node
            .as_ref()
            .and_then(|node| node.raw(&member)?.integer(""));
        of_node.or_else(|| set.raw(&member)?.integer(""))
    };
    let is_not_root = |container: Option<&Container>| {
        let member = "securityContext/runAsNonRoot";
        let of_node = container.and_then(|node| node.raw(member)?.boolean(""));
        of_node.or_else(|| set.raw(member)?.boolean(""))
    };
    let group = match number("runAsUser") {
        Some(0) => None,
        Some(user) => Some(
            number("runAsGroup")
                .filter(|group| *group != 0)
                .unwrap_or(user),
        ),
        None => is_not_root(node.as_ref())
            .filter(|is_so| *is_so)
            .map(|_| SOME_GROUP),
    };
    if let Some(group) = group.filter(|_| pod_set.fs_group().is_none()) {
        ctx.because("the node container does not run as root, and has to read the certificate");
        pod_set.set_fs_group(group);
    }
}

/// Prefers a different Kubernetes node for each of the TrainJob's nodes.
fn spread(ctx: &Context, pod_set: &PodSet, instance: &Instance) {
    if instance.nodes < 2 {
        return;
    }
    let selector = pod_set.selector();
    let term = format!(
        r#"{{"weight": 100, "podAffinityTerm": {{"topologyKey": "kubernetes.io/hostname", "labelSelector": {selector}}}}}"#
    );
    ctx.because("each broker gets its own Kubernetes node if there are enough");
    pod_set.add_affinity_term("flux", "podAntiAffinity/preferred", &term);
}

/// Runs the script that joins the instance before the command, which is not changed.
fn wrap(ctx: &Context, node: &Container, instance: &Instance) {
    let mut words = node.command().unwrap_or_default();
    words.extend(node.args().unwrap_or_default());
    let Instance {
        nodes,
        tasks,
        tasks_because,
        ..
    } = instance;
    let gpus = match instance.gpus {
        Some(gpus) => format!(" of {gpus} GPUs"),
        None => String::new(),
    };
    ctx.because(&format!(
        "Flux runs the command on {nodes} nodes{gpus}, with {tasks} tasks on each: {tasks_because}"
    ));
    node.set_command(&[
        "/bin/bash".to_owned(),
        format!("{CONFIG_PATH}/entrypoint.sh"),
    ]);
    ctx.because("the command, which Flux runs");
    node.set_args(&words);
    ctx.because("the script that starts Flux reads it");
    node.put_mount(&Mount::new(INSTALL, INSTALL_PATH));
    node.put_mount(&Mount::new(SPACK, SPACK_PATH));
    node.put_mount(&Mount::new(CONFIG, CONFIG_PATH).read_only());
}
