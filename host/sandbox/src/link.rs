//! The imports of the contract, one row for each method of `wit/`.
//!
//! A row names the method, its parameters and result as they cross the boundary, and the [`Call`] method that answers;
//! what it may do is decided there. That the rows fit `wit/` is seen when a component that imports all of them is linked
//! (`tests/every_method_links.rs`).
//!
//! [`Call`]: trainyard_model::call::Call

use trainyard_model::{
    manifest::interface,
    text::{MAX_TEXT, clean},
};
use wasmtime::{
    StoreContextMut,
    component::{Linker, LinkerInstance, Resource, ResourceType},
};

use crate::{
    state::{State, charge, host},
    types::{
        Container, Context, Dependency, Devices, Document, Give, Info, Job, KeyFile, Lookups,
        Mount, Object, Objects, PodSet, Port, Quantity,
    },
};

macro_rules! methods {
    ($instance:ident, $resource:literal, $marker:ident {
        $($name:literal ($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = |$call:ident, $this:ident| $body:expr;)+
    }) => {
        $instance.resource($resource, ResourceType::host::<$marker>(), |_, _| Ok(()))?;
        $($instance.func_wrap(
            concat!("[method]", $resource, ".", $name),
            |mut store: StoreContextMut<'_, State>, (handle, $($arg,)*): (Resource<$marker>, $($ty,)*)| {
                let $this = handle.rep();
                let value = host(&mut store, concat!($resource, ".", $name), |$call| $body)?;
                Ok(methods!(@give value $(, $ret)?))
            },
        )?;)+
    };
    (@give $value:ident) => { $value };
    (@give $value:ident, $ret:ty) => { (Give::<$ret>::give($value),) };
}

/// Adds everything that a component may import.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    types(&mut linker.instance(&interface("types"))?)?;
    job(&mut linker.instance(&interface("job"))?)?;
    pod_set_info(&mut linker.instance(&interface("pod-set-info"))?)?;
    lookups(&mut linker.instance(&interface("lookups"))?)?;
    objects(&mut linker.instance(&interface("objects"))?)?;
    context(&mut linker.instance(&interface("context"))?)?;
    let mut panics = linker.instance(&interface("panics"))?;
    panics.func_wrap(
        "message",
        |mut store: StoreContextMut<'_, State>, (text,): (String,)| {
            let head = text.floor_char_boundary(MAX_TEXT * 4);
            store.data_mut().panic_message = text.get(..head).map(clean);
            charge(&mut store, text.len() as u64)
        },
    )
}

fn types(instance: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    methods!(instance, "document", Document {
        "kind" (at: String) -> Option<String> = |call, this| call.document_kind(this, &at);
        "text" (at: String) -> Option<String> = |call, this| call.document_text(this, &at);
        "integer" (at: String) -> Option<i64> = |call, this| call.document_integer(this, &at);
        "boolean" (at: String) -> Option<bool> = |call, this| call.document_boolean(this, &at);
        "len" (at: String) -> u32 = |call, this| call.document_len(this, &at);
        "keys" (at: String) -> Vec<String> = |call, this| call.document_keys(this, &at);
        "json" (at: String) -> Option<String> = |call, this| call.document_json(this, &at);
    });
    Ok(())
}

fn job(instance: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    methods!(instance, "job", Job {
        "name" () -> String = |call, this| call.job_name(this);
        "namespace" () -> String = |call, this| call.job_namespace(this);
        "uid" () -> String = |call, this| call.job_uid(this);
        "suspended" () -> bool = |call, this| call.job_suspended(this);
        "label" (key: String) -> Option<String> = |call, this| call.job_label(this, &key);
        "annotation" (key: String) -> Option<String> = |call, this| call.job_annotation(this, &key);
        "runtime-kind" () -> String = |call, this| call.job_runtime_kind(this);
        "runtime-name" () -> String = |call, this| call.job_runtime_name(this);
        "runtime-label" (key: String) -> Option<String> = |call, this| call.job_runtime_label(this, &key);
        "runtime-annotation" (key: String) -> Option<String> = |call, this| call.job_runtime_annotation(this, &key);
        "nodes" () -> u32 = |call, this| call.job_nodes(this);
        "processes-per-node" () -> Option<u32> = |call, this| call.job_processes_per_node(this);
        "spec" () -> Resource<Document> = |call, this| call.job_spec(this);
        "config" () -> Resource<Document> = |call, this| call.job_config(this);
        "operator-config" () -> Resource<Document> = |call, this| call.job_operator_config(this);
    });
    Ok(())
}

