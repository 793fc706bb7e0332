//! The record: the pods of a TrainJob.

#[cfg(target_family = "wasm")]
use std::mem::ManuallyDrop;

use super::{Dependency, Devices, Document, Give, KeyFile, Mount, Port, Quantity};
#[cfg(target_family = "wasm")]
use crate::guest::transformer::trainyard::policy::pod_set_info;

handles! {
    /// The record of one TrainJob.
    Info = pod_set_info::Info {
        /// All pod sets, in the runtime's order.
        fn pod_sets() -> Vec<PodSet> = info_pod_sets;
        /// The pod set of that name, the replicated job's; none where there is none.
        fn pod_set(name: &str) -> Option<PodSet> = info_pod_set;
        /// The pod sets whose `trainer.kubeflow.org/trainjob-ancestor-step` label says so: `trainer`,
        /// `dataset-initializer` or `model-initializer`. Empty where no pod set has it.
        fn with_ancestor(ancestor: &str) -> Vec<PodSet> = info_with_ancestor;
        /// The pod sets that `numNodes` counts: the active plugins' `nodeSets`, else those with the trainer ancestor.
        fn nodes() -> Vec<PodSet> = info_nodes;
        /// The value of a label of the JobSet; none where it has no such label.
        ///
        /// Needs the claim to read `labels[KEY]`.
        fn label(key: &str) -> Option<String> = info_label;
        /// The value of an annotation of the JobSet; none where it has no such annotation.
        ///
        /// Needs the claim to read `annotations[KEY]`.
        fn annotation(key: &str) -> Option<String> = info_annotation;
        /// Sets a label of the JobSet, in place of the value that it has. Labels of pods are set by `set_pod_label`.
        ///
        /// Needs the claim to write `labels[KEY]`.
        fn set_label(key: &str, value: &str) = info_set_label;
        /// Sets an annotation of the JobSet, in place of the value that it has.
        ///
        /// Needs the claim to write `annotations[KEY]`.
        fn set_annotation(key: &str, value: &str) = info_set_annotation;
        /// The DNS subdomain of the pods: `network.subdomain` of the runtime, else the TrainJob's name.
        fn subdomain() -> String = info_subdomain;
        /// The cluster's DNS domain, as `cluster.local`.
        fn cluster_domain() -> String = info_cluster_domain;
    }
}

