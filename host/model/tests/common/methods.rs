//! Every method of the contract, with a call of it on the test record, the claims that this call needs, and what it writes.
//!
//! `contract_is_documented` compares the table with `wit/`, so that no method can be forgotten. The other tests call each row with and
//! without its claims, in each phase, and on other handles.

use serde_json::{Value, json};
use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    plugin::Phase,
    value::{Devices, KeyFile, Mount, PodResourceClaim, Port, ResourceClaimUse},
};

/// The handle that a method is called on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// One of the record: the pod set `node` with its containers `node` and `setup`.
    Record,
    /// The same of the base record.
    Base,
    /// A container `own` that the plugin has added.
    Own,
    /// One of the pod set's containers, by position.
    Any(u8),
    /// One that refers to nothing.
    Nothing,
}

pub type Run = fn(&mut Call, On) -> Result<(), Fault>;

/// Claims as `(list, path)`.
pub type Claims = &'static [(&'static str, &'static str)];

/// A method with a call of it.
pub struct Method {
    /// The method of [`Call`]: `container_put_env`.
    pub name: &'static str,
    pub phase: Phase,
    pub claims: Claims,
    /// The claims of the container or object that the method is called on.
    pub given: Claims,
    /// Where it writes, below the place of its first claim.
    pub below: &'static str,
    /// The value that it writes there: `null` if it removes one. `None` if it does not change the record.
    pub value: Option<fn() -> Value>,
    pub run: Run,
    /// The arguments as they stand in the table.
    pub arguments: &'static str,
    /// Runs it, and returns what it answers, as `Debug` shows it.
    pub answer: fn(&mut Call, On) -> Result<String, Fault>,
}

impl Method {
    pub fn all_claims(&self) -> Vec<(&'static str, &'static str)> {
        self.claims.iter().chain(self.given).copied().collect()
    }

    pub fn is_write(&self) -> bool {
        self.claims.iter().any(|(list, _)| *list != "reads")
    }

    /// Whether it belongs to a resource of the record, and not to the TrainJob, lookups or objects.
    pub fn is_of_record(&self) -> bool {
        ["info_", "pod_set_", "container_"]
            .iter()
            .any(|of| self.name.starts_with(of))
    }
}

/// `RECEIVER.METHOD(ARGUMENTS)` as a [`Run`].
macro_rules! run {
    ($on:ident.$method:ident($($arg:expr),*)) => {
        |call: &mut trainyard_model::call::Call, on: $crate::common::methods::On| {
            let handle = $on(call, on)?;
            call.$method(handle, $($arg),*).map(drop)
        }
    };
}
pub(crate) use run;

macro_rules! answer {
    ($on:ident.$method:ident($($arg:expr),*)) => {
        |call, on| {
            let handle = $on(call, on)?;
            call.$method(handle, $($arg),*).map(|answer| format!("{answer:?}"))
        }
    };
}

macro_rules! value {
    () => {
        None
    };
    ($value:expr) => {
        Some(|| Value::from($value))
    };
}

const GPU_NODES: &str = r#"{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}"#;

macro_rules! methods {
    ($($on:ident.$method:ident($($arg:expr),*) $phase:ident [$($list:ident $path:literal),*]
        $(given [$($given:ident $of:literal),*])? $(at $below:literal)? $(= $value:expr)?;)+) => {
        pub const METHODS: &[Method] = &[$(Method {
            name: stringify!($method),
            phase: Phase::$phase,
            claims: &[$((stringify!($list), $path)),*],
            given: &[$($((stringify!($given), $of)),*)?],
            below: concat!($($below)?),
            value: value!($($value)?),
            run: run!($on.$method($($arg),*)),
            arguments: stringify!($($arg),*),
            answer: answer!($on.$method($($arg),*)),
        },)+];
    };
}