fn pod_set_info(instance: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    methods!(instance, "info", Info {
        "pod-sets" () -> Vec<Resource<PodSet>> = |call, this| call.info_pod_sets(this);
        "pod-set" (name: String) -> Option<Resource<PodSet>> = |call, this| call.info_pod_set(this, &name);
        "with-ancestor" (ancestor: String) -> Vec<Resource<PodSet>> = |call, this| call.info_with_ancestor(this, &ancestor);
        "nodes" () -> Vec<Resource<PodSet>> = |call, this| call.info_nodes(this);
        "label" (key: String) -> Option<String> = |call, this| call.info_label(this, &key);
        "annotation" (key: String) -> Option<String> = |call, this| call.info_annotation(this, &key);
        "set-label" (key: String, value: String) = |call, this| call.info_set_label(this, &key, &value);
        "set-annotation" (key: String, value: String) = |call, this| call.info_set_annotation(this, &key, &value);
        "subdomain" () -> String = |call, this| call.info_subdomain(this);
        "cluster-domain" () -> String = |call, this| call.info_cluster_domain(this);
    });
    methods!(instance, "pod-set", PodSet {
        "name" () -> String = |call, this| call.pod_set_name(this);
        "ancestor" () -> Option<String> = |call, this| call.pod_set_ancestor(this);
        "depends-on" () -> Vec<Dependency> = |call, this| call.pod_set_depends_on(this);
        "count" () -> u32 = |call, this| call.pod_set_count(this);
        "replicas" () -> u32 = |call, this| call.pod_set_replicas(this);
        "address" (job_index: u32, pod_index: u32) -> String = |call, this| call.pod_set_address(this, job_index, pod_index);
        "address-count" () -> u32 = |call, this| call.pod_set_address_count(this);
        "addresses" (start: u32, max: u32) -> Vec<String> = |call, this| call.pod_set_addresses(this, start, max);
        "joined-addresses" (start: u32, max: u32, separator: String) -> String = |call, this| call.pod_set_joined_addresses(this, start, max, &separator);
        "containers" () -> Vec<Resource<Container>> = |call, this| call.pod_set_containers(this);
        "init-containers" () -> Vec<Resource<Container>> = |call, this| call.pod_set_init_containers(this);
        "container" (name: String) -> Option<Resource<Container>> = |call, this| call.pod_set_container(this, &name);
        "add-container" (name: String, image: String) -> Resource<Container> = |call, this| call.pod_set_add_container(this, &name, &image);
        "add-init-container" (name: String, image: String) -> Resource<Container> = |call, this| call.pod_set_add_init_container(this, &name, &image);
        "volumes" () -> Vec<String> = |call, this| call.pod_set_volumes(this);
        "volume" (name: String) -> Option<Resource<Document>> = |call, this| call.pod_set_volume(this, &name);
        "remove-volume" (name: String) = |call, this| call.pod_set_remove_volume(this, &name);
        "put-empty-dir" (name: String, medium: Option<String>, size_limit: Option<String>) = |call, this| call.pod_set_put_empty_dir(this, &name, medium.as_deref(), size_limit.as_deref());
        "put-own-config-map" (name: String, suffix: String, default_mode: Option<u32>, items: Vec<KeyFile>) = |call, this| call.pod_set_put_own_config_map(this, &name, &suffix, default_mode, &items.into_iter().map(Into::into).collect::<Vec<_>>());
        "put-raw-volume" (name: String, source: String) = |call, this| call.pod_set_put_raw_volume(this, &name, &source);
        "devices" () -> Vec<Devices> = |call, this| call.pod_set_devices(this);
        "accelerators" () -> Option<u32> = |call, this| call.pod_set_accelerators(this);
        "processes" () -> Option<u32> = |call, this| call.pod_set_processes(this);
        "pod-label" (key: String) -> Option<String> = |call, this| call.pod_set_pod_label(this, &key);
        "set-pod-label" (key: String, value: String) = |call, this| call.pod_set_set_pod_label(this, &key, &value);
        "remove-pod-label" (key: String) = |call, this| call.pod_set_remove_pod_label(this, &key);
        "pod-annotation" (key: String) -> Option<String> = |call, this| call.pod_set_pod_annotation(this, &key);
        "set-pod-annotation" (key: String, value: String) = |call, this| call.pod_set_set_pod_annotation(this, &key, &value);
        "remove-pod-annotation" (key: String) = |call, this| call.pod_set_remove_pod_annotation(this, &key);
        "node-selector" (key: String) -> Option<String> = |call, this| call.pod_set_node_selector(this, &key);
        "put-node-selector" (key: String, value: String) = |call, this| call.pod_set_put_node_selector(this, &key, &value);
        "priority-class" () -> Option<String> = |call, this| call.pod_set_priority_class(this);
        "set-priority-class" (name: String) = |call, this| call.pod_set_set_priority_class(this, &name);
        "scheduler-name" () -> Option<String> = |call, this| call.pod_set_scheduler_name(this);
        "set-scheduler-name" (name: String) = |call, this| call.pod_set_set_scheduler_name(this, &name);
    });
    methods!(instance, "container", Container {
        "name" () -> String = |call, this| call.container_name(this);
        "is-init" () -> bool = |call, this| call.container_is_init(this);
        "is-sidecar" () -> bool = |call, this| call.container_is_sidecar(this);
        "created-by-me" () -> bool = |call, this| call.container_created_by_me(this);
        "place-first" () = |call, this| call.container_place_first(this);
        "place-before" (anchor: String) = |call, this| call.container_place_before(this, &anchor);
        "place-after" (anchor: String) = |call, this| call.container_place_after(this, &anchor);
        "image" () -> Option<String> = |call, this| call.container_image(this);
        "set-image" (image: String) = |call, this| call.container_set_image(this, &image);
        "set-image-pull-policy" (policy: String) = |call, this| call.container_set_image_pull_policy(this, &policy);
        "command" () -> Option<Vec<String>> = |call, this| call.container_command(this);
        "set-command" (command: Vec<String>) = |call, this| call.container_set_command(this, &command);
        "args" () -> Option<Vec<String>> = |call, this| call.container_args(this);
        "set-args" (args: Vec<String>) = |call, this| call.container_set_args(this, &args);
        "clear-args" () = |call, this| call.container_clear_args(this);
        "runtime-command" () -> Option<Vec<String>> = |call, this| call.container_runtime_command(this);
        "runtime-args" () -> Option<Vec<String>> = |call, this| call.container_runtime_args(this);
        "working-dir" () -> Option<String> = |call, this| call.container_working_dir(this);
        "set-working-dir" (path: String) = |call, this| call.container_set_working_dir(this, &path);
        "set-restart-policy" (policy: String) = |call, this| call.container_set_restart_policy(this, &policy);
        "env-names" () -> Vec<String> = |call, this| call.container_env_names(this);
        "env" (name: String) -> Option<String> = |call, this| call.container_env(this, &name);
        "env-source" (name: String) -> Option<Resource<Document>> = |call, this| call.container_env_source(this, &name);
        "env-owner" (name: String) -> Option<String> = |call, this| call.container_env_owner(this, &name);
        "put-env" (name: String, value: String) = |call, this| call.container_put_env(this, &name, &value);
        "default-env" (name: String, value: String) = |call, this| call.container_default_env(this, &name, &value);
        "put-env-field" (name: String, path: String) = |call, this| call.container_put_env_field(this, &name, &path);
        "put-env-resource" (name: String, container: Option<String>, resource: String, divisor: Option<String>) = |call, this| call.container_put_env_resource(this, &name, container.as_deref(), &resource, divisor.as_deref());
        "put-env-own-config-map" (name: String, suffix: String, key: String) = |call, this| call.container_put_env_own_config_map(this, &name, &suffix, &key);
        "remove-env" (name: String) = |call, this| call.container_remove_env(this, &name);
        "ports" () -> Vec<Port> = |call, this| call.container_ports(this);
        "port" (number: u16, protocol: String) -> Option<Port> = |call, this| call.container_port(this, number, &protocol);
        "put-port" (port: Port) = |call, this| call.container_put_port(this, &port.into());
        "mounts" () -> Vec<Mount> = |call, this| call.container_mounts(this);
        "put-mount" (mount: Mount) = |call, this| call.container_put_mount(this, &mount.into());
        "remove-mount" (path: String) = |call, this| call.container_remove_mount(this, &path);
        "request" (resource: String) -> Option<String> = |call, this| call.container_request(this, &resource);
        "limit" (resource: String) -> Option<String> = |call, this| call.container_limit(this, &resource);
        "requests" () -> Vec<Quantity> = |call, this| call.container_requests(this);
        "limits" () -> Vec<Quantity> = |call, this| call.container_limits(this);
        "set-request" (resource: String, amount: String) = |call, this| call.container_set_request(this, &resource, &amount);
        "set-limit" (resource: String, amount: String) = |call, this| call.container_set_limit(this, &resource, &amount);
    });
    Ok(())
}

