//! Arguments of a plugin are checked before they reach the record: names, paths, handles, and values that Kubernetes validates.

use std::sync::Arc;

use serde_json::json;
use trainyard_model::{
    call::{Call, CallInputs, Fault},
    claims::ClaimError,
    contract::handle,
    job::Job,
    object::{MAX_MESSAGE, MAX_REPORTS},
    plugin::Phase,
    plugin_info::{PluginError, Settings},
    record::{EntryRef, EntryScope, Field, Owner},
    value::{Mount, Port, ResourceClaimUse},
};

use crate::common::{
    self, call, call_over, call_with, container, everything, load, manifest,
    methods::{
        METHODS, On, Run, config, config_map, devices, lookups, node, objects, port,
        resource_claim, run, secret, set, setup, text, widget,
    },
    missing_claim, mount, plugin, plugin_under, pod_set, record, set_and_node,
};

macro_rules! refusals {
    ($($on:ident.$method:ident($($arg:expr),*) $problem:literal;)+) => {
        /// Calls that a plugin with all claims and grants may make, with a part of what is reported.
        const REFUSALS: &[(&str, Run, &str)] = &[$((stringify!($method), run!($on.$method($($arg),*)), $problem),)+];
    };
}

refusals! {
    config.document_text("trainer") "RFC 6901";
    config.document_text("/a~b") "RFC 6901";
    config.document_text("/a~") "RFC 6901";
    lookups.lookups_get("v1", "Secret", "x") "cannot look up Secrets";
    lookups.lookups_get("v1", "SECRET", "x") "cannot look up Secrets";
    lookups.lookups_get("v2", "Secret", "x") "cannot look up Secrets";
    lookups.lookups_get("v1", "ConfigMap", "another-runtime-snapshot") "cannot look up runtime snapshots of TrainJobs";
    lookups.lookups_get("v1/ConfigMap/", "x", "y") "the API version must be";
    lookups.lookups_get("v1", "ConfigMap", "../secrets/x") "not a valid object name";
    lookups.lookups_get("v1", "ConfigMap", "*") "not a valid object name";
    lookups.lookups_get("v1", "ConfigMap", "..") "not a valid object name";
    lookups.lookups_get("v1", "ConfigMap", "") "not a valid object name";
    lookups.lookups_get("v1", "ConfigMap/a", "x") "the API version must be";
    lookups.lookups_get("v1", "CONFIGMAP", "x") "the API version must be";
    lookups.lookups_get("a/b/c", "Kind", "x") "the API version must be";
    set.pod_set_set_backoff_limit(2_147_483_648) "from 0 to 2147483647";
    set.pod_set_address(0, 4) "job 0 has no pod 4";
    set.pod_set_address(1, 0) "job 1 has no pod 0";
    set.pod_set_add_container("A_B", "image") "a DNS label";
    set.pod_set_add_container("side", "image") "a container `side` already exists";
    set.pod_set_add_container("setup", "image") "a container `setup` already exists";
    set.pod_set_add_init_container("A_B", "image") "a DNS label";
    set.pod_set_add_init_container("setup", "image") "a container `setup` already exists";
    set.pod_set_add_init_container("side", "image") "a container `side` already exists";
    set.pod_set_put_empty_dir("A_B", None, None) "a DNS label";
    set.pod_set_put_own_config_map("A_B", "-a", None, &[]) "a DNS label";
    set.pod_set_put_own_secret("A_B", "-a", None, &[]) "a DNS label";
    set.pod_set_put_raw_volume("A_B", r#"{"hostPath": {}}"#) "a DNS label";
    set.pod_set_put_raw_volume("v", r#"{"name": "v"}"#) "`name` is not a volume source";
    set.pod_set_put_raw_volume("v", "[]") "not a JSON object with one member";
    set.pod_set_put_resource_claim(&resource_claim("A_B", Some("a"), None)) "a DNS label";
    set.pod_set_put_resource_claim(&resource_claim("gpu", None, None)) "either a ResourceClaim or a ResourceClaimTemplate";
    set.pod_set_put_resource_claim(&resource_claim("gpu", Some("a"), Some("b"))) "either a ResourceClaim or a ResourceClaimTemplate";
    set.pod_set_put_devices(&devices("")) "the source must not be empty";
    set.pod_set_put_devices(&devices("resource/nvidia.com/gpu")) "must not begin with `resource/`";
    set.pod_set_add_scheduling_gate("") "qualified name";
    set.pod_set_add_scheduling_gate("a b") "qualified name";
    set.pod_set_add_scheduling_gate("-a") "qualified name";
    set.pod_set_add_scheduling_gate("a/b/c") "qualified name";
    set.pod_set_add_scheduling_gate("UPPER.example.com/a") "qualified name";
    set.pod_set_add_scheduling_gate("a/") "qualified name";
    set.pod_set_add_dns_search("") "DNS name";
    set.pod_set_add_dns_search(".") "DNS name";
    set.pod_set_add_dns_search("a b") "DNS name";
    set.pod_set_add_dns_search("-a") "DNS name";
    set.pod_set_add_dns_search("a..b") "DNS name";
    set.pod_set_set_fs_group(-1) "from 0 to 2147483647";
    set.pod_set_set_fs_group(2_147_483_648) "from 0 to 2147483647";
    set.pod_set_set_raw("restartPolicy", "\"Always\"") "must be `Never` or `OnFailure`";
    set.pod_set_set_raw("hostname", "\"a\"") "the Job controller sets it";
    set.pod_set_set_raw("hostNetwork", "{") "not valid JSON";
    set.pod_set_add_toleration("id", "[]") "not a valid JSON object";
    set.pod_set_add_toleration("id", "{") "not valid JSON";
    set.pod_set_add_toleration("id", "{}") "the operator `Exists`";
    set.pod_set_add_toleration("id", r#"{"key": "a", "operator": "In"}"#) "the operator of a toleration";
    set.pod_set_add_toleration("id", r#"{"key": "a", "effect": "Never"}"#) "the effect of a toleration";
    set.pod_set_add_toleration("id", r#"{"operator": "Exists", "value": "a"}"#) "must not have a value";
    set.pod_set_add_toleration("id", r#"{"key": "a", "tolerationSeconds": 3, "effect": "NoSchedule"}"#) "needs the effect";
    set.pod_set_add_toleration("id", r#"{"operator": "Exists", "foo": 1}"#) "unknown field `foo` in a toleration; valid fields are key, ";
    set.pod_set_add_toleration("id", r#"{"key": "a b!!", "operator": "Exists"}"#) "a valid label key";
    set.pod_set_add_toleration("id", r#"{"key": "k", "operator": 5}"#) "operator: is not a string";
    set.pod_set_add_toleration("id", r#"{"key": "k", "value": "x y z"}"#) "a valid label value";
    set.pod_set_add_toleration("id", r#"{"operator": "Exists", "effect": 7}"#) "effect: is not a string";
    set.pod_set_add_toleration("id", r#"{"key": "a", "operator": "Lt", "value": "abc"}"#) "an integer";
    set.pod_set_add_toleration("id", r#"{"key": "a", "operator": "Gt", "value": "007"}"#) "an integer";
    set.pod_set_add_toleration("id", r#"{"operator": "Exists", "tolerationSeconds": "soon", "effect": "NoExecute"}"#) "tolerationSeconds: is not an integer";
    set.pod_set_add_toleration("An Id", r#"{"operator": "Exists"}"#) "the id";
    set.pod_set_add_affinity_term("id", "nodeAffinity", "{}") "the list must be";
    set.pod_set_add_affinity_term("id", "podAffinity/maybe", "{}") "the list must be";
    set.pod_set_add_affinity_term("id", "nodeAffinity/required", r#"{"matchExpressions": []}"#) "matches no node";
    set.pod_set_add_affinity_term("id", "nodeAffinity/preferred", r#"{"preference": {}}"#) "`weight`";
    set.pod_set_add_affinity_term("id", "nodeAffinity/preferred", r#"{"weight": 101, "preference": {}}"#) "`weight`";
    set.pod_set_add_affinity_term("id", "nodeAffinity/preferred", r#"{"weight": 1}"#) "`preference`";
    set.pod_set_add_affinity_term("id", "nodeAffinity/required", r#"{"matchExpressions": [{"key": "a", "operator": "Banana"}]}"#) "matchExpressions[0]: the operator must be one of In, ";
    set.pod_set_add_affinity_term("id", "nodeAffinity/required", r#"{"matchExpressions": [["a", "Exists"]]}"#) "matchExpressions[0]: is not an object";
    set.pod_set_add_affinity_term("id", "nodeAffinity/required", r#"{"matchExpressions": [{"key": "a", "operator": "Exists"}], "weight": 1}"#) "unknown field `weight`";
    set.pod_set_add_affinity_term("id", "nodeAffinity/required", r#"{"matchExpressions": [{"key": "a", "operator": "In"}]}"#) "need values";
    set.pod_set_add_affinity_term("id", "nodeAffinity/required", r#"{"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}"#) "take no values";
    set.pod_set_add_affinity_term("id", "nodeAffinity/required", r#"{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}"#) "need one value";
    set.pod_set_add_affinity_term("id", "nodeAffinity/required", r#"{"matchFields": [{"key": "spec.taints", "operator": "In", "values": ["a"]}]}"#) "`metadata.name`";
    set.pod_set_add_affinity_term("id", "nodeAffinity/preferred", r#"{"weight": 1, "preference": {"matchExpressions": [{"key": "a b", "operator": "Exists"}]}}"#) "preference.matchExpressions[0]: the key";
    set.pod_set_add_affinity_term("id", "podAffinity/required", r#"{"topologyKey": "zone", "labelSelector": 7}"#) "labelSelector: is not an object";
    set.pod_set_add_affinity_term("id", "podAffinity/required", r#"{"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}"#) "labelSelector.matchExpressions[0]: the operator";
    set.pod_set_add_affinity_term("id", "podAffinity/required", r#"{"topologyKey": "zone", "namespaceSelector": {"matchLabels": {"a": 1}}}"#) "namespaceSelector.matchLabels: `a` is not a valid label key";
    set.pod_set_add_affinity_term("id", "podAffinity/required", r#"{"topologyKey": "zone", "namespaces": ["a.b"]}"#) "an invalid namespace name";
    set.pod_set_add_affinity_term("id", "podAffinity/required", r#"{"topologyKey": "zone", "matchLabelKeys": ["a"]}"#) "need `labelSelector`";
    set.pod_set_add_affinity_term("id", "podAffinity/required", r#"{"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]}"#) "is also in";
    set.pod_set_add_affinity_term("id", "podAffinity/required", r#"{"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["a"]}"#) "is also in";
    set.pod_set_add_affinity_term("id", "podAffinity/required", r#"{"topologyKey": ""}"#) "needs `topologyKey`";
    set.pod_set_add_affinity_term("id", "podAffinity/required", r#"{"topologyKey": "a b"}"#) "must be a valid label key";
    set.pod_set_add_affinity_term("id", "podAntiAffinity/preferred", r#"{"weight": 1}"#) "`podAffinityTerm`";
    set.pod_set_add_affinity_term("id", "podAntiAffinity/preferred", r#"{"weight": 1, "podAffinityTerm": {}}"#) "needs `topologyKey`";
    set.pod_set_add_affinity_term("An Id", "podAffinity/required", r#"{"topologyKey": "zone"}"#) "the id";
    node.container_place_first() "only an init container that this plugin added";
    setup.container_place_first() "only an init container that this plugin added";
    setup.container_place_before("x") "only an init container that this plugin added";
    setup.container_place_after("x") "only an init container that this plugin added";
    node.container_put_env("", "x") "must not be empty";
    node.container_put_env("A=B", "x") "must not contain `=`";
    node.container_put_env("A\0", "x") "or a null byte";
    node.container_default_env("A=B", "x") "must not contain `=`";
    node.container_put_env_field("A=B", "metadata.name") "must not contain `=`";
    node.container_put_env_resource("A=B", None, "limits.cpu", None) "must not contain `=`";
    node.container_put_env_own_config_map("A=B", "-a", "key") "must not contain `=`";
    node.container_put_env_own_secret("A=B", "-a", "key") "must not contain `=`";
    node.container_put_env_raw("A=B", r#"{"secretKeyRef": {}}"#) "must not contain `=`";
    node.container_put_env_raw("RAW", "") "not valid JSON";
    node.container_put_env_raw("RAW", "[]") "not a JSON object with one member";
    node.container_put_env_raw("RAW", "{}") "not a JSON object with one member";
    node.container_put_env_raw("RAW", r#"{"a": 1, "b": 2}"#) "not a JSON object with one member";
    node.container_put_env_raw("RAW", "null") "not a JSON object with one member";
    node.container_remove_env("A=B") "must not contain `=`";
    node.container_put_port(&port(0)) "the number must not be 0";
    node.container_put_port(&Port { protocol: "HTTP".to_owned(), ..port(80) }) "the protocol must be TCP, UDP or SCTP";
    node.container_put_port(&Port { host_port: Some(0), ..port(80) }) "the host port must not be 0";
    node.container_put_port(&Port { host_ip: text("node-1"), ..port(80) }) "`node-1` is not an IP address";
    node.container_put_mount(&mount("data", "x")) "the path must begin with `/`";
    node.container_put_mount(&mount("data", "/x:y")) "must not contain `:`";
    node.container_default_mount(&mount("data", "x")) "the path must begin with `/`";
    node.container_put_mount(&Mount { sub_path: text("a"), sub_path_expr: text("b"), ..mount("data", "/y") })
        "`sub-path` and `sub-path-expr` are both set; leave one out";
    node.container_put_mount(&Mount { sub_path: text("/a"), ..mount("data", "/y") })
        "`sub-path` is `/a`, which is not a relative path without `..`";
    node.container_put_mount(&Mount { sub_path_expr: text("a/../b"), ..mount("data", "/y") })
        "`sub-path-expr` is `a/../b`, which is not a relative path without `..`";
    node.container_put_mount(&Mount { mount_propagation: text("Both"), ..mount("data", "/y") })
        "`mount-propagation` is `Both`, which is not one of None, HostToContainer, Bidirectional";
    node.container_put_mount(&Mount { recursive_read_only: text("Always"), ..mount("data", "/y") })
        "`recursive-read-only` is `Always`, which is not one of Disabled, IfPossible, Enabled";
    node.container_put_mount(&Mount { read_only: false, recursive_read_only: text("Enabled"), ..mount("data", "/y") })
        "a recursive read-only mount must be read-only and must not have a mount propagation";
    node.container_put_mount(&Mount { mount_propagation: text("HostToContainer"), recursive_read_only: text("Enabled"), ..mount("data", "/y") })
        "a recursive read-only mount must be read-only and must not have a mount propagation";
    node.container_set_request("cpu", "many") "`many` is not a quantity";
    node.container_set_limit("cpu", "many") "`many` is not a quantity";
    node.container_put_resource_claim_use(&ResourceClaimUse { name: "A_B".to_owned(), request: None }) "a DNS label";
    node.container_add_capability("CAP_IPC_LOCK") "not a Linux capability without `CAP_`";
    node.container_set_raw("image", "\"a\"") "use `container.set-image`";
    node.container_set_raw("tty", "{") "not valid JSON";
    objects.objects_emit("v1/ConfigMap", "Pod", "-a", None) "API version";
    objects.objects_emit("v1/ConfigMap/", "-a", "-a", None) "API version";
    objects.objects_emit("", "ConfigMap", "-a", None) "API version";
    emitted.objects_emit("v1", "ConfigMap", "-a", None) "has already emitted the";
    config_map.object_set_annotation("trainyard.dev/reports", "x") "that of `report-while`";
    config_map.object_append("../x", "y") "the key of a ConfigMap or Secret must be";
    config_map.object_set_body("{}") "has no body";
    config_map.object_set_type("Opaque") "not a Secret";
    config_map.object_set_apply("never") "the mode must be one of";
    config_map.object_report_while("phase/Pending", "x") "has no status";
    with_data.object_append("binary", "x") "the key already has bytes";
    with_data.object_set_binary("text", b"x") "the key already has text";
    secret.object_set_apply("live") "always applied `once`";
    widget.object_set_body(r#"{"metadata": {"name": "other"}}"#) "contains `metadata`, which only the host sets";
    widget.object_set_body(r#"{"status": {}}"#) "contains `status`, which only the host sets";
    widget.object_set_body(r#"{"kind": "Pod"}"#) "contains `kind`, which only the host sets";
    widget.object_set_body("[]") "not a JSON object";
    widget.object_append("a", "b") "neither a ConfigMap nor a Secret";
    widget.object_set_binary("a", b"b") "neither a ConfigMap nor a Secret";
    with_random.object_append_secret("a", handle::SecretText(0)) "not a Secret";
    widget.object_set_immutable() "neither a ConfigMap nor a Secret";
    widget.object_report_while("Pending", "x") "the state must be";
    widget.object_report_while("phase/Pending", "") "the message must have 1 to 256 characters";
    widget.object_report_while("phase/Pending", &"x".repeat(MAX_MESSAGE + 1)) "the message must have 1 to 256 characters";
    with_reports.object_report_while("phase/More", "x") "at most 8 states";
}

fn emitted(call: &mut Call, on: On) -> Result<handle::Objects, Fault> {
    config_map(call, on)?;
    objects(call, on)
}

fn with_random(call: &mut Call, on: On) -> Result<handle::Object, Fault> {
    call.objects_random(handle::Objects(0), "a", 16, "hex")?;
    widget(call, on)
}

fn with_reports(call: &mut Call, on: On) -> Result<handle::Object, Fault> {
    let object = widget(call, on)?;
    for number in 0..MAX_REPORTS {
        let message = "\u{fc}".repeat(MAX_MESSAGE);
        call.object_report_while(object, &format!("phase/P{number}"), &message)
            .unwrap();
    }
    Ok(object)
}

fn with_data(call: &mut Call, on: On) -> Result<handle::Object, Fault> {
    let object = config_map(call, on)?;
    call.object_append(object, "text", "a")?;
    call.object_set_binary(object, "binary", &[0xff])?;
    Ok(object)
}

/// Writes that take any text: the API server checks it, or what does not exist is not removed.
const ANY_TEXT: &str = "info_set_label info_set_annotation pod_set_remove_volume pod_set_remove_resource_claim pod_set_set_pod_label \
    pod_set_remove_pod_label pod_set_set_pod_annotation pod_set_remove_pod_annotation pod_set_put_node_selector \
    pod_set_set_priority_class pod_set_set_scheduler_name container_set_image container_set_image_pull_policy container_set_command \
    container_set_args container_clear_args container_set_working_dir container_set_restart_policy container_remove_mount \
    container_remove_resource_claim_use";

#[test]
fn invalid_arguments_end_the_call_before_a_write() {
    let mut wrong = Vec::new();
    for (name, run, problem) in REFUSALS {
        let phase = if name.starts_with("object") {
            Phase::Build
        } else {
            Phase::Transform
        };
        let mut call = call(phase, &everything());
        match run(&mut call, On::Record) {
            Err(Fault::Argument(reported)) if reported.contains(problem) => {}
            ended => wrong.push(format!("{name}: {problem}: {ended:?}")),
        }
        assert!(call.writes().is_empty());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for method in METHODS.iter().filter(|method| method.is_write()) {
        let is_refused = REFUSALS.iter().any(|(name, ..)| *name == method.name);
        let takes_any = ANY_TEXT.split(' ').any(|name| name == method.name);
        assert!(
            is_refused != takes_any,
            "{}: add a call that is refused to REFUSALS",
            method.name
        );
    }
}

macro_rules! accepted {
    ($($on:ident.$method:ident($($arg:expr),*);)+) => { const ACCEPTED: &[Run] = &[$(run!($on.$method($($arg),*)),)+]; };
}

accepted! {
    config.document_text("/a~1b~0c");
    node.container_put_mount(&Mount { recursive_read_only: text("Enabled"), ..mount("data", "/y") });
    node.container_put_mount(&Mount { mount_propagation: text("None"), recursive_read_only: text("IfPossible"), ..mount("data", "/y") });
    set.pod_set_add_toleration("id", r#"{"key": "example.com/gpu", "value": "", "effect": "NoExecute", "tolerationSeconds": -1}"#);
    set.pod_set_add_toleration("id", r#"{"key": "a", "operator": "Lt", "value": "-9223372036854775808", "effect": null}"#);
    set.pod_set_add_toleration("id", r#"{"key": null, "operator": "Exists", "tolerationSeconds": null}"#);
    set.pod_set_add_affinity_term("id", "nodeAffinity/required",
        r#"{"matchExpressions": [{"key": "a", "operator": "Lt", "values": ["5"]}], "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]}]}"#);
    set.pod_set_add_affinity_term("id", "nodeAffinity/preferred", r#"{"weight": 1, "preference": {}}"#);
    set.pod_set_add_affinity_term("id", "podAntiAffinity/preferred",
        r#"{"weight": 100, "podAffinityTerm": {"topologyKey": "a/b", "namespaces": ["a"], "namespaceSelector": {}, "labelSelector": {"matchLabels": {"a": ""}, "matchExpressions": [{"key": "b", "operator": "DoesNotExist", "values": []}]}, "matchLabelKeys": ["c"], "mismatchLabelKeys": ["a"]}}"#);
}

/// Kubernetes accepts these, with `null` for what is absent.
#[test]
fn valid_arguments_are_accepted() {
    for run in ACCEPTED {
        run(&mut call(Phase::Transform, &everything()), On::Record).unwrap();
    }
}

/// Another plugin may have taken a name in the other list, which this one may not see: that conflict is reported after transform.
#[test]
fn container_names_are_unique_in_both_lists() {
    let add = |call: &mut Call, is_init: bool| {
        let set = pod_set(call, "node");
        match is_init {
            true => call.pod_set_add_init_container(set, "new", "image"),
            false => call.pod_set_add_container(set, "new", "image"),
        }
    };
    let over = |record, rank| call_over(Phase::Transform, &everything(), record, rank, json!({}));
    for (one, other) in [(false, false), (false, true), (true, false), (true, true)] {
        for rank in [1, 2] {
            let mut first = over(record(), 1);
            add(&mut first, one).unwrap();
            let mut second = over(first.finish().record, rank);
            let is_free = rank == 2 && one != other;
            assert_eq!(
                add(&mut second, other).is_ok(),
                is_free,
                "{one} {other} {rank}"
            );
            let record = second.finish().record;
            let named = record.container_named(0, "new").unwrap();
            let list = if is_free || !one {
                Field::Containers
            } else {
                Field::InitContainers
            };
            assert_eq!(
                record.container(named).unwrap().list,
                list,
                "the container comes first"
            );
        }
    }
}

#[test]
fn invalid_handle_ends_the_call() {
    for method in METHODS {
        let what = match method.name.split_once('_').unwrap().0 {
            "container" => "container",
            "pod" => "pod set",
            "document" => "document",
            "object" => "object",
            "key" => "key pair",
            _ => continue,
        };
        let mut call = call(method.phase, &everything());
        assert_eq!(
            (method.run)(&mut call, On::Nothing),
            Err(Fault::DeadHandle { what }),
            "{}",
            method.name
        );
    }
    let mut call = call(Phase::Check, &everything());
    for number in [u32::MAX, 1 << 31 | 77] {
        let image = call.container_image(handle::Container(number));
        assert_eq!(image, Err(Fault::DeadHandle { what: "container" }));
        let name = call.pod_set_name(handle::PodSet(number));
        assert_eq!(name, Err(Fault::DeadHandle { what: "pod set" }));
    }
}

/// What all methods that take the suffix of a ConfigMap's or Secret's name end with.
fn use_name(transform: &mut Call, build: &mut Call, suffix: &str) -> Vec<Fault> {
    let (objects, (set, node)) = (handle::Objects(0), set_and_node(transform));
    let emitted = build.objects_emit(objects, "v1", "ConfigMap", suffix, None);
    let named = build.objects_name(objects, "v1", "ConfigMap", suffix, None);
    let ended = [
        emitted.map(drop),
        named.map(drop),
        transform.pod_set_put_own_config_map(set, "v", suffix, None, &[]),
        transform.pod_set_put_own_secret(set, "v", suffix, None, &[]),
        transform.container_put_env_own_config_map(node, "E", suffix, "key"),
        transform.container_put_env_own_secret(node, "E", suffix, "key"),
    ];
    ended.into_iter().map(Result::unwrap_err).collect()
}

/// TrainJob `a` with the suffix `-b-runtime-snapshot` would have the name of TrainJob `a-b`'s snapshot.
#[test]
fn reserved_names_are_refused_in_claims_and_calls() {
    for suffix in [
        "-runtime-snapshot",
        "-b-runtime-snapshot",
        "-x-trainyard",
        "\"-q-trainyard\"",
    ] {
        let key = suffix.trim_matches('"');
        let claim = format!("objects[\"v1/ConfigMap/{key}\"]");
        let error = load(&[("writes", &claim)], &[&claim]).unwrap_err();
        let PluginError::Claims { errors, .. } = &error else {
            panic!("{error}")
        };
        assert!(
            matches!(errors[..], [ClaimError::Impossible { list: "writes", .. }]),
            "{error}"
        );
        assert!(error.to_string().contains("are reserved for"), "{error}");
    }

    // A prefix means other names too; a TrainJob's own name may complete an ending.
    for claim in ["*", "-*", "-b-runtime-snapshot*", "-snapshot"] {
        let claim = format!("objects[v1/ConfigMap/{claim}]");
        let claims = [
            ("writes", claim.as_str()),
            ("writes", "pod-sets[*].volumes[v]"),
            ("writes", "pod-sets[*].containers[*].env[E]"),
        ];
        let plugin = plugin(&manifest("p", &claims));
        for (job, suffix) in [
            ("llama", "-b-runtime-snapshot"),
            ("llama", "-runtime-snapshot"),
            ("llama", "-x-trainyard"),
            ("llama-runtime", "-snapshot"),
        ] {
            let call = |phase| {
                let job = Job {
                    name: job.into(),
                    ..(*common::job()).clone()
                };
                let inputs = CallInputs {
                    plugin: plugin.clone(),
                    rank: 1,
                    config: Arc::new(json!({})),
                    job: Arc::new(job),
                    base: Arc::new(record()),
                    lookups: common::lookups(),
                    kept: Arc::default(),
                };
                Call::new(phase, record(), inputs)
            };
            let (mut transform, mut build) = (call(Phase::Transform), call(Phase::Build));
            for fault in use_name(&mut transform, &mut build, suffix) {
                let Fault::Reserved { name, .. } = &fault else {
                    panic!("{job} {suffix}: {fault}")
                };
                assert_eq!(*name, format!("{job}{suffix}"));
            }
            assert!(build.finish().objects.is_empty());
            assert!(transform.writes().is_empty());
        }
    }
}

/// A plugin that may write below `/data` may not write outside it by another spelling.
#[test]
fn mount_paths_are_compared_as_paths() {
    let claims = [
        ("writes", "pod-sets[*].volumes[v]"),
        ("writes", "pod-sets[*].containers[node].mounts[/data/*]"),
        ("writes", "pod-sets[*].containers[node].mounts[//dev/shm/]"),
        (
            "writes",
            "pod-sets[*].containers[node].mounts[$config./path]",
        ),
    ];
    let guest = |settings| {
        let plugin = plugin_under(&manifest("p", &claims), settings);
        let config = json!({"path": "/of/config/"});
        let mut record = record();
        let id = record.node_container(0).unwrap();
        let written = json!({"name": "data", "mountPath": "/data//sub/"});
        let place = EntryRef {
            scope: EntryScope::Container(id),
            field: Field::Mounts,
            key: "/data//sub/".into(),
        };
        record.write(place, Some(written.into()), Owner::Patch);
        let mut call = call_over(Phase::Transform, &plugin, record, 1, config);
        let (set, node) = set_and_node(&mut call);
        call.pod_set_put_empty_dir(set, "v", None, None).unwrap();
        (call, node)
    };
    let (mut call, node) = guest(Settings::default());
    for (path, at) in [
        ("/dev/shm", "/dev/shm"),
        ("/dev/./shm/", "/dev/shm"),
        ("/data/x/", "/data/x"),
        ("/of//config", "/of/config"),
    ] {
        call.container_put_mount(node, &mount("v", path)).unwrap();
        let change = &call.writes().last().unwrap().change;
        assert_eq!(&*change.entry.key, at, "{path}");
        let json = change.new.as_ref().unwrap().as_json().unwrap();
        assert_eq!(json["mountPath"], *at, "{path}");
    }
    for path in ["/data/../etc", "/data/..", "/dev/shm/..", "/data/"] {
        let fault = call
            .container_put_mount(node, &mount("v", path))
            .unwrap_err();
        assert!(matches!(fault, Fault::NotClaimed { .. }), "{path}: {fault}");
    }
    // What is mounted there already is another's, however its author wrote it.
    for path in ["/data/sub", "/data/sub/", "/data//sub/"] {
        for written in [
            call.container_put_mount(node, &mount("v", path)),
            call.container_remove_mount(node, path),
        ] {
            let fault = written.unwrap_err();
            assert!(matches!(fault, Fault::NotGranted { .. }), "{path}: {fault}");
        }
        let (mut free, node) = guest(Settings::built_in());
        free.container_put_mount(node, &mount("v", path)).unwrap();
        let change = &free.writes().last().unwrap().change;
        assert_eq!(&*change.entry.key, "/data//sub/", "it takes its place");
        assert_eq!(change.old.as_ref().unwrap().owner, Owner::Patch);
    }
}

#[test]
fn only_objects_outside_the_core_group_have_no_suffix() {
    const GROUP: &str = "scheduling.x-k8s.io/v1alpha1";
    let plugin = plugin(&manifest(
        "p",
        &[
            ("writes", "objects[scheduling.x-k8s.io/v1alpha1/PodGroup/]"),
            ("writes", "objects[v1/ConfigMap/*]"),
        ],
    ));
    let objects = handle::Objects(0);
    let mut build = call(Phase::Build, &plugin);
    let job = "llama".to_owned();
    let name = build.objects_name(objects, GROUP, "PodGroup", "", None);
    assert_eq!(name, Ok(job.clone()));
    let group = build.objects_emit(objects, GROUP, "PodGroup", "", None);
    assert_eq!(build.object_name(group.unwrap()), Ok(job));
    for suffix in ["", "other-job", "-A", "-a/b"] {
        for fault in use_name(
            &mut call(Phase::Transform, &plugin),
            &mut call(Phase::Build, &plugin),
            suffix,
        ) {
            assert!(matches!(fault, Fault::Argument(_)), "{suffix}: {fault}");
            let rule = "or be empty for a kind outside the core group";
            assert!(fault.to_string().contains(rule), "{suffix}: {fault}");
        }
    }
    // A claim without a suffix covers no name with one.
    let other = build.objects_emit(objects, GROUP, "PodGroup", "-a", None);
    assert!(matches!(other, Err(Fault::NotClaimed { .. })), "{other:?}");
}

#[test]
fn emitted_objects_have_the_content_that_was_set() {
    let mut call = call_with(Phase::Build, &[("writes", "objects[v1/ConfigMap/*]")]);
    let other = call.objects_emit(handle::Objects(0), "apps/v1", "Widget", "-a", None);
    assert!(matches!(other, Err(Fault::NotClaimed { .. })), "{other:?}");
    let object = config_map(&mut call, On::Record).unwrap();
    call.object_append(object, "a.sh", "echo ").unwrap();
    call.object_append(object, "a.sh", "hi").unwrap();
    call.object_set_binary(object, "b", &[0xff]).unwrap();
    let objects = call.finish().objects;
    assert_eq!((objects.len(), objects[0].name.as_str()), (1, "llama-a"));
    assert_eq!(objects[0].text("a.sh"), Some("echo hi"));
    assert_eq!(objects[0].text("b"), None);
}

#[test]
fn written_lists_are_read_back() {
    let mut call = call(Phase::Transform, &everything());
    let (set, node) = set_and_node(&mut call);
    let made = resource_claim("gpu", None, Some("b"));
    call.pod_set_put_resource_claim(set, &made).unwrap();
    assert_eq!(call.pod_set_resource_claims(set).unwrap(), [made]);
    call.pod_set_remove_resource_claim(set, "gpu").unwrap();
    assert!(call.pod_set_resource_claims(set).unwrap().is_empty());
    // With a dot at the end or without, it is one domain.
    for domain in ["b.example", "a.example.", "b.example.", "a.example"] {
        call.pod_set_add_dns_search(set, domain).unwrap();
    }
    assert_eq!(
        call.pod_set_dns_searches(set).unwrap(),
        ["b.example", "a.example"]
    );
    assert_eq!(
        (call.pod_set_fs_group(set), call.pod_set_backoff_limit(set)),
        (Ok(None), Ok(None))
    );
    call.pod_set_set_fs_group(set, 0).unwrap();
    call.pod_set_set_backoff_limit(set, 0).unwrap();
    assert_eq!(
        (call.pod_set_fs_group(set), call.pod_set_backoff_limit(set)),
        (Ok(Some(0)), Ok(Some(0)))
    );
    let expr = Mount {
        sub_path_expr: text("$(NODE)/a..b"),
        mount_propagation: text("HostToContainer"),
        ..mount("data", "/x")
    };
    call.container_put_mount(node, &expr).unwrap();
    assert_eq!(call.container_mounts(node).unwrap().last(), Some(&expr));
}

#[test]
fn parsing_json_is_metered() {
    let plugin = plugin(&manifest("p", &[]));
    let mut call = call(Phase::Transform, &plugin);
    let context = handle::Context(0);
    assert_eq!(call.context_parse_json(context, "{"), Ok(None));
    let list = call.context_parse_json(context, r#"[{"name": "a"}]"#);
    let list = list.unwrap().unwrap();
    assert_eq!(
        call.document_text(list, "/0/name"),
        Ok(Some("a".to_owned()))
    );
    let long = "1".repeat((256 << 10) + 1);
    let fault = call.context_parse_json(context, &long).unwrap_err();
    assert!(matches!(fault, Fault::Argument(_)), "{fault}");
    let before = call.meter().bytes();
    call.context_parse_json(context, &format!("[{}[]]", "[],".repeat(1_000)))
        .unwrap();
    assert!(call.meter().bytes() - before > 30_000);
}

#[test]
fn hostlist_names_pods_job_by_job() {
    let hostlist = |count: u32, replicas: u32| {
        let mut record = record();
        record.pod_sets[0].count = count;
        record.pod_sets[0].replicas = replicas;
        let plugin = plugin(&manifest("p", &[]));
        let mut call = call_over(Phase::Transform, &plugin, record, 1, json!({}));
        let set = pod_set(&mut call, "node");
        call.pod_set_hostlist(set)
    };
    assert_eq!(hostlist(4, 1).unwrap(), "llama-node-0-[0-3]");
    assert_eq!(hostlist(1, 1).unwrap(), "llama-node-0-0");
    assert_eq!(
        hostlist(2, 3).unwrap(),
        "llama-node-0-[0-1],llama-node-1-[0-1],llama-node-2-[0-1]"
    );
    assert_eq!(hostlist(2, 0).unwrap(), "");
    let fault = hostlist(2, 2_000_000_000).unwrap_err();
    assert!(matches!(fault, Fault::Limit(_)), "{fault}");
}

#[test]
fn control_characters_in_faults_are_escaped() {
    let mut call = call_with(Phase::Transform, &[]);
    let node = container(&mut call, "node", "node");
    let name = format!("A\u{1b}[31m\u{202e}{}", "x".repeat(5000));
    let fault = call.container_put_env(node, &name, "1").unwrap_err();
    assert_eq!(missing_claim(&fault).0, "writes");
    let message = fault.to_string();
    assert!(
        !message.contains(['\u{1b}', '\u{202e}']) && message.len() < 4096,
        "{message}"
    );
    assert_eq!(call.finish().writes.len(), 0);
}