handles! {
    /// The pods of one replicated job. Name, ancestor and counts are the host's: no plugin sets them, reading them
    /// needs no claim.
    PodSet = pod_set_info::PodSet {
        /// The replicated job's name.
        fn name() -> String = pod_set_name;
        /// The value of its `trainer.kubeflow.org/trainjob-ancestor-step` label; none where it has no such label.
        fn ancestor() -> Option<String> = pod_set_ancestor;
        /// The pod sets that this one waits for, each with the status that it waits for.
        fn depends_on() -> Vec<Dependency> = pod_set_depends_on;
        /// Pods in each of its jobs, at least 1. The pods of a pod set are `replicas` times as many.
        fn count() -> u32 = pod_set_count;
        /// Jobs of this pod set; 1 unless the runtime says otherwise.
        fn replicas() -> u32 = pod_set_replicas;
        /// The DNS name of one pod within the namespace, `JOB-PODSET-0-0.SUBDOMAIN`; both indexes begin at 0. An index
        /// that is not below its count ends the call.
        fn address(job_index: u32, pod_index: u32) -> String = pod_set_address;
        /// Pods in all: replicas times count.
        fn address_count() -> u32 = pod_set_address_count;
        /// The names of up to `max` pods from the one numbered `start` (the first is 0), job by job. Empty beyond the
        /// last.
        fn addresses(start: u32, max: u32) -> Vec<String> = pod_set_addresses;
        /// The same as one text, which costs half as much on long lists.
        fn joined_addresses(start: u32, max: u32, separator: &str) -> String = pod_set_joined_addresses;
        /// All containers, in the order of the pod's list. Where the name is known, `container` needs no claim.
        ///
        /// Needs the claim to read `pod-sets[P].containers[#]`.
        fn containers() -> Vec<Container> = pod_set_containers;
        /// All init containers, sidecars among them, in the order of the pod's list.
        ///
        /// Needs the claim to read `pod-sets[P].init-containers[#]`.
        fn init_containers() -> Vec<Container> = pod_set_init_containers;
        /// The container or init container of that name. One that another plugin added is there in transform only where
        /// a claim of this plugin names it, its list's keys or something in it: otherwise the answer would depend on
        /// the order.
        fn container(name: &str) -> Option<Container> = pod_set_container;
        /// A new container, last. Its other fields are written through the handle, which needs no further claim: what a
        /// plugin created it may write. A name that is taken, or is no DNS label, ends the call.
        ///
        /// Needs the claim to create `pod-sets[P].containers[NAME]`.
        fn add_container(name: &str, image: &str) -> Container = pod_set_add_container;
        /// A new init container, last until it is placed; the rest is as with `add_container`.
        ///
        /// Needs the claim to create `pod-sets[P].init-containers[NAME]`.
        fn add_init_container(name: &str, image: &str) -> Container = pod_set_add_init_container;
        /// The names of the pods' volumes, in the order of the pod's list.
        ///
        /// Needs the claim to read `pod-sets[P].volumes[#]`.
        fn volumes() -> Vec<String> = pod_set_volumes;
        /// The volume of that name as in a pod spec, `{"name": ..., "emptyDir": {...}}`; none where there is none.
        ///
        /// Needs the claim to read `pod-sets[P].volumes[NAME]`.
        fn volume(name: &str) -> Option<Document> = pod_set_volume;
        /// Takes a volume out; nothing happens where there is none. Without a grant, of volumes that this plugin put.
        /// Mounts of it stay, and a mount without its volume refuses the TrainJob.
        ///
        /// Needs the claim to write `pod-sets[P].volumes[NAME]`.
        fn remove_volume(name: &str) = pod_set_remove_volume;
        /// A volume that begins empty with each pod, in place of the one of that name; without a grant, not of
        /// another's. `medium` is `Memory` for one in memory, none for the node's disk; `size_limit` is a quantity, as
        /// `16Gi`. A name that is no DNS label ends the call.
        ///
        /// Needs the claim to write `pod-sets[P].volumes[NAME]`.
        fn put_empty_dir(name: &str, medium: Option<&str>, size_limit: Option<&str>) = pod_set_put_empty_dir;
        /// A volume over a ConfigMap that this plugin emits in build under the same suffix. `default_mode` holds the
        /// files' permission bits, as 0o444; `items` names the keys that become files, and without any each key is a
        /// file of its name.
        ///
        /// Needs the claim to write `pod-sets[P].volumes[NAME]`.
        /// Needs the claim to write `objects[v1/ConfigMap/SUFFIX]`.
        fn put_own_config_map(name: &str, suffix: &str, default_mode: Option<u32>, items: &[KeyFile]) = pod_set_put_own_config_map;
        /// Any other volume, as the JSON of its source, an object with one member: `{"persistentVolumeClaim": {...}}`.
        /// Needs a grant of its own.
        ///
        /// Needs the claim to write `pod-sets[P].volumes[NAME]`.
        fn put_raw_volume(name: &str, source: &str) = pod_set_put_raw_volume;
        /// What the node container has of devices, one entry a source: the host's entries for extended resources, and
        /// what plugins put. The node container is the one of `containers` (no init container) with the name `node`;
        /// one that another plugin added counts only if a claim speaks of it.
        ///
        /// Needs the claim to read `pod-sets[P].devices[*]`.
        /// Needs the claim to read `pod-sets[P].containers[node].requests[*]`.
        /// Needs the claim to read `pod-sets[P].containers[node].limits[*]`.
        fn devices() -> Vec<Devices> = pod_set_devices;
        /// Accelerators of the node container from all sources; 0 where it has none, none where it can't be known.
        ///
        /// Needs the claim to read `pod-sets[P].devices[*]`.
        /// Needs the claim to read `pod-sets[P].containers[node].requests[*]`.
        /// Needs the claim to read `pod-sets[P].containers[node].limits[*]`.
        fn accelerators() -> Option<u32> = pod_set_accelerators;
        /// Processes per node by the host's rule: the explicit number, else accelerators, else whole CPUs (at least 1);
        /// none where accelerators can't be known.
        ///
        /// Needs the claim to read `pod-sets[P].devices[*]`.
        /// Needs the claim to read `pod-sets[P].containers[node].requests[*]`.
        /// Needs the claim to read `pod-sets[P].containers[node].limits[*]`.
        fn processes() -> Option<u32> = pod_set_processes;
        /// The value of a label of the pods; none where they have no such label.
        ///
        /// Needs the claim to read `pod-sets[P].pod-labels[KEY]`.
        fn pod_label(key: &str) -> Option<String> = pod_set_pod_label;
        /// Sets a label of the pods, in place of the value that it has.
        ///
        /// Needs the claim to write `pod-sets[P].pod-labels[KEY]`.
        fn set_pod_label(key: &str, value: &str) = pod_set_set_pod_label;
        /// Takes a label off the pods; nothing happens where they have no such label.
        ///
        /// Needs the claim to write `pod-sets[P].pod-labels[KEY]`.
        fn remove_pod_label(key: &str) = pod_set_remove_pod_label;
        /// The value of an annotation of the pods; none where they have no such annotation.
        ///
        /// Needs the claim to read `pod-sets[P].pod-annotations[KEY]`.
        fn pod_annotation(key: &str) -> Option<String> = pod_set_pod_annotation;
        /// Sets an annotation of the pods, in place of the value that it has.
        ///
        /// Needs the claim to write `pod-sets[P].pod-annotations[KEY]`.
        fn set_pod_annotation(key: &str, value: &str) = pod_set_set_pod_annotation;
        /// Takes an annotation off the pods; nothing happens where they have no such annotation.
        ///
        /// Needs the claim to write `pod-sets[P].pod-annotations[KEY]`.
        fn remove_pod_annotation(key: &str) = pod_set_remove_pod_annotation;
        /// The value that a machine's label must have for these pods to run on it; none where nothing is asked of the
        /// label.
        ///
        /// Needs the claim to read `pod-sets[P].node-selector[KEY]`.
        fn node_selector(key: &str) -> Option<String> = pod_set_node_selector;
        /// The pods run only on machines with that value of that label, beside what is asked of other labels.
        ///
        /// Needs the claim to write `pod-sets[P].node-selector[KEY]`.
        fn put_node_selector(key: &str, value: &str) = pod_set_put_node_selector;
        /// The name of the pods' PriorityClass; none where the cluster's default applies.
        ///
        /// Needs the claim to read `pod-sets[P].priority-class`.
        fn priority_class() -> Option<String> = pod_set_priority_class;
        /// Sets the name of the pods' PriorityClass, which has to exist.
        ///
        /// Needs the claim to write `pod-sets[P].priority-class`.
        fn set_priority_class(name: &str) = pod_set_set_priority_class;
        /// The name of the scheduler that places the pods; none where the cluster's default does.
        ///
        /// Needs the claim to read `pod-sets[P].scheduler-name`.
        fn scheduler_name() -> Option<String> = pod_set_scheduler_name;
        /// Sets the name of the scheduler that places the pods.
        ///
        /// Needs the claim to write `pod-sets[P].scheduler-name`.
        fn set_scheduler_name(name: &str) = pod_set_set_scheduler_name;
    }
}

