//! Every method of the contract that needs a claim, with these claims and a call of it on the test record.

#![allow(dead_code, missing_docs, unreachable_pub)]

use serde_json::json;
use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    plugin::Phase,
    value::{Devices, Mount, PodResourceClaim, Port, ResourceClaimUse},
};

use crate::common::{container, pod_set};

/// A method with its claims, as `(list, path)`.
pub struct Method {
    /// As the contract names it: `container.put-env`.
    pub name: &'static str,
    pub phase: Phase,
    pub claims: &'static [(&'static str, &'static str)],
    pub run: fn(&mut Call) -> Result<(), Fault>,
}

macro_rules! methods {
    ($($name:literal $phase:ident [$($list:ident $path:literal),+] $run:expr;)+) => {
        pub const METHODS: &[Method] = &[$(Method {
            name: $name,
            phase: Phase::$phase,
            claims: &[$((stringify!($list), $path)),+],
            run: $run,
        },)+];
    };
}

/// The container `node` of the pod set `node`.
fn node(call: &mut Call) -> handle::Container {
    container(call, "node", "node")
}

fn set(call: &mut Call) -> handle::PodSet {
    pod_set(call, "node")
}

fn info(call: &mut Call) -> Result<handle::Info, Fault> {
    call.context_info(Call::CONTEXT)
}

fn done<T>(result: Result<T, Fault>) -> Result<(), Fault> {
    result.map(drop)
}

