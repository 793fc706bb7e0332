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
        /// The pod set of that name.
        fn pod_set(name: &str) -> Option<PodSet> = info_pod_set;
        /// The pod sets whose `trainer.kubeflow.org/trainjob-ancestor-step` label says so: `trainer`,
        /// `dataset-initializer` or `model-initializer`.
        fn with_ancestor(ancestor: &str) -> Vec<PodSet> = info_with_ancestor;
        /// The pod sets that `numNodes` counts: the active plugins' `nodeSets`, else those with the trainer ancestor.
        fn nodes() -> Vec<PodSet> = info_nodes;
        /// A label of the JobSet.
        ///
        /// Needs the claim to read `labels[KEY]`.
        fn label(key: &str) -> Option<String> = info_label;
        /// An annotation of the JobSet.
        ///
        /// Needs the claim to read `annotations[KEY]`.
        fn annotation(key: &str) -> Option<String> = info_annotation;
        /// Sets the label.
        ///
        /// Needs the claim to write `labels[KEY]`.
        fn set_label(key: &str, value: &str) = info_set_label;
        /// Sets the annotation.
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
        /// The value of its `trainer.kubeflow.org/trainjob-ancestor-step` label.
        fn ancestor() -> Option<String> = pod_set_ancestor;
        /// The pod sets that this one waits for.
        fn depends_on() -> Vec<Dependency> = pod_set_depends_on;
        /// Pods in each of its jobs.
        fn count() -> u32 = pod_set_count;
        /// Jobs of this pod set.
        fn replicas() -> u32 = pod_set_replicas;
        /// The DNS name of one pod within the namespace, `JOB-PODSET-0-0.SUBDOMAIN`; beyond the counts it ends the call.
        fn address(job_index: u32, pod_index: u32) -> String = pod_set_address;
        /// Pods in all: replicas times count.
        fn address_count() -> u32 = pod_set_address_count;
        /// The names of up to `max` pods from the one numbered `start`, job by job.
        fn addresses(start: u32, max: u32) -> Vec<String> = pod_set_addresses;
        /// The same as one text, which costs half as much on long lists.
        fn joined_addresses(start: u32, max: u32, separator: &str) -> String = pod_set_joined_addresses;
        /// The containers.
        ///
        /// Needs the claim to read `pod-sets[P].containers[#]`.
        fn containers() -> Vec<Container> = pod_set_containers;
        /// The init containers.
        ///
        /// Needs the claim to read `pod-sets[P].init-containers[#]`.
        fn init_containers() -> Vec<Container> = pod_set_init_containers;
        /// The container or init container of that name.
        fn container(name: &str) -> Option<Container> = pod_set_container;
        /// A new container, last. Its other fields are written through the handle, which needs no further claim: what a
        /// plugin created it may write.
        ///
        /// Needs the claim to create `pod-sets[P].containers[NAME]`.
        fn add_container(name: &str, image: &str) -> Container = pod_set_add_container;
        /// A new init container, last until it is placed.
        ///
        /// Needs the claim to create `pod-sets[P].init-containers[NAME]`.
        fn add_init_container(name: &str, image: &str) -> Container = pod_set_add_init_container;
        /// The names of the pods' volumes.
        ///
        /// Needs the claim to read `pod-sets[P].volumes[#]`.
        fn volumes() -> Vec<String> = pod_set_volumes;
        /// The volume of that name, as in a pod spec.
        ///
        /// Needs the claim to read `pod-sets[P].volumes[NAME]`.
        fn volume(name: &str) -> Option<Document> = pod_set_volume;
        /// Removes the volume.
        ///
        /// Needs the claim to write `pod-sets[P].volumes[NAME]`.
        fn remove_volume(name: &str) = pod_set_remove_volume;
        /// Puts the empty dir.
        ///
        /// Needs the claim to write `pod-sets[P].volumes[NAME]`.
        fn put_empty_dir(name: &str, medium: Option<&str>, size_limit: Option<&str>) = pod_set_put_empty_dir;
        /// A volume over a ConfigMap that this plugin emits in build under the same suffix.
        ///
        /// Needs the claim to write `pod-sets[P].volumes[NAME]`.
        fn put_own_config_map(name: &str, suffix: &str, default_mode: Option<u32>, items: &[KeyFile]) = pod_set_put_own_config_map;
        /// Any other volume, as the JSON of its source (`{"persistentVolumeClaim": {...}}`); needs a grant of its own.
        ///
        /// Needs the claim to write `pod-sets[P].volumes[NAME]`.
        fn put_raw_volume(name: &str, source: &str) = pod_set_put_raw_volume;
        /// What the node container has of devices: the host's entries for extended resources, and what plugins put.
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
        /// The pod label.
        ///
        /// Needs the claim to read `pod-sets[P].pod-labels[KEY]`.
        fn pod_label(key: &str) -> Option<String> = pod_set_pod_label;
        /// Sets the pod label.
        ///
        /// Needs the claim to write `pod-sets[P].pod-labels[KEY]`.
        fn set_pod_label(key: &str, value: &str) = pod_set_set_pod_label;
        /// Removes the pod label.
        ///
        /// Needs the claim to write `pod-sets[P].pod-labels[KEY]`.
        fn remove_pod_label(key: &str) = pod_set_remove_pod_label;
        /// The pod annotation.
        ///
        /// Needs the claim to read `pod-sets[P].pod-annotations[KEY]`.
        fn pod_annotation(key: &str) -> Option<String> = pod_set_pod_annotation;
        /// Sets the pod annotation.
        ///
        /// Needs the claim to write `pod-sets[P].pod-annotations[KEY]`.
        fn set_pod_annotation(key: &str, value: &str) = pod_set_set_pod_annotation;
        /// Removes the pod annotation.
        ///
        /// Needs the claim to write `pod-sets[P].pod-annotations[KEY]`.
        fn remove_pod_annotation(key: &str) = pod_set_remove_pod_annotation;
        /// The node selector.
        ///
        /// Needs the claim to read `pod-sets[P].node-selector[KEY]`.
        fn node_selector(key: &str) -> Option<String> = pod_set_node_selector;
        /// Puts the node selector.
        ///
        /// Needs the claim to write `pod-sets[P].node-selector[KEY]`.
        fn put_node_selector(key: &str, value: &str) = pod_set_put_node_selector;
        /// The priority class.
        ///
        /// Needs the claim to read `pod-sets[P].priority-class`.
        fn priority_class() -> Option<String> = pod_set_priority_class;
        /// Sets the priority class.
        ///
        /// Needs the claim to write `pod-sets[P].priority-class`.
        fn set_priority_class(name: &str) = pod_set_set_priority_class;
        /// The scheduler name.
        ///
        /// Needs the claim to read `pod-sets[P].scheduler-name`.
        fn scheduler_name() -> Option<String> = pod_set_scheduler_name;
        /// Sets the scheduler name.
        ///
        /// Needs the claim to write `pod-sets[P].scheduler-name`.
        fn set_scheduler_name(name: &str) = pod_set_set_scheduler_name;
    }
}

