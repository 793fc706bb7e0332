//! Gives the nodes with accelerators the network devices and networks of a fabric, and configures NCCL for it. What a runtime or a TrainJob
//! sets stays. The hardware is in the configurations of the runtime and the operator.

mod config;
mod file;

use trainyard_sdk::{Build, Container, Context, Failure, Mount, NODE, PodSet, Transform};

use self::config::{ClusterConfig, Devices, Fabric, FabricConfig};

/// The volume with NCCL's configuration file.
const VOLUME: &str = "nccl-fabric";
/// The suffix of its ConfigMap.
const SUFFIX: &str = "-nccl-fabric";
/// Where NCCL reads its configuration file.
const PATH: &str = "/etc/nccl.conf";
/// The file in the volume.
const FILE: &str = "nccl.conf";
/// The annotation of pods with the networks that Multus adds.
const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";

/// The plugin.
pub struct NcclFabric;

trainyard_sdk::plugin!(NcclFabric: transform, build; config = FabricConfig; operator_config = ClusterConfig);

impl Transform for NcclFabric {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let fabric = Fabric::of(ctx)?;
        for set in ctx.info().nodes() {
            if set.accelerators() == Some(0) {
                continue;
            }
            let Some(node) = set.container(NODE) else {
                continue;
            };
            if let Some(devices) = &fabric.devices {
                add_devices(ctx, &node, devices);
            }
            if !fabric.networks.is_empty() && set.pod_annotation(NETWORKS).is_none() {
                ctx.because("`networks` in the configuration of nccl-fabric");
                set.set_pod_annotation(NETWORKS, &fabric.networks.join(","));
            }
            if !fabric.env.is_empty() {
                ctx.because("a node has accelerators");
                for (name, value) in &fabric.env {
                    node.default_env(name, value);
                }
                add_file(ctx, &set, &node)?;
            }
        }
        Ok(())
    }
}

impl Build for NcclFabric {
    fn build(ctx: &Context) -> Result<(), Failure> {
        if let Some(node) = ctx.info().nodes().iter().find_map(with_file) {
            let object = ctx.objects().emit("v1", "ConfigMap", SUFFIX, None);
            object.append(FILE, &file::of(&node));
        }
        Ok(())
    }
}

fn add_devices(ctx: &Context, node: &Container, devices: &Devices) {
    if node.limit(&devices.resource).is_none() {
        ctx.because("`devices` in the configuration of nccl-fabric");
        node.set_limit(&devices.resource, &devices.count.to_string());
    }
    if devices.lock_memory {
        ctx.because("RDMA registers memory, which locks it");
        node.add_capability("IPC_LOCK");
    }
}

/// Mounts NCCL's configuration file. With MPI, an SSH server starts the ranks, and they do not have the env vars of the container.
fn add_file(ctx: &Context, set: &PodSet, node: &Container) -> Result<(), Failure> {
    if node.mount(PATH).is_none() {
        set.reserve_volume(VOLUME)?;
        ctx.because("NCCL reads this file in processes that do not have the container's env vars, such as those that an SSH server starts");
        set.put_own_config_map(VOLUME, SUFFIX, None, &[]);
        node.put_mount(&Mount::new(VOLUME, PATH).sub_path(FILE).read_only());
    }
    Ok(())
}

/// Returns the container of a pod set that mounts the plugin's file.
fn with_file(set: &PodSet) -> Option<Container> {
    let node = set.container(NODE)?;
    let mount = node.mount(PATH)?;
    (mount.volume == VOLUME).then_some(node)
}