methods! {
    "job.spec" Transform [reads "job[/trainer/args]"]
        |c| { let spec = c.job_spec(handle::Job(0))?; done(c.document_len(spec, "/trainer/args")) };
    "lookups.get" Build [reads "lookups[v1/ConfigMap/known]"] |c| done(c.lookups_get(handle::Lookups(0), "v1", "ConfigMap", "known"));
    "lookups.find" Build [reads "lookups[v1/ConfigMap/optional]"] |c| done(c.lookups_find(handle::Lookups(0), "v1", "ConfigMap", "optional"));
    "lookups.find-in-catalog" Check [reads "catalog[v1/ConfigMap/shared]"]
        |c| done(c.lookups_find_in_catalog(handle::Lookups(0), "v1", "ConfigMap", "shared"));
    "lookups.all" Check [reads "lookups[v1/ConfigMap/*]"] |c| done(c.lookups_all(handle::Lookups(0), "v1", "ConfigMap"));
    "lookups.served" Transform [reads "lookups[v1/ConfigMap/#]"] |c| done(c.lookups_served(handle::Lookups(0), "v1", "ConfigMap"));
    "objects.emit" Build [writes "objects[v1/ConfigMap/-a]"] |c| done(c.objects_emit(handle::Objects(0), "v1", "ConfigMap", "-a", None));

    "info.label" Transform [reads "labels[team]"] |c| { let i = info(c)?; done(c.info_label(i, "team")) };
    "info.annotation" Transform [reads "annotations[x]"] |c| { let i = info(c)?; done(c.info_annotation(i, "x")) };
    "info.set-label" Transform [writes "labels[x]"] |c| { let i = info(c)?; c.info_set_label(i, "x", "1") };
    "info.set-annotation" Transform [writes "annotations[x]"] |c| { let i = info(c)?; c.info_set_annotation(i, "x", "1") };

    "info.gang-requests" Transform [
        reads "pod-sets[node].containers[*].requests[*]", reads "pod-sets[node].containers[*].limits[*]",
        reads "pod-sets[node].init-containers[*].requests[*]", reads "pod-sets[node].init-containers[*].limits[*]",
        reads "pod-sets[node].init-containers[*].restart-policy", reads "pod-sets[node].raw[resources]",
        reads "pod-sets[node].raw[overhead]", reads "pod-sets[node].raw[runtimeClassName]",
        reads "lookups[v1/LimitRange/*]", reads "lookups[node.k8s.io/v1/RuntimeClass/kata]"
    ] |c| { let i = info(c)?; done(c.info_gang_requests(i, &["node".to_owned()])) };
    "pod-set.pod-requests" Transform [
        reads "pod-sets[node].containers[*].requests[*]", reads "pod-sets[node].containers[*].limits[*]",
        reads "pod-sets[node].init-containers[*].requests[*]", reads "pod-sets[node].init-containers[*].limits[*]",
        reads "pod-sets[node].init-containers[*].restart-policy", reads "pod-sets[node].raw[resources]",
        reads "pod-sets[node].raw[overhead]", reads "pod-sets[node].raw[runtimeClassName]",
        reads "lookups[v1/LimitRange/*]", reads "lookups[node.k8s.io/v1/RuntimeClass/kata]"
    ] |c| { let s = set(c); done(c.pod_set_pod_requests(s)) };
    "pod-set.backoff-limit" Transform [reads "pod-sets[node].backoff-limit"] |c| { let s = set(c); done(c.pod_set_backoff_limit(s)) };
    "pod-set.set-backoff-limit" Transform [writes "pod-sets[node].backoff-limit"] |c| { let s = set(c); c.pod_set_set_backoff_limit(s, 7) };
    "pod-set.containers" Transform [reads "pod-sets[node].containers[#]"] |c| { let s = set(c); done(c.pod_set_containers(s)) };
    "pod-set.init-containers" Transform [reads "pod-sets[node].init-containers[#]"]
        |c| { let s = set(c); done(c.pod_set_init_containers(s)) };
    "pod-set.add-container" Transform [creates "pod-sets[node].containers[new]"]
        |c| { let s = set(c); done(c.pod_set_add_container(s, "new", "image")) };
    "pod-set.add-init-container" Transform [creates "pod-sets[node].init-containers[new]"]
        |c| { let s = set(c); done(c.pod_set_add_init_container(s, "new", "image")) };
    "pod-set.volumes" Transform [reads "pod-sets[node].volumes[#]"] |c| { let s = set(c); done(c.pod_set_volumes(s)) };
    "pod-set.volume" Transform [reads "pod-sets[node].volumes[data]"] |c| { let s = set(c); done(c.pod_set_volume(s, "data")) };
    "pod-set.remove-volume" Transform [writes "pod-sets[node].volumes[data]"] |c| { let s = set(c); c.pod_set_remove_volume(s, "data") };
    "pod-set.put-empty-dir" Transform [writes "pod-sets[node].volumes[new]"]
        |c| { let s = set(c); c.pod_set_put_empty_dir(s, "new", None, None) };
    "pod-set.put-own-config-map" Transform [writes "pod-sets[node].volumes[new]", writes "objects[v1/ConfigMap/-a]"]
        |c| { let s = set(c); c.pod_set_put_own_config_map(s, "new", "-a", None, &[]) };
    "pod-set.put-own-secret" Transform [writes "pod-sets[node].volumes[new]", writes "objects[v1/Secret/-a]"]
        |c| { let s = set(c); c.pod_set_put_own_secret(s, "new", "-a", None, &[]) };
    "pod-set.put-raw-volume" Transform [writes "pod-sets[node].volumes[new]"]
        |c| { let s = set(c); c.pod_set_put_raw_volume(s, "new", &json!({"hostPath": {"path": "/"}}).to_string()) };
    "pod-set.resource-claims" Transform [reads "pod-sets[node].resource-claims[*]"]
        |c| { let s = set(c); done(c.pod_set_resource_claims(s)) };
    "pod-set.put-resource-claim" Transform [writes "pod-sets[node].resource-claims[gpu]"] |c| {
        let claim = PodResourceClaim { name: "gpu".to_owned(), resource_claim: Some("a".to_owned()), resource_claim_template: None };
        let s = set(c);
        c.pod_set_put_resource_claim(s, &claim)
    };
    "pod-set.remove-resource-claim" Transform [writes "pod-sets[node].resource-claims[gpu]"]
        |c| { let s = set(c); c.pod_set_remove_resource_claim(s, "gpu") };
    "pod-set.put-devices" Transform [writes "pod-sets[node].devices[a]"] |c| {
        let s = set(c);
        c.pod_set_put_devices(s, &Devices { source: "a".to_owned(), count: None, accelerator: true })
    };
    "pod-set.devices" Transform [reads "pod-sets[node].devices[*]"]
        |c| { let s = set(c); done(c.pod_set_devices(s)) };
    "pod-set.accelerators" Transform [reads "pod-sets[node].devices[*]"]
        |c| { let s = set(c); done(c.pod_set_accelerators(s)) };
    "pod-set.processes" Transform [
        reads "pod-sets[node].devices[*]", reads "pod-sets[node].containers[node].requests[cpu]",
        reads "pod-sets[node].containers[node].limits[cpu]"
    ] |c| { let s = set(c); done(c.pod_set_processes(s)) };
    "pod-set.pod-label" Transform [reads "pod-sets[node].pod-labels[app]"] |c| { let s = set(c); done(c.pod_set_pod_label(s, "app")) };
    "pod-set.set-pod-label" Transform [writes "pod-sets[node].pod-labels[app]"]
        |c| { let s = set(c); c.pod_set_set_pod_label(s, "app", "x") };
    "pod-set.remove-pod-label" Transform [writes "pod-sets[node].pod-labels[app]"]
        |c| { let s = set(c); c.pod_set_remove_pod_label(s, "app") };
    "pod-set.pod-annotation" Transform [reads "pod-sets[node].pod-annotations[x]"]
        |c| { let s = set(c); done(c.pod_set_pod_annotation(s, "x")) };
    "pod-set.set-pod-annotation" Transform [writes "pod-sets[node].pod-annotations[x]"]
        |c| { let s = set(c); c.pod_set_set_pod_annotation(s, "x", "1") };
    "pod-set.remove-pod-annotation" Transform [writes "pod-sets[node].pod-annotations[x]"]
        |c| { let s = set(c); c.pod_set_remove_pod_annotation(s, "x") };
    "pod-set.node-selector" Transform [reads "pod-sets[node].node-selector[x]"]
        |c| { let s = set(c); done(c.pod_set_node_selector(s, "x")) };
    "pod-set.put-node-selector" Transform [writes "pod-sets[node].node-selector[x]"]
        |c| { let s = set(c); c.pod_set_put_node_selector(s, "x", "1") };
    "pod-set.priority-class" Transform [reads "pod-sets[node].priority-class"]
        |c| { let s = set(c); done(c.pod_set_priority_class(s)) };
    "pod-set.set-priority-class" Transform [writes "pod-sets[node].priority-class"]
        |c| { let s = set(c); c.pod_set_set_priority_class(s, "x") };
    "pod-set.scheduler-name" Transform [reads "pod-sets[node].scheduler-name"]
        |c| { let s = set(c); done(c.pod_set_scheduler_name(s)) };
    "pod-set.set-scheduler-name" Transform [writes "pod-sets[node].scheduler-name"]
        |c| { let s = set(c); c.pod_set_set_scheduler_name(s, "x") };

    "pod-set.add-scheduling-gate" Transform [writes "pod-sets[node].scheduling-gates[example.com/gate]"]
        |c| { let s = set(c); c.pod_set_add_scheduling_gate(s, "example.com/gate") };
    "pod-set.add-toleration" Transform [writes "pod-sets[node].tolerations[gpu]"]
        |c| { let s = set(c); c.pod_set_add_toleration(s, "gpu", r#"{"operator": "Exists"}"#) };
    "pod-set.add-affinity-term" Transform [writes "pod-sets[node].affinity-terms[zone]"] |c| {
        let s = set(c);
        c.pod_set_add_affinity_term(s, "zone", "podAffinity/required", r#"{"topologyKey": "zone"}"#)
    };
    "pod-set.dns-searches" Transform [reads "pod-sets[node].dns-searches[#]"] |c| { let s = set(c); done(c.pod_set_dns_searches(s)) };
    "pod-set.add-dns-search" Transform [writes "pod-sets[node].dns-searches[ml.svc.cluster.local]"]
        |c| { let s = set(c); c.pod_set_add_dns_search(s, "ml.svc.cluster.local") };
    "pod-set.fs-group" Transform [reads "pod-sets[node].fs-group"] |c| { let s = set(c); done(c.pod_set_fs_group(s)) };
    "pod-set.set-fs-group" Transform [writes "pod-sets[node].fs-group"] |c| { let s = set(c); c.pod_set_set_fs_group(s, 7) };
    "pod-set.raw" Transform [reads "pod-sets[node].raw[hostNetwork]"] |c| { let s = set(c); done(c.pod_set_raw(s, "hostNetwork")) };
    "pod-set.set-raw" Transform [writes "pod-sets[node].raw[securityContext/runAsUser]"]
        |c| { let s = set(c); c.pod_set_set_raw(s, "securityContext/runAsUser", "7") };

    "container.raw" Transform [reads "pod-sets[node].containers[node].raw[readinessProbe]"]
        |c| { let n = node(c); done(c.container_raw(n, "readinessProbe")) };
    "container.set-raw" Transform [writes "pod-sets[node].containers[node].raw[tty]"]
        |c| { let n = node(c); c.container_set_raw(n, "tty", "true") };
    "container.is-sidecar" Transform [reads "pod-sets[node].init-containers[setup].restart-policy"]
        |c| { let c_ = container(c, "node", "setup"); done(c.container_is_sidecar(c_)) };
    "container.image" Transform [reads "pod-sets[node].containers[node].image"] |c| { let n = node(c); done(c.container_image(n)) };
    "container.set-image" Transform [writes "pod-sets[node].containers[node].image"] |c| { let n = node(c); c.container_set_image(n, "x") };
    "container.set-image-pull-policy" Transform [writes "pod-sets[node].containers[node].image-pull-policy"]
        |c| { let n = node(c); c.container_set_image_pull_policy(n, "Always") };
    "container.command" Transform [reads "pod-sets[node].containers[node].command"] |c| { let n = node(c); done(c.container_command(n)) };
    "container.set-command" Transform [writes "pod-sets[node].containers[node].command"]
        |c| { let n = node(c); c.container_set_command(n, &[]) };
    "container.args" Transform [reads "pod-sets[node].containers[node].args"] |c| { let n = node(c); done(c.container_args(n)) };
    "container.set-args" Transform [writes "pod-sets[node].containers[node].args"] |c| { let n = node(c); c.container_set_args(n, &[]) };
    "container.clear-args" Transform [writes "pod-sets[node].containers[node].args"] |c| { let n = node(c); c.container_clear_args(n) };
    "container.working-dir" Transform [reads "pod-sets[node].containers[node].working-dir"]
        |c| { let n = node(c); done(c.container_working_dir(n)) };
    "container.set-working-dir" Transform [writes "pod-sets[node].containers[node].working-dir"]
        |c| { let n = node(c); c.container_set_working_dir(n, "/x") };
    "container.set-restart-policy" Transform [writes "pod-sets[node].containers[node].restart-policy"]
        |c| { let n = node(c); c.container_set_restart_policy(n, "Always") };
    "container.env-names" Transform [reads "pod-sets[node].containers[node].env[#]"] |c| { let n = node(c); done(c.container_env_names(n)) };
    "container.env" Transform [reads "pod-sets[node].containers[node].env[MODE]"] |c| { let n = node(c); done(c.container_env(n, "MODE")) };
    "container.env-source" Transform [reads "pod-sets[node].containers[node].env[MODE]"]
        |c| { let n = node(c); done(c.container_env_source(n, "MODE")) };
    "container.env-owner" Transform [reads "pod-sets[node].containers[node].env[MODE]"]
        |c| { let n = node(c); done(c.container_env_owner(n, "MODE")) };
    "container.put-env" Transform [writes "pod-sets[node].containers[node].env[NEW]"] |c| { let n = node(c); c.container_put_env(n, "NEW", "1") };
    "container.default-env" Transform [writes "pod-sets[node].containers[node].env[MODE]"]
        |c| { let n = node(c); c.container_default_env(n, "MODE", "1") };
    "container.put-env-field" Transform [writes "pod-sets[node].containers[node].env[NEW]"]
        |c| { let n = node(c); c.container_put_env_field(n, "NEW", "metadata.name") };
    "container.put-env-resource" Transform [writes "pod-sets[node].containers[node].env[NEW]"]
        |c| { let n = node(c); c.container_put_env_resource(n, "NEW", None, "limits.cpu", None) };
    "container.put-env-own-config-map" Transform [writes "pod-sets[node].containers[node].env[NEW]", writes "objects[v1/ConfigMap/-a]"]
        |c| { let n = node(c); c.container_put_env_own_config_map(n, "NEW", "-a", "key") };
    "container.put-env-own-secret" Transform [writes "pod-sets[node].containers[node].env[NEW]", writes "objects[v1/Secret/-a]"]
        |c| { let n = node(c); c.container_put_env_own_secret(n, "NEW", "-a", "key") };
    "container.put-env-raw" Transform [writes "pod-sets[node].containers[node].env[NEW]"]
        |c| { let n = node(c); c.container_put_env_raw(n, "NEW", &json!({"secretKeyRef": {"name": "a", "key": "b"}}).to_string()) };
    "container.remove-env" Transform [writes "pod-sets[node].containers[node].env[NEW]"] |c| { let n = node(c); c.container_remove_env(n, "NEW") };
    "container.ports" Transform [reads "pod-sets[node].containers[node].ports[*]"] |c| { let n = node(c); done(c.container_ports(n)) };
    "container.port" Transform [reads "pod-sets[node].containers[node].ports[80/TCP]"]
        |c| { let n = node(c); done(c.container_port(n, 80, "TCP")) };
    "container.put-port" Transform [writes "pod-sets[node].containers[node].ports[29500/TCP]"]
        |c| { let n = node(c); c.container_put_port(n, &Port { number: 29500, protocol: "TCP".to_owned(), ..Port::default() }) };
    "container.mounts" Transform [reads "pod-sets[node].containers[node].mounts[*]"] |c| { let n = node(c); done(c.container_mounts(n)) };
    "container.mount" Transform [reads "pod-sets[node].containers[node].mounts[/data]"]
        |c| { let n = node(c); done(c.container_mount(n, "/data")) };
    "container.default-mount" Transform [writes "pod-sets[node].containers[node].mounts[/data]"] |c| {
        let n = node(c);
        c.container_default_mount(n, &Mount { volume: "data".to_owned(), path: "/data".to_owned(), ..Mount::default() })
    };
    "container.put-mount" Transform [writes "pod-sets[node].containers[node].mounts[/new]"] |c| {
        let n = node(c);
        c.container_put_mount(n, &Mount { volume: "data".to_owned(), path: "/new".to_owned(), read_only: true, ..Mount::default() })
    };
    "container.remove-mount" Transform [writes "pod-sets[node].containers[node].mounts[/data]"]
        |c| { let n = node(c); c.container_remove_mount(n, "/data") };
    "container.capabilities" Transform [reads "pod-sets[node].containers[node].capabilities[#]"]
        |c| { let n = node(c); done(c.container_capabilities(n)) };
    "container.add-capability" Transform [writes "pod-sets[node].containers[node].capabilities[IPC_LOCK]"]
        |c| { let n = node(c); c.container_add_capability(n, "IPC_LOCK") };
    "container.request" Transform [reads "pod-sets[node].containers[node].requests[cpu]", reads "pod-sets[node].containers[node].limits[cpu]"]
        |c| { let n = node(c); done(c.container_request(n, "cpu")) };
    "container.limit" Transform [reads "pod-sets[node].containers[node].limits[cpu]"] |c| { let n = node(c); done(c.container_limit(n, "cpu")) };
    "container.requests" Transform [reads "pod-sets[node].containers[node].requests[*]", reads "pod-sets[node].containers[node].limits[*]"]
        |c| { let n = node(c); done(c.container_requests(n)) };
    "container.limits" Transform [reads "pod-sets[node].containers[node].limits[*]"] |c| { let n = node(c); done(c.container_limits(n)) };
    "container.set-request" Transform [writes "pod-sets[node].containers[node].requests[cpu]"]
        |c| { let n = node(c); c.container_set_request(n, "cpu", "1") };
    "container.resource-claim-uses" Transform [reads "pod-sets[node].containers[node].resource-claims[*]"]
        |c| { let n = node(c); done(c.container_resource_claim_uses(n)) };
    "container.put-resource-claim-use" Transform [writes "pod-sets[node].containers[node].resource-claims[gpu]"] |c| {
        let n = node(c);
        c.container_put_resource_claim_use(n, &ResourceClaimUse { name: "gpu".to_owned(), request: None })
    };
    "container.remove-resource-claim-use" Transform [writes "pod-sets[node].containers[node].resource-claims[gpu]"]
        |c| { let n = node(c); c.container_remove_resource_claim_use(n, "gpu") };
    "container.set-limit" Transform [writes "pod-sets[node].containers[node].limits[cpu]"]
        |c| { let n = node(c); c.container_set_limit(n, "cpu", "1") };
}