handles! {
    /// A container or an init container of a pod set. Below, `C` stands for `pod-sets[P].containers[NAME]` or
    /// `pod-sets[P].init-containers[NAME]`.
    Container = pod_set_info::Container {
        /// Its name.
        fn name() -> String = container_name;
        /// Whether it is an init container.
        fn is_init() -> bool = container_is_init;
        /// Whether it is an init container that runs beside the others (`restartPolicy: Always`).
        ///
        /// Needs the claim to read `C.restart-policy`.
        fn is_sidecar() -> bool = container_is_sidecar;
        /// Whether this plugin added it.
        fn created_by_me() -> bool = container_created_by_me;
        /// An init container that this plugin added goes before all others. Wishes are solved when the JobSet is
        /// written; wishes that can't be met together refuse the TrainJob.
        fn place_first() = container_place_first;
        /// It goes somewhere before that one.
        fn place_before(anchor: &str) = container_place_before;
        /// It goes somewhere after that one.
        fn place_after(anchor: &str) = container_place_after;
        /// The image.
        ///
        /// Needs the claim to read `C.image`.
        fn image() -> Option<String> = container_image;
        /// Sets the image.
        ///
        /// Needs the claim to write `C.image`.
        fn set_image(image: &str) = container_set_image;
        /// `Always`, `IfNotPresent` or `Never`.
        ///
        /// Needs the claim to write `C.image-pull-policy`.
        fn set_image_pull_policy(policy: &str) = container_set_image_pull_policy;
        /// The command.
        ///
        /// Needs the claim to read `C.command`.
        fn command() -> Option<Vec<String>> = container_command;
        /// Sets the command.
        ///
        /// Needs the claim to write `C.command`.
        fn set_command(command: &[String]) = container_set_command;
        /// The args.
        ///
        /// Needs the claim to read `C.args`.
        fn args() -> Option<Vec<String>> = container_args;
        /// Sets the args.
        ///
        /// Needs the claim to write `C.args`.
        fn set_args(args: &[String]) = container_set_args;
        /// The container has no arguments: the image's own apply.
        ///
        /// Needs the claim to write `C.args`.
        fn clear_args() = container_clear_args;
        /// The command as the runtime has it, before the TrainJob's override. Like base, it makes no order.
        fn runtime_command() -> Option<Vec<String>> = container_runtime_command;
        /// The arguments as the runtime has them.
        fn runtime_args() -> Option<Vec<String>> = container_runtime_args;
        /// The working dir.
        ///
        /// Needs the claim to read `C.working-dir`.
        fn working_dir() -> Option<String> = container_working_dir;
        /// Sets the working dir.
        ///
        /// Needs the claim to write `C.working-dir`.
        fn set_working_dir(path: &str) = container_set_working_dir;
        /// `Always` makes a sidecar of an init container.
        ///
        /// Needs the claim to write `C.restart-policy`.
        fn set_restart_policy(policy: &str) = container_set_restart_policy;
        /// The names of all env vars. Dear on large containers: ask by name where the name is known.
        ///
        /// Needs the claim to read `C.env[#]`.
        fn env_names() -> Vec<String> = container_env_names;
        /// The plain value; none where there is no such env var, or where its value has a source.
        ///
        /// Needs the claim to read `C.env[NAME]`.
        fn env(name: &str) -> Option<String> = container_env;
        /// The source of its value, as `valueFrom` in a pod spec.
        ///
        /// Needs the claim to read `C.env[NAME]`.
        fn env_source(name: &str) -> Option<Document> = container_env_source;
        /// Who set it: `runtime`, `patch`, `trainjob` or `plugin`.
        ///
        /// Needs the claim to read `C.env[NAME]`.
        fn env_owner(name: &str) -> Option<String> = container_env_owner;
        /// Sets it, whoever had set it before; over a value of the runtime, a patch or the TrainJob only where the
        /// manifest reserves the name (`reservedEnv`).
        ///
        /// Needs the claim to write `C.env[NAME]`.
        fn put_env(name: &str, value: &str) = container_put_env;
        /// Sets it unless it is there already.
        ///
        /// Needs the claim to write `C.env[NAME]`.
        fn default_env(name: &str, value: &str) = container_default_env;
        /// Its value is a field of the pod, as `metadata.annotations['KEY']`.
        ///
        /// Needs the claim to write `C.env[NAME]`.
        fn put_env_field(name: &str, path: &str) = container_put_env_field;
        /// Its value is a resource of a container, as `limits.cpu`.
        ///
        /// Needs the claim to write `C.env[NAME]`.
        fn put_env_resource(name: &str, container: Option<&str>, resource: &str, divisor: Option<&str>) = container_put_env_resource;
        /// Its value is a key of a ConfigMap that this plugin emits in build under the same suffix.
        ///
        /// Needs the claim to write `C.env[NAME]`.
        fn put_env_own_config_map(name: &str, suffix: &str, key: &str) = container_put_env_own_config_map;
        /// Removes the env.
        ///
        /// Needs the claim to write `C.env[NAME]`.
        fn remove_env(name: &str) = container_remove_env;
        /// The ports.
        ///
        /// Needs the claim to read `C.ports[*]`.
        fn ports() -> Vec<Port> = container_ports;
        /// The port of that number and protocol.
        ///
        /// Needs the claim to read `C.ports[NUMBER/PROTOCOL]`.
        fn port(number: u16, protocol: &str) -> Option<Port> = container_port;
        /// Puts the port.
        ///
        /// Needs the claim to write `C.ports[NUMBER/PROTOCOL]`.
        fn put_port(port: &Port) = container_put_port;
        /// The mounts.
        ///
        /// Needs the claim to read `C.mounts[*]`.
        fn mounts() -> Vec<Mount> = container_mounts;
        /// Without a grant, of volumes that this plugin put.
        ///
        /// Needs the claim to write `C.mounts[PATH]`.
        fn put_mount(mount: &Mount) = container_put_mount;
        /// Removes the mount.
        ///
        /// Needs the claim to write `C.mounts[PATH]`.
        fn remove_mount(path: &str) = container_remove_mount;
        /// The request; a limit without a request counts as one.
        ///
        /// Needs the claim to read `C.requests[RESOURCE]`.
        /// Needs the claim to read `C.limits[RESOURCE]`.
        fn request(resource: &str) -> Option<String> = container_request;
        /// The limit.
        ///
        /// Needs the claim to read `C.limits[RESOURCE]`.
        fn limit(resource: &str) -> Option<String> = container_limit;
        /// All requests, limits standing in for those that are missing.
        ///
        /// Needs the claim to read `C.requests[*]`.
        /// Needs the claim to read `C.limits[*]`.
        fn requests() -> Vec<Quantity> = container_requests;
        /// The limits.
        ///
        /// Needs the claim to read `C.limits[*]`.
        fn limits() -> Vec<Quantity> = container_limits;
        /// Sets the request.
        ///
        /// Needs the claim to write `C.requests[RESOURCE]`.
        fn set_request(resource: &str, amount: &str) = container_set_request;
        /// Sets the limit.
        ///
        /// Needs the claim to write `C.limits[RESOURCE]`.
        fn set_limit(resource: &str, amount: &str) = container_set_limit;
    }
}
