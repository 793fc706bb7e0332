//! The handles of the contract: one table for both targets. In a component a method calls the host's import; natively it
//! calls the host's record, by the same names and with the same checks.

#[cfg(target_family = "wasm")]
use std::mem::ManuallyDrop;

#[cfg(target_family = "wasm")]
use crate::guest::transformer::trainyard::policy::{
    context, job, lookups, objects, pod_set_info, types,
};

#[cfg(target_family = "wasm")]
pub use crate::guest::types::{Dependency, Devices, KeyFile, Mount, Port, Quantity};
#[cfg(not(target_family = "wasm"))]
pub use trainyard_model::value::{Dependency, Devices, KeyFile, Mount, Port, Quantity};

/// What the host gives, as an author gets it.
trait Give<T> {
    fn give(self) -> T;
}

macro_rules! give_as_is {
    ($($type:ty),+ $(,)?) => { $(impl Give<$type> for $type { fn give(self) -> $type { self } })+ };
}
give_as_is!(
    (),
    bool,
    u32,
    String,
    Option<bool>,
    Option<i64>,
    Option<u32>,
    Option<String>,
    Option<Port>,
    Option<Vec<String>>,
    Vec<String>,
    Vec<Dependency>,
    Vec<Devices>,
    Vec<Mount>,
    Vec<Port>,
    Vec<Quantity>,
);