handles! {
    /// A container or an init container of a pod set. Below, `C` stands for `pod-sets[P].containers[NAME]` or
    /// `pod-sets[P].init-containers[NAME]`.
    Container = pod_set_info::Container {
        /// Its name, of which a pod has one only.
        fn name() -> String = container_name;
        /// Whether it is an init container, sidecars included.
        fn is_init() -> bool = container_is_init;
        /// Whether it is an init container that runs beside the others (`restartPolicy: Always`).
        ///
        /// Needs the claim to read `C.restart-policy`.
        fn is_sidecar() -> bool = container_is_sidecar;
        /// Whether this plugin added it, in this call or in an earlier phase.
        fn created_by_me() -> bool = container_created_by_me;
        /// An init container that this plugin added goes before all others that did not ask for the same. Wishes are
        /// solved when the JobSet is written; wishes that can't be met together refuse the TrainJob. On any other
        /// container it ends the call.
        fn place_first() = container_place_first;
        /// It goes somewhere before that one; anywhere, where there is no init container of that name. For an init
        /// container that this plugin added.
        fn place_before(anchor: &str) = container_place_before;
        /// It goes somewhere after that one; anywhere, where there is no init container of that name. For an init
        /// container that this plugin added.
        fn place_after(anchor: &str) = container_place_after;
        /// The image, as `registry.example.com/trainer:1.2`; none where nobody gave one.
        ///
        /// Needs the claim to read `C.image`.
        fn image() -> Option<String> = container_image;
        /// Sets the image, also over the one that the TrainJob asks for.
        ///
        /// Needs the claim to write `C.image`.
        fn set_image(image: &str) = container_set_image;
        /// When the image is pulled: `Always`, `IfNotPresent` or `Never`.
        ///
        /// Needs the claim to write `C.image-pull-policy`.
        fn set_image_pull_policy(policy: &str) = container_set_image_pull_policy;
        /// The command with the TrainJob's override, one word an item; none where the image's own entry point runs.
        ///
        /// Needs the claim to read `C.command`.
        fn command() -> Option<Vec<String>> = container_command;
        /// Sets the command, one word an item; no shell reads it. The arguments stay as they are.
        ///
        /// Needs the claim to write `C.command`.
        fn set_command(command: &[String]) = container_set_command;
        /// The arguments with the TrainJob's override, one word an item; none where the image's own apply.
        ///
        /// Needs the claim to read `C.args`.
        fn args() -> Option<Vec<String>> = container_args;
        /// Sets the arguments, all of them, one word an item.
        ///
        /// Needs the claim to write `C.args`.
        fn set_args(args: &[String]) = container_set_args;
        /// The container has no arguments: the image's own apply, unless the container has a command.
        ///
        /// Needs the claim to write `C.args`.
        fn clear_args() = container_clear_args;
        /// The command as the runtime has it, before the TrainJob's override. Like base, it makes no order.
        fn runtime_command() -> Option<Vec<String>> = container_runtime_command;
        /// The arguments as the runtime has them, before the TrainJob's override.
        fn runtime_args() -> Option<Vec<String>> = container_runtime_args;
        /// The folder in which the command starts; none where the image's own applies.
        ///
        /// Needs the claim to read `C.working-dir`.
        fn working_dir() -> Option<String> = container_working_dir;
        /// Sets the folder in which the command starts, as an absolute path in the container.
        ///
        /// Needs the claim to write `C.working-dir`.
        fn set_working_dir(path: &str) = container_set_working_dir;
        /// `Always` makes a sidecar of an init container: it starts in its turn and runs beside those that follow.
        ///
        /// Needs the claim to write `C.restart-policy`.
        fn set_restart_policy(policy: &str) = container_set_restart_policy;
        /// The names of all env vars, in their order. Dear on large containers: ask by name where the name is known.
        ///
        /// Needs the claim to read `C.env[#]`.
        fn env_names() -> Vec<String> = container_env_names;
        /// The plain value, with what this call has written; none where there is no such env var, or where its value
        /// has a source.
        ///
        /// Needs the claim to read `C.env[NAME]`.
        fn env(name: &str) -> Option<String> = container_env;
        /// The source of its value, as `valueFrom` in a pod spec; none where its value is plain.
        ///
        /// Needs the claim to read `C.env[NAME]`.
        fn env_source(name: &str) -> Option<Document> = container_env_source;
        /// Who set it last: `runtime`, `patch`, `trainjob` or `plugin`; none where there is no such env var.
        ///
        /// Needs the claim to read `C.env[NAME]`.
        fn env_owner(name: &str) -> Option<String> = container_env_owner;
        /// Sets it, whoever had set it before; over a value of the runtime, a patch or the TrainJob only where the
        /// manifest reserves the name (`reservedEnv`), which otherwise ends the call. `$(NAME)` in the value stands for
        /// another env var, which is then put before it. A name that is empty or holds `=` ends the call.
        ///
        /// Needs the claim to write `C.env[NAME]`.
        fn put_env(name: &str, value: &str) = container_put_env;
        /// Sets it unless it is there already, whoever set it: the way to a default that users can override.
        ///
        /// Needs the claim to write `C.env[NAME]`.
        fn default_env(name: &str, value: &str) = container_default_env;
        /// Its value is a field of the pod, as `metadata.annotations['KEY']` or `status.podIP`; the rest is as with
        /// `put_env`.
        ///
        /// Needs the claim to write `C.env[NAME]`.
        fn put_env_field(name: &str, path: &str) = container_put_env_field;
        /// Its value is a resource of a container (none: of this one), as `limits.cpu`, in units of the divisor (none:
        /// 1); the rest is as with `put_env`.
        ///
        /// Needs the claim to write `C.env[NAME]`.
        fn put_env_resource(name: &str, container: Option<&str>, resource: &str, divisor: Option<&str>) = container_put_env_resource;
        /// Its value is a key of a ConfigMap that this plugin emits in build under the same suffix; the rest is as with
        /// `put_env`.
        ///
        /// Needs the claim to write `C.env[NAME]`.
        /// Needs the claim to write `objects[v1/ConfigMap/SUFFIX]`.
        fn put_env_own_config_map(name: &str, suffix: &str, key: &str) = container_put_env_own_config_map;
        /// Takes it out; nothing happens where there is no such env var. What the runtime, a patch or the TrainJob set
        /// is taken out only where the manifest reserves the name, as with `put_env`.
        ///
        /// Needs the claim to write `C.env[NAME]`.
        fn remove_env(name: &str) = container_remove_env;
        /// All ports, in the order of the container's list.
        ///
        /// Needs the claim to read `C.ports[*]`.
        fn ports() -> Vec<Port> = container_ports;
        /// The port of that number and protocol (`TCP`, `UDP` or `SCTP`); none where the container has none.
        ///
        /// Needs the claim to read `C.ports[NUMBER/PROTOCOL]`.
        fn port(number: u16, protocol: &str) -> Option<Port> = container_port;
        /// Adds a port, or replaces the one of the same number and protocol. A name that another port of the container
        /// has refuses the TrainJob; the number 0 or another protocol ends the call.
        ///
        /// Needs the claim to write `C.ports[NUMBER/PROTOCOL]`.
        fn put_port(port: &Port) = container_put_port;
        /// All mounts, in the order of the container's list.
        ///
        /// Needs the claim to read `C.mounts[*]`.
        fn mounts() -> Vec<Mount> = container_mounts;
        /// Adds a mount, or replaces the one at the same path: `/data/`, `//data` and `/x/../data` are all `/data`.
        /// Without a grant, of volumes that this plugin put, and not over another's mount. A path that is not absolute
        /// or holds `:` ends the call.
        ///
        /// Needs the claim to write `C.mounts[PATH]`.
        fn put_mount(mount: &Mount) = container_put_mount;
        /// Takes out the mount at a path; nothing happens where there is none. Without a grant, of volumes that this
        /// plugin put.
        ///
        /// Needs the claim to write `C.mounts[PATH]`.
        fn remove_mount(path: &str) = container_remove_mount;
        /// The requested amount of a resource, a quantity as `4` or `800Gi`; a limit without a request counts as one.
        /// None where there is neither.
        ///
        /// Needs the claim to read `C.requests[RESOURCE]`.
        /// Needs the claim to read `C.limits[RESOURCE]`.
        fn request(resource: &str) -> Option<String> = container_request;
        /// The limit of a resource, a quantity as `4` or `800Gi`; none where there is no limit.
        ///
        /// Needs the claim to read `C.limits[RESOURCE]`.
        fn limit(resource: &str) -> Option<String> = container_limit;
        /// All requests, limits standing in for those that are missing.
        ///
        /// Needs the claim to read `C.requests[*]`.
        /// Needs the claim to read `C.limits[*]`.
        fn requests() -> Vec<Quantity> = container_requests;
        /// All limits.
        ///
        /// Needs the claim to read `C.limits[*]`.
        fn limits() -> Vec<Quantity> = container_limits;
        /// Sets the requested amount of a resource; the limit stays as it is. What is no quantity ends the call.
        ///
        /// Needs the claim to write `C.requests[RESOURCE]`.
        fn set_request(resource: &str, amount: &str) = container_set_request;
        /// Sets the limit of a resource; the request stays as it is. What is no quantity ends the call.
        ///
        /// Needs the claim to write `C.limits[RESOURCE]`.
        fn set_limit(resource: &str, amount: &str) = container_set_limit;
    }
}