fn lookups(instance: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    methods!(instance, "lookups", Lookups {
        "get" (api_version: String, kind: String, name: String) -> Option<Resource<Document>> = |call, this| call.lookups_get(this, &api_version, &kind, &name);
        "all" (api_version: String, kind: String) -> Vec<Resource<Document>> = |call, this| call.lookups_all(this, &api_version, &kind);
        "served" (api_version: String, kind: String) -> bool = |call, this| call.lookups_served(this, &api_version, &kind);
    });
    Ok(())
}

fn objects(instance: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    methods!(instance, "object", Object {
        "name" () -> String = |call, this| call.object_name(this);
        "set-label" (key: String, value: String) = |call, this| call.object_set_label(this, &key, &value);
        "set-annotation" (key: String, value: String) = |call, this| call.object_set_annotation(this, &key, &value);
        "append" (key: String, text: String) = |call, this| call.object_append(this, &key, &text);
        "set-binary" (key: String, value: Vec<u8>) = |call, this| call.object_set_binary(this, &key, &value);
        "set-immutable" () = |call, this| call.object_set_immutable(this);
        "set-apply" (mode: String) = |call, this| call.object_set_apply(this, &mode);
    });
    methods!(instance, "objects", Objects {
        "name" (api_version: String, kind: String, suffix: String, content: Option<String>) -> String = |call, this| call.objects_name(this, &api_version, &kind, &suffix, content.as_deref());
        "emit" (api_version: String, kind: String, suffix: String, content: Option<String>) -> Resource<Object> = |call, this| call.objects_emit(this, &api_version, &kind, &suffix, content.as_deref());
    });
    Ok(())
}

fn context(instance: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    methods!(instance, "context", Context {
        "job" () -> Resource<Job> = |call, this| call.context_job(this);
        "lookups" () -> Resource<Lookups> = |call, this| call.context_lookups(this);
        "objects" () -> Resource<Objects> = |call, this| call.context_objects(this);
        "info" () -> Resource<Info> = |call, this| call.context_info(this);
        "base" () -> Resource<Info> = |call, this| call.context_base(this);
        "because" (text: String) = |call, this| call.context_because(this, &text);
        "warn" (message: String, field: Option<String>) = |call, this| call.context_warn(this, &message, field.as_deref());
        "error" (message: String, field: Option<String>) = |call, this| call.context_error(this, &message, field.as_deref());
        "log" (level: String, line: String) = |call, this| call.context_log(this, &level, &line);
        "supports" (feature: String) -> bool = |call, this| call.context_supports(this, &feature);
        "quantity-ceil" (amount: String) -> Option<i64> = |call, this| call.context_quantity_ceil(this, &amount);
        "quantity-milli" (amount: String) -> Option<i64> = |call, this| call.context_quantity_milli(this, &amount);
        "fit-name" (text: String, max: u32) -> String = |call, this| call.context_fit_name(this, &text, max);
    });
    Ok(())
}