methods! {
    context.context_job() Transform [];
    context.context_lookups() Transform [];
    context.context_objects() Transform [];
    context.context_info() Transform [];
    context.context_base() Transform [];
    context.context_because("x") Transform [];
    context.context_warn("x", None) Transform [];
    context.context_error("x", None) Transform [];
    context.context_log("info", "x") Transform [];
    context.context_supports("x") Transform [];
    context.context_parse_json("{}") Transform [];
    context.context_quantity_ceil("1500m") Transform [];
    context.context_quantity_ceil("1.x") Transform [];
    context.context_quantity_milli("1500m") Transform [];
    context.context_quantity_milli("1.x") Transform [];
    context.context_fit_name("x", 63) Transform [];
    context.context_keep("a", "b") Transform [];
    context.context_kept("a") Check [];
    context.context_fact("host/version") Transform [];

    job.job_name() Transform [];
    job.job_namespace() Transform [];
    job.job_uid() Transform [];
    job.job_suspended() Transform [];
    job.job_runtime_kind() Transform [];
    job.job_runtime_name() Transform [];
    job.job_nodes() Transform [];
    job.job_processes_per_node() Transform [];
    job.job_config() Transform [];
    job.job_operator_config() Transform [];
    job.job_label("x") Transform [];
    job.job_annotation("x") Transform [];
    job.job_runtime_label("x") Transform [];
    job.job_runtime_annotation("x") Transform [];
    job_with_args.job_spec() Transform [reads "job[/trainer/args]"];

    config.document_kind("/a") Transform [];
    config.document_kind("/list/0") Transform [];
    config.document_text("/a") Transform [];
    config.document_text("/list/0") Transform [];
    config.document_integer("/a") Transform [];
    config.document_integer("/list/1") Transform [];
    config.document_boolean("/a") Transform [];
    config.document_boolean("/list/2") Transform [];
    config.document_len("") Transform [];
    config.document_len("/a") Transform [];
    config.document_len("/list") Transform [];
    config.document_keys("/a") Transform [];
    config.document_keys("") Transform [];
    config.document_json("/a") Transform [];
    config.document_json("/list") Transform [];

    lookups.lookups_get("v1", "ConfigMap", "known") Build [reads "lookups[v1/ConfigMap/known]"];
    lookups.lookups_find("v1", "ConfigMap", "optional") Build [reads "lookups[v1/ConfigMap/optional]"];
    lookups.lookups_find_in_catalog("v1", "ConfigMap", "shared") Check [reads "catalog[v1/ConfigMap/shared]"];
    lookups.lookups_all("v1", "ConfigMap") Check [reads "lookups[v1/ConfigMap/*]"];
    lookups.lookups_served("v1", "ConfigMap") Transform [reads "lookups[v1/ConfigMap/#]"];

    objects.objects_name("v1", "ConfigMap", "-a", None) Transform [];
    objects.objects_emit("v1", "ConfigMap", "-a", None) Build [writes "objects[v1/ConfigMap/-a]"];
    objects.objects_key_pair("a", "curve25519") Build [];
    objects.objects_random("a", 16, "hex") Build [];
    key_pair.key_pair_private("z85") Build [];
    key_pair.key_pair_public("z85") Build [];
    config_map.object_name() Build [] given [writes "objects[v1/ConfigMap/-a]"];
    config_map.object_set_label("a", "b") Build [] given [writes "objects[v1/ConfigMap/-a]"];
    config_map.object_set_annotation("a", "b") Build [] given [writes "objects[v1/ConfigMap/-a]"];
    config_map.object_append("a", "b") Build [] given [writes "objects[v1/ConfigMap/-a]"];
    config_map.object_set_binary("a", &[1]) Build [] given [writes "objects[v1/ConfigMap/-a]"];
    config_map.object_set_immutable() Build [] given [writes "objects[v1/ConfigMap/-a]"];
    config_map.object_set_apply("live") Build [] given [writes "objects[v1/ConfigMap/-a]"];
    secret.object_append_secret("a", handle::SecretText(0)) Build [] given [writes "objects[v1/Secret/-a]"];
    secret.object_set_type("Opaque") Build [] given [writes "objects[v1/Secret/-a]"];
    widget.object_set_body("{}") Build [] given [writes "objects[example.com/v1/Widget/-a]"];
    widget.object_report_while("phase/Pending", "waits") Build [] given [writes "objects[example.com/v1/Widget/-a]"];

    info.info_pod_sets() Transform [];
    info.info_pod_set("node") Transform [];
    info.info_with_ancestor("trainer") Transform [];
    info.info_nodes() Transform [];
    info.info_gang_members(&texts(["node"])) Transform [];
    info.info_selector() Transform [];
    info.info_subdomain() Transform [];
    info.info_cluster_domain() Transform [];
    info.info_has_host_names() Transform [];
    info.info_label("team") Transform [reads "labels[team]"];
    info.info_annotation("x") Transform [reads "annotations[x]"];
    info.info_set_label("x", "1") Transform [writes "labels[x]"] = "1";
    info.info_set_label("team", "2") Transform [writes "labels[team]"] = "2";
    info.info_set_annotation("x", "1") Transform [writes "annotations[x]"] = "1";
    info.info_gang_requests(&texts(["node"])) Transform [
        reads "pod-sets[node].containers[*].requests[*]", reads "pod-sets[node].containers[*].limits[*]",
        reads "pod-sets[node].init-containers[*].requests[*]", reads "pod-sets[node].init-containers[*].limits[*]",
        reads "pod-sets[node].init-containers[*].restart-policy", reads "pod-sets[node].raw[resources]",
        reads "pod-sets[node].raw[overhead]", reads "pod-sets[node].raw[runtimeClassName]",
        reads "lookups[v1/LimitRange/*]", reads "lookups[node.k8s.io/v1/RuntimeClass/kata]"];

    set.pod_set_name() Transform [];
    set.pod_set_selector() Transform [];
    set.pod_set_ancestor() Transform [];
    set.pod_set_depends_on() Transform [];
    set.pod_set_count() Transform [];
    set.pod_set_replicas() Transform [];
    set.pod_set_is_indexed() Transform [];
    set.pod_set_address_count() Transform [];
    set.pod_set_address(0, 3) Transform [];
    set.pod_set_addresses(0, 9) Transform [];
    set.pod_set_joined_addresses(0, 9, ",") Transform [];
    set.pod_set_hostlist() Transform [];
    set.pod_set_container("node") Transform [];
    set.pod_set_pod_requests() Transform [
        reads "pod-sets[node].containers[*].requests[*]", reads "pod-sets[node].containers[*].limits[*]",
        reads "pod-sets[node].init-containers[*].requests[*]", reads "pod-sets[node].init-containers[*].limits[*]",
        reads "pod-sets[node].init-containers[*].restart-policy", reads "pod-sets[node].raw[resources]",
        reads "pod-sets[node].raw[overhead]", reads "pod-sets[node].raw[runtimeClassName]",
        reads "lookups[v1/LimitRange/*]", reads "lookups[node.k8s.io/v1/RuntimeClass/kata]"];
    set.pod_set_backoff_limit() Transform [reads "pod-sets[node].backoff-limit"];
    set.pod_set_set_backoff_limit(7) Transform [writes "pod-sets[node].backoff-limit"] = 7;
    set.pod_set_containers() Transform [reads "pod-sets[node].containers[#]"];
    set.pod_set_init_containers() Transform [reads "pod-sets[node].init-containers[#]"];
    set.pod_set_add_container("new", "image") Transform [creates "pod-sets[node].containers[new]"] at ".image" = "image";
    set.pod_set_add_container("more", "other") Transform [creates "pod-sets[node].containers[more]"] at ".image" = "other";
    set.pod_set_add_init_container("first", "image") Transform [creates "pod-sets[node].init-containers[first]"] at ".image" = "image";
    set.pod_set_volumes() Transform [reads "pod-sets[node].volumes[#]"];
    set.pod_set_volume("data") Transform [reads "pod-sets[node].volumes[data]"];
    set.pod_set_remove_volume("data") Transform [writes "pod-sets[node].volumes[data]"] = json!(null);
    set.pod_set_remove_volume("new") Transform [writes "pod-sets[node].volumes[new]"];
    set.pod_set_put_empty_dir("new", None, None) Transform [writes "pod-sets[node].volumes[new]"] = json!({"name": "new", "emptyDir": {}});
    set.pod_set_put_empty_dir("data", Some("Memory"), Some("1Gi")) Transform [writes "pod-sets[node].volumes[data]"]
        = json!({"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}});
    set.pod_set_put_own_config_map("own", "-a", None, &[KeyFile { key: "k".to_owned(), path: "p".to_owned(), mode: Some(4) }])
        Transform [writes "pod-sets[node].volumes[own]", writes "objects[v1/ConfigMap/-a]"]
        = json!({"name": "own", "configMap": {"name": "llama-a", "items": [{"key": "k", "path": "p", "mode": 4}]}});
    set.pod_set_put_own_secret("keys", "-a", Some(0o440), &[]) Transform [writes "pod-sets[node].volumes[keys]", writes "objects[v1/Secret/-a]"]
        = json!({"name": "keys", "secret": {"secretName": "llama-a", "defaultMode": 0o440}});
    set.pod_set_put_raw_volume("host", r#"{"hostPath": {"path": "/"}}"#) Transform [writes "pod-sets[node].volumes[host]"]
        = json!({"name": "host", "hostPath": {"path": "/"}});
    set.pod_set_resource_claims() Transform [reads "pod-sets[node].resource-claims[*]"];
    set.pod_set_put_resource_claim(&resource_claim("gpu", Some("a"), None)) Transform [writes "pod-sets[node].resource-claims[gpu]"]
        = json!({"name": "gpu", "resourceClaimName": "a"});
    set.pod_set_put_resource_claim(&resource_claim("gpu", None, Some("b"))) Transform [writes "pod-sets[node].resource-claims[gpu]"]
        = json!({"name": "gpu", "resourceClaimTemplateName": "b"});
    set.pod_set_remove_resource_claim("gpu") Transform [writes "pod-sets[node].resource-claims[gpu]"];
    set.pod_set_devices() Transform [reads "pod-sets[node].devices[*]"];
    set.pod_set_put_devices(&devices("a")) Transform [writes "pod-sets[node].devices[a]"] = json!({"count": 4, "accelerator": true});
    set.pod_set_accelerators() Transform [reads "pod-sets[node].devices[*]"];
    set.pod_set_processes() Transform [
        reads "pod-sets[node].devices[*]", reads "pod-sets[node].containers[node].requests[cpu]",
        reads "pod-sets[node].containers[node].limits[cpu]"];
    set.pod_set_pod_label("app") Transform [reads "pod-sets[node].pod-labels[app]"];
    set.pod_set_set_pod_label("app", "x") Transform [writes "pod-sets[node].pod-labels[app]"] = "x";
    set.pod_set_set_pod_label("new", "y") Transform [writes "pod-sets[node].pod-labels[new]"] = "y";
    set.pod_set_remove_pod_label("app") Transform [writes "pod-sets[node].pod-labels[app]"] = json!(null);
    set.pod_set_pod_annotation("x") Transform [reads "pod-sets[node].pod-annotations[x]"];
    set.pod_set_set_pod_annotation("x", "1") Transform [writes "pod-sets[node].pod-annotations[x]"] = "1";
    set.pod_set_remove_pod_annotation("x") Transform [writes "pod-sets[node].pod-annotations[x]"];
    set.pod_set_node_selector("x") Transform [reads "pod-sets[node].node-selector[x]"];
    set.pod_set_put_node_selector("x", "1") Transform [writes "pod-sets[node].node-selector[x]"] = "1";
    set.pod_set_priority_class() Transform [reads "pod-sets[node].priority-class"];
    set.pod_set_set_priority_class("x") Transform [writes "pod-sets[node].priority-class"] = "x";
    set.pod_set_scheduler_name() Transform [reads "pod-sets[node].scheduler-name"];
    set.pod_set_set_scheduler_name("x") Transform [writes "pod-sets[node].scheduler-name"] = "x";
    set.pod_set_add_scheduling_gate("example.com/gate") Transform [writes "pod-sets[node].scheduling-gates[example.com/gate]"]
        = json!({"name": "example.com/gate"});
    set.pod_set_add_toleration("gpu", r#"{"operator": "Exists"}"#) Transform [writes "pod-sets[node].tolerations[gpu]"]
        = json!({"operator": "Exists"});
    set.pod_set_add_affinity_term("gpus", "nodeAffinity/required", GPU_NODES)
        Transform [writes "pod-sets[node].affinity-terms[gpus]"]
        = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}}});
    set.pod_set_add_affinity_term("zone", "podAffinity/required", r#"{"topologyKey": "zone"}"#)
        Transform [writes "pod-sets[node].affinity-terms[zone]"]
        = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}});
    set.pod_set_dns_searches() Transform [reads "pod-sets[node].dns-searches[#]"];
    set.pod_set_add_dns_search("ml.svc.cluster.local") Transform [writes "pod-sets[node].dns-searches[ml.svc.cluster.local]"]
        = "ml.svc.cluster.local";
    set.pod_set_fs_group() Transform [reads "pod-sets[node].fs-group"];
    set.pod_set_set_fs_group(7) Transform [writes "pod-sets[node].fs-group"] = 7;
    set.pod_set_raw("hostNetwork") Transform [reads "pod-sets[node].raw[hostNetwork]"];
    set.pod_set_set_raw("securityContext/runAsUser", "7") Transform [writes "pod-sets[node].raw[securityContext/runAsUser]"] = 7;

    node.container_name() Transform [];
    node.container_is_init() Transform [];
    setup.container_is_sidecar() Transform [reads "pod-sets[node].init-containers[setup].restart-policy"];
    node.container_created_by_me() Transform [];
    node.container_runtime_command() Transform [];
    node.container_runtime_args() Transform [];
    added.container_place_first() Transform [] given [creates "pod-sets[node].init-containers[x]"] at ".placement[first]" = "";
    added.container_place_before("setup") Transform [] given [creates "pod-sets[node].init-containers[x]"] at ".placement[before/setup]" = "";
    added.container_place_after("setup") Transform [] given [creates "pod-sets[node].init-containers[x]"] at ".placement[after/setup]" = "";
    node.container_image() Transform [reads "pod-sets[node].containers[node].image"];
    node.container_set_image("x") Transform [writes "pod-sets[node].containers[node].image"] = "x";
    node.container_set_image_pull_policy("Always") Transform [writes "pod-sets[node].containers[node].image-pull-policy"] = "Always";
    node.container_command() Transform [reads "pod-sets[node].containers[node].command"];
    node.container_set_command(&texts(["a"])) Transform [writes "pod-sets[node].containers[node].command"] = json!(["a"]);
    node.container_args() Transform [reads "pod-sets[node].containers[node].args"];
    node.container_set_args(&texts(["b", "c"])) Transform [writes "pod-sets[node].containers[node].args"] = json!(["b", "c"]);
    node.container_clear_args() Transform [writes "pod-sets[node].containers[node].args"];
    node.container_working_dir() Transform [reads "pod-sets[node].containers[node].working-dir"];
    node.container_set_working_dir("/x") Transform [writes "pod-sets[node].containers[node].working-dir"] = "/x";
    node.container_set_restart_policy("Always") Transform [writes "pod-sets[node].containers[node].restart-policy"] = "Always";
    node.container_env_names() Transform [reads "pod-sets[node].containers[node].env[#]"];
    node.container_env("MODE") Transform [reads "pod-sets[node].containers[node].env[MODE]"];
    node.container_env_source("MODE") Transform [reads "pod-sets[node].containers[node].env[MODE]"];
    node.container_env_owner("MODE") Transform [reads "pod-sets[node].containers[node].env[MODE]"];
    node.container_put_env("NEW", "1") Transform [writes "pod-sets[node].containers[node].env[NEW]"] = "1";
    node.container_default_env("MODE", "1") Transform [writes "pod-sets[node].containers[node].env[MODE]"];
    node.container_default_env("DEFAULT", "1") Transform [writes "pod-sets[node].containers[node].env[DEFAULT]"] = "1";
    node.container_put_env_field("NEW", "metadata.name") Transform [writes "pod-sets[node].containers[node].env[NEW]"]
        = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    node.container_put_env_resource("CPU", None, "limits.cpu", None) Transform [writes "pod-sets[node].containers[node].env[CPU]"]
        = json!({"resourceFieldRef": {"resource": "limits.cpu"}});
    node.container_put_env_resource("GB", Some("side"), "limits.memory", Some("1G")) Transform [writes "pod-sets[node].containers[node].env[GB]"]
        = json!({"resourceFieldRef": {"containerName": "side", "resource": "limits.memory", "divisor": "1G"}});
    node.container_put_env_own_config_map("OWN", "-a", "key")
        Transform [writes "pod-sets[node].containers[node].env[OWN]", writes "objects[v1/ConfigMap/-a]"]
        = json!({"configMapKeyRef": {"name": "llama-a", "key": "key"}});
    node.container_put_env_own_secret("OWN", "-a", "key")
        Transform [writes "pod-sets[node].containers[node].env[OWN]", writes "objects[v1/Secret/-a]"]
        = json!({"secretKeyRef": {"name": "llama-a", "key": "key"}});
    node.container_put_env_raw("RAW", r#"{"secretKeyRef": {"name": "a", "key": "b"}}"#) Transform [writes "pod-sets[node].containers[node].env[RAW]"]
        = json!({"secretKeyRef": {"name": "a", "key": "b"}});
    node.container_remove_env("NEW") Transform [writes "pod-sets[node].containers[node].env[NEW]"];
    node.container_ports() Transform [reads "pod-sets[node].containers[node].ports[*]"];
    node.container_port(80, "TCP") Transform [reads "pod-sets[node].containers[node].ports[80/TCP]"];
    node.container_put_port(&port(29500)) Transform [writes "pod-sets[node].containers[node].ports[29500/TCP]"]
        = json!({"containerPort": 29500});
    node.container_put_port(&Port { name: Some("p".to_owned()), protocol: "UDP".to_owned(), host_port: Some(8080), host_ip: Some("192.0.2.1".to_owned()), ..port(80) })
        Transform [writes "pod-sets[node].containers[node].ports[80/UDP]"]
        = json!({"name": "p", "containerPort": 80, "protocol": "UDP", "hostPort": 8080, "hostIP": "192.0.2.1"});
    node.container_mounts() Transform [reads "pod-sets[node].containers[node].mounts[*]"];
    node.container_mount("/data") Transform [reads "pod-sets[node].containers[node].mounts[/data]"];
    node.container_default_mount(&mount("data", "/data")) Transform [writes "pod-sets[node].containers[node].mounts[/data]"];
    node.container_put_mount(&mount("data", "/new")) Transform [writes "pod-sets[node].containers[node].mounts[/new]"]
        = json!({"name": "data", "mountPath": "/new", "readOnly": true});
    node.container_put_mount(&Mount { sub_path: text("s"), mount_propagation: text("HostToContainer"), read_only: false, ..mount("data", "/data") })
        Transform [writes "pod-sets[node].containers[node].mounts[/data]"]
        = json!({"name": "data", "mountPath": "/data", "subPath": "s", "mountPropagation": "HostToContainer"});
    node.container_remove_mount("/data") Transform [writes "pod-sets[node].containers[node].mounts[/data]"] = json!(null);
    node.container_request("cpu") Transform [reads "pod-sets[node].containers[node].requests[cpu]", reads "pod-sets[node].containers[node].limits[cpu]"];
    node.container_limit("cpu") Transform [reads "pod-sets[node].containers[node].limits[cpu]"];
    node.container_requests() Transform [reads "pod-sets[node].containers[node].requests[*]", reads "pod-sets[node].containers[node].limits[*]"];
    node.container_limits() Transform [reads "pod-sets[node].containers[node].limits[*]"];
    node.container_set_request("cpu", "1") Transform [writes "pod-sets[node].containers[node].requests[cpu]"] = "1";
    node.container_set_limit("cpu", "1") Transform [writes "pod-sets[node].containers[node].limits[cpu]"] = "1";
    node.container_resource_claim_uses() Transform [reads "pod-sets[node].containers[node].resource-claims[*]"];
    node.container_put_resource_claim_use(&ResourceClaimUse { name: "gpu".to_owned(), request: text("r") })
        Transform [writes "pod-sets[node].containers[node].resource-claims[gpu]"] = json!({"name": "gpu", "request": "r"});
    node.container_remove_resource_claim_use("gpu") Transform [writes "pod-sets[node].containers[node].resource-claims[gpu]"];
    node.container_capabilities() Transform [reads "pod-sets[node].containers[node].capabilities[#]"];
    node.container_add_capability("IPC_LOCK") Transform [writes "pod-sets[node].containers[node].capabilities[IPC_LOCK]"] = "IPC_LOCK";
    node.container_raw("readinessProbe") Transform [reads "pod-sets[node].containers[node].raw[readinessProbe]"];
    node.container_set_raw("tty", "true") Transform [writes "pod-sets[node].containers[node].raw[tty]"] = true;
}