macro_rules! handles {
    (
        $(#[$doc:meta])*
        $handle:ident = $interface:ident::$raw:ident {
            $($(#[$method_doc:meta])* fn $method:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $call:ident;)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $handle(
            // An instance lives for one call: giving a handle back would be a crossing for nothing.
            #[cfg(target_family = "wasm")] ManuallyDrop<$interface::$raw>,
            #[cfg(not(target_family = "wasm"))] u32,
        );

        impl $handle {
            $(
                $(#[$method_doc])*
                pub fn $method(&self $(, $arg: $ty)*) $(-> $ret)? {
                    #[cfg(target_family = "wasm")]
                    return Give::give(self.0.$method($($arg),*));
                    #[cfg(not(target_family = "wasm"))]
                    Give::give(crate::native::with_call(|call| call.$call(self.0 $(, $arg)*)))
                }
            )+
        }

        #[cfg(target_family = "wasm")]
        impl From<$interface::$raw> for $handle {
            fn from(raw: $interface::$raw) -> Self {
                Self(ManuallyDrop::new(raw))
            }
        }

        #[cfg(target_family = "wasm")]
        impl Give<$handle> for $interface::$raw {
            fn give(self) -> $handle {
                self.into()
            }
        }

        #[cfg(target_family = "wasm")]
        impl Give<Option<$handle>> for Option<$interface::$raw> {
            fn give(self) -> Option<$handle> {
                self.map(Into::into)
            }
        }

        #[cfg(target_family = "wasm")]
        impl Give<Vec<$handle>> for Vec<$interface::$raw> {
            fn give(self) -> Vec<$handle> {
                self.into_iter().map(Into::into).collect()
            }
        }

        #[cfg(not(target_family = "wasm"))]
        impl Give<$handle> for u32 {
            fn give(self) -> $handle {
                $handle(self)
            }
        }

        #[cfg(not(target_family = "wasm"))]
        impl Give<Option<$handle>> for Option<u32> {
            fn give(self) -> Option<$handle> {
                self.map($handle)
            }
        }

        #[cfg(not(target_family = "wasm"))]
        impl Give<Vec<$handle>> for Vec<u32> {
            fn give(self) -> Vec<$handle> {
                self.into_iter().map($handle).collect()
            }
        }
    };
}

#[cfg(not(target_family = "wasm"))]
impl Context {
    /// The handle that a phase is called with.
    pub(crate) const fn of_call() -> Self {
        Self(trainyard_model::call::Call::CONTEXT)
    }
}

handles! {
    /// One call of one phase.
    Context = context::Context {
        /// The TrainJob.
        fn job() -> Job = context_job;
        /// Objects of the cluster.
        fn lookups() -> Lookups = context_lookups;
        /// Objects to emit.
        fn objects() -> Objects = context_objects;
        /// The record, with what this call has written so far.
        fn info() -> Info = context_info;
        /// The record as resolve left it, before any plugin. Reads of it need no claim and make no order; it can't be
        /// written.
        fn base() -> Info = context_base;
        /// The reason of the writes that follow, for `trainyard explain`.
        fn because(text: &str) = context_because;
        /// Tells the user; the TrainJob goes on. `field` is a path into the TrainJob or the runtime.
        fn warn(message: &str, field: Option<&str>) = context_warn;
        /// Refuses the TrainJob; the call goes on, so that further errors can be told.
        fn error(message: &str, field: Option<&str>) = context_error;
        /// A line for the host's log: `error`, `warn`, `info`, `debug` or `trace`.
        fn log(level: &str, line: &str) = context_log;
        /// Whether the host has a feature that came after 1.0.0. Unknown names are false.
        fn supports(feature: &str) -> bool = context_supports;
        /// A quantity in whole units, rounded up; none where it is no quantity or out of range.
        fn quantity_ceil(amount: &str) -> Option<i64> = context_quantity_ceil;
        /// A quantity in thousandths, rounded up; none where it is no quantity or out of range.
        fn quantity_milli(amount: &str) -> Option<i64> = context_quantity_milli;
        /// A text as a DNS label of at most `max` characters: what is too long ends in a hash of the whole.
        fn fit_name(text: &str, max: u32) -> String = context_fit_name;
    }
}

handles! {
    /// The TrainJob. No plugin changes it.
    Job = job::Job {
        /// `metadata.name`.
        fn name() -> String = job_name;
        /// `metadata.namespace`.
        fn namespace() -> String = job_namespace;
        /// `metadata.uid`; offline it is derived from namespace and name.
        fn uid() -> String = job_uid;
        /// `spec.suspend`.
        fn suspended() -> bool = job_suspended;
        /// A label of the TrainJob.
        fn label(key: &str) -> Option<String> = job_label;
        /// An annotation of the TrainJob.
        fn annotation(key: &str) -> Option<String> = job_annotation;
        /// `TrainingRuntime` or `ClusterTrainingRuntime`.
        fn runtime_kind() -> String = job_runtime_kind;
        /// The runtime's `metadata.name`.
        fn runtime_name() -> String = job_runtime_name;
        /// A label of the runtime.
        fn runtime_label(key: &str) -> Option<String> = job_runtime_label;
        /// An annotation of the runtime.
        fn runtime_annotation(key: &str) -> Option<String> = job_runtime_annotation;
        /// The number of nodes: the TrainJob's, else the runtime's. Never 0.
        fn nodes() -> u32 = job_nodes;
        /// Processes per node where the TrainJob or the runtime's policy gives a number; none is not 1.
        fn processes_per_node() -> Option<u32> = job_processes_per_node;
        /// The TrainJob's `spec`. Each pointer that is read is a claim, in every phase.
        ///
        /// Needs the claim to read `job[POINTER]`.
        fn spec() -> Document = job_spec;
        /// This plugin's block of the runtime's `mlPolicy`, `podGroupPolicy` or `plugins`, with the defaults of its
        /// schema, and checked by it. An empty object where the plugin has none.
        fn config() -> Document = job_config;
        /// What the operator set for this plugin in the policy file. An empty object where nothing is set.
        fn operator_config() -> Document = job_operator_config;
    }
}

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

handles! {
    /// What the plugin may ask of the cluster. Secrets are never among it.
    Lookups = lookups::Lookups {
        /// The object of that name: in the TrainJob's namespace, or of the cluster where the kind is cluster-scoped.
        /// None only where the API server does not serve the kind.
        ///
        /// Needs the claim to read `lookups[API-VERSION/KIND/NAME]`.
        fn get(api_version: &str, kind: &str, name: &str) -> Option<Document> = lookups_get;
        /// All objects of a kind in the TrainJob's namespace, by name.
        ///
        /// Needs the claim to read `lookups[API-VERSION/KIND/*]`.
        fn all(api_version: &str, kind: &str) -> Vec<Document> = lookups_all;
        /// Whether the API server serves the kind; offline, always.
        ///
        /// Needs the claim to read `lookups[API-VERSION/KIND/#]`.
        fn served(api_version: &str, kind: &str) -> bool = lookups_served;
    }
}

handles! {
    /// One object to emit.
    Object = objects::Object {
        /// Its `metadata.name`.
        fn name() -> String = object_name_of;
        /// Sets a label of the object.
        fn set_label(key: &str, value: &str) = object_set_label;
        /// Sets an annotation of the object.
        fn set_annotation(key: &str, value: &str) = object_set_annotation;
        /// Appends to the text of a key of `data`.
        fn append(key: &str, text: &str) = object_append;
        /// Sets a key of `binaryData`.
        fn set_binary(key: &str, value: &[u8]) = object_set_binary;
        /// No change of its content is possible later.
        fn set_immutable() = object_set_immutable;
        /// How it is applied: `with-jobset` (the default: only while the JobSet may change), `once`, `while-suspended` or
        /// `live`.
        fn set_apply(mode: &str) = object_set_apply;
    }
}

handles! {
    /// The objects of this plugin for this TrainJob.
    Objects = objects::Objects {
        /// The name that `emit` with the same arguments gives the object, in every phase: the TrainJob's name and the
        /// suffix, and, where content is given, a hash over it and the TrainJob's UID.
        fn name(api_version: &str, kind: &str, suffix: &str, content: Option<&str>) -> String = objects_name;
        /// A new object, in build only. `kind` is `ConfigMap` of `v1` for now.
        ///
        /// Needs the claim to write `objects[API-VERSION/KIND/SUFFIX]`.
        fn emit(api_version: &str, kind: &str, suffix: &str, content: Option<&str>) -> Object = objects_emit;
    }
}

handles! {
    /// Opaque JSON that is read by RFC 6901 pointer (the empty pointer is the whole), so that a guest needs no parser.
    /// A pointer to nothing reads as none, zero or empty; a pointer that is no RFC 6901 pointer ends the call.
    Document = types::Document {
        /// `object`, `array`, `string`, `number`, `boolean` or `null`.
        fn kind(at: &str) -> Option<String> = document_kind;
        /// The string there; none where anything else is.
        fn text(at: &str) -> Option<String> = document_text;
        /// The number there, where it is an integer in range.
        fn integer(at: &str) -> Option<i64> = document_integer;
        /// The boolean there.
        fn boolean(at: &str) -> Option<bool> = document_boolean;
        /// The number of items of the array or members of the object there; otherwise 0.
        fn len(at: &str) -> u32 = document_len;
        /// The keys of the object there, in its order; otherwise empty.
        fn keys(at: &str) -> Vec<String> = document_keys;
        /// The JSON text of what is there.
        fn json(at: &str) -> Option<String> = document_json;
    }
}