pub fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn texts<const N: usize>(texts: [&str; N]) -> [String; N] {
    texts.map(str::to_owned)
}

pub fn port(number: u16) -> Port {
    let protocol = "TCP".to_owned();
    Port {
        number,
        protocol,
        ..Port::default()
    }
}

/// A read-only mount of a volume.
pub fn mount(volume: &str, path: &str) -> Mount {
    Mount {
        volume: volume.to_owned(),
        path: path.to_owned(),
        read_only: true,
        ..Mount::default()
    }
}

pub fn resource_claim(name: &str, claim: Option<&str>, template: Option<&str>) -> PodResourceClaim {
    PodResourceClaim {
        name: name.to_owned(),
        resource_claim: claim.map(str::to_owned),
        resource_claim_template: template.map(str::to_owned),
    }
}

pub fn devices(source: &str) -> Devices {
    Devices {
        source: source.to_owned(),
        count: Some(4),
        accelerator: true,
    }
}

macro_rules! handles {
    ($($name:ident -> $handle:ident $receiver:expr;)+) => {$(
        pub fn $name(call: &mut Call, on: On) -> Result<handle::$handle, Fault> {
            let receiver: fn(&mut Call, On) -> Result<handle::$handle, Fault> = $receiver;
            receiver(call, on)
        }
    )+};
}

/// A handle that refers to nothing.
const NOTHING: u32 = 77;

handles! {
    context -> Context |_, _| Ok(Call::CONTEXT);
    job -> Job |_, _| Ok(handle::Job(0));
    // A claim on the spec is checked when it is read.
    job_with_args -> Job |c, _| {
        let spec = c.job_spec(handle::Job(0))?;
        c.document_len(spec, "/trainer/args")?;
        Ok(handle::Job(0))
    };
    lookups -> Lookups |_, _| Ok(handle::Lookups(0));
    objects -> Objects |_, _| Ok(handle::Objects(0));
    key_pair -> KeyPair |c, on| match on {
        On::Nothing => Ok(handle::KeyPair(NOTHING)),
        _ => c.objects_key_pair(handle::Objects(0), "a", "curve25519"),
    };
    config -> Document |c, on| match on {
        On::Nothing => Ok(handle::Document(NOTHING)),
        _ => c.job_config(handle::Job(0)),
    };
    config_map -> Object |c, on| emitted(c, on, "v1", "ConfigMap");
    secret -> Object |c, on| {
        c.objects_random(handle::Objects(0), "a", 16, "hex")?;
        emitted(c, on, "v1", "Secret")
    };
    widget -> Object |c, on| emitted(c, on, "example.com/v1", "Widget");
    info -> Info |c, on| match on {
        On::Base => c.context_base(Call::CONTEXT),
        _ => c.context_info(Call::CONTEXT),
    };
    set -> PodSet |c, on| match on {
        On::Nothing => Ok(handle::PodSet(NOTHING)),
        _ => { let info = info(c, on)?; Ok(c.info_pod_set(info, "node")?.unwrap()) }
    };
    node -> Container |c, on| container(c, on, "node");
    setup -> Container |c, on| container(c, on, "setup");
    added -> Container |c, on| match on {
        On::Nothing => container(c, on, ""),
        _ => { let set = set(c, on)?; c.pod_set_add_init_container(set, "x", "image") }
    };
}

fn emitted(call: &mut Call, on: On, version: &str, kind: &str) -> Result<handle::Object, Fault> {
    match on {
        On::Nothing => Ok(handle::Object(NOTHING)),
        _ => call.objects_emit(handle::Objects(0), version, kind, "-a", None),
    }
}

fn container(call: &mut Call, on: On, name: &str) -> Result<handle::Container, Fault> {
    let set = set(call, if on == On::Nothing { On::Record } else { on })?;
    match on {
        On::Record | On::Base => Ok(call.pod_set_container(set, name)?.unwrap()),
        On::Own if name == "setup" => call.pod_set_add_init_container(set, "own", "image"),
        On::Own => call.pod_set_add_container(set, "own", "image"),
        On::Any(at) => {
            let mut all = call.pod_set_containers(set)?;
            all.extend(call.pod_set_init_containers(set)?);
            Ok(all[usize::from(at) % all.len()])
        }
        On::Nothing => Ok(handle::Container(NOTHING)),
    }
}
