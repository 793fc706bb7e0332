//! Arguments of a plugin are checked before they reach the record: names, paths, handles, and values that Kubernetes validates.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::type_complexity,
    clippy::unwrap_used
)]

use std::sync::Arc;

use serde_json::json;
use trainyard_model::{
    call::{Call, CallInputs, Fault},
    claims::{ClaimError, Verb},
    contract::handle,
    job::Job,
    plugin::Phase,
    plugin_info::{PluginError, Settings},
    record::{EntryRef, EntryScope, Field, Owner},
    value::{Devices, Mount, PodResourceClaim},
};

use crate::common::{
    self, call, call_over, container, load, manifest, mount, plugin, plugin_under, pod_set, record,
};

#[test]
fn invalid_handle_ends_the_call() {
    let mut call = call(
        Phase::Transform,
        &plugin(&manifest(
            "p",
            &[("reads", "pod-sets[*].containers[*].image")],
        )),
    );
    for rep in [77, u32::MAX, 1 << 31 | 77] {
        for (result, what) in [
            (
                call.container_image(handle::Container(rep)).map(drop),
                "container",
            ),
            (call.pod_set_name(handle::PodSet(rep)).map(drop), "pod set"),
            (
                call.document_kind(handle::Document(rep), "").map(drop),
                "document",
            ),
            (
                call.object_set_label(handle::Object(rep), "a", "b"),
                "object",
            ),
        ] {
            assert_eq!(result, Err(Fault::DeadHandle { what }));
        }
    }
}

#[test]
fn mounts_are_validated_as_by_kubernetes() {
    let claims = [("writes", "pod-sets[node].containers[node].mounts[*]")];
    let mut call = common::call(Phase::Transform, &plugin(&manifest("p", &claims)));
    let node = container(&mut call, "node", "node");
    let text = |text: &str| Some(text.to_owned());
    let expr = Mount {
        sub_path_expr: text("$(NODE)/a..b"),
        mount_propagation: text("HostToContainer"),
        ..mount("data", "/x")
    };
    call.container_put_mount(node, &expr).unwrap();
    assert_eq!(call.container_mounts(node).unwrap().last(), Some(&expr));
    let plain = mount("data", "/y");
    for (wrong, reported) in [
        (
            Mount {
                sub_path: text("a"),
                sub_path_expr: text("b"),
                ..plain.clone()
            },
            "`sub-path` and `sub-path-expr` are both set; leave one out",
        ),
        (
            Mount {
                sub_path: text("/a"),
                ..plain.clone()
            },
            "`sub-path` is `/a`, which is not a relative path without `..`",
        ),
        (
            Mount {
                sub_path_expr: text("a/../b"),
                ..plain.clone()
            },
            "`sub-path-expr` is `a/../b`, which is not a relative path without `..`",
        ),
        (
            Mount {
                mount_propagation: text("Both"),
                ..plain.clone()
            },
            "`mount-propagation` is `Both`, which is not one of None, HostToContainer, Bidirectional",
        ),
        (
            Mount {
                recursive_read_only: text("Always"),
                ..plain.clone()
            },
            "`recursive-read-only` is `Always`, which is not one of Disabled, IfPossible, Enabled",
        ),
        (
            Mount {
                read_only: false,
                recursive_read_only: text("Enabled"),
                ..plain.clone()
            },
            "a recursive read-only mount must be read-only and must not have a mount propagation",
        ),
    ] {
        let fault = call.container_put_mount(node, &wrong).unwrap_err();
        assert_eq!(fault, Fault::Argument(reported.to_owned()));
    }
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
            let mut transform = call(Phase::Transform);
            let (set, node) = (
                pod_set(&mut transform, "node"),
                container(&mut transform, "node", "node"),
            );
            let mut build = call(Phase::Build);
            for refused in [
                build
                    .objects_emit(handle::Objects(0), "v1", "ConfigMap", suffix, None)
                    .map(drop),
                build
                    .objects_name(handle::Objects(0), "v1", "ConfigMap", suffix, None)
                    .map(drop),
                transform.pod_set_put_own_config_map(set, "v", suffix, None, &[]),
                transform.container_put_env_own_config_map(node, "E", suffix, "key"),
            ] {
                let fault = refused.unwrap_err();
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
        let (set, node) = (
            pod_set(&mut call, "node"),
            container(&mut call, "node", "node"),
        );
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
            ("writes", "pod-sets[*].volumes[v]"),
        ],
    ));
    let objects = handle::Objects(0);
    let mut build = call(Phase::Build, &plugin);
    let job = "llama".to_owned();
    let name = build.objects_name(objects, GROUP, "PodGroup", "", None);
    assert_eq!(name, Ok(job.clone()));
    let group = build.objects_emit(objects, GROUP, "PodGroup", "", None);
    assert_eq!(build.object_name(group.unwrap()), Ok(job));
    let mut transform = call(Phase::Transform, &plugin);
    let set = pod_set(&mut transform, "node");
    for refused in [
        build
            .objects_emit(objects, "v1", "ConfigMap", "", None)
            .map(drop),
        transform
            .objects_name(objects, "v1", "ConfigMap", "", None)
            .map(drop),
        transform.pod_set_put_own_config_map(set, "v", "", None, &[]),
    ] {
        let fault = refused.unwrap_err();
        assert!(matches!(fault, Fault::Argument(_)), "{fault}");
        let rule = "or be empty for a kind outside the core group";
        assert!(fault.to_string().contains(rule), "{fault}");
    }
    // A claim without a suffix covers no name with one.
    let other = build.objects_emit(objects, GROUP, "PodGroup", "-a", None);
    assert!(matches!(other, Err(Fault::NotClaimed { .. })), "{other:?}");
}

#[test]
fn objects_must_have_the_claimed_kind() {
    let plugin = plugin(&manifest("p", &[("writes", "objects[v1/ConfigMap/*]")]));
    let mut call = call(Phase::Build, &plugin);
    let other = call.objects_emit(handle::Objects(0), "apps/v1", "Widget", "-a", None);
    assert!(matches!(other, Err(Fault::NotClaimed { .. })), "{other:?}");
    for (version, kind) in [
        ("v1/ConfigMap", "Pod"),
        ("v1/ConfigMap/", "-a"),
        ("", "ConfigMap"),
    ] {
        let fault = call
            .objects_emit(handle::Objects(0), version, kind, "-a", None)
            .unwrap_err();
        assert!(
            matches!(fault, Fault::Argument(_) | Fault::NotClaimed { .. }),
            "{version} {kind}: {fault}"
        );
    }
    let object = call
        .objects_emit(handle::Objects(0), "v1", "ConfigMap", "-a", None)
        .unwrap();
    let again = call
        .objects_emit(handle::Objects(0), "v1", "ConfigMap", "-a", None)
        .unwrap_err();
    assert!(again.to_string().contains("already"), "{again}");
    call.object_append(object, "a.sh", "echo ").unwrap();
    call.object_append(object, "a.sh", "hi").unwrap();
    call.object_set_binary(object, "b", &[0xff]).unwrap();
    for fault in [
        call.object_append(object, "b", "x"),
        call.object_set_binary(object, "a.sh", b"x"),
        call.object_append(object, "../x", "y"),
    ] {
        assert!(matches!(fault, Err(Fault::Argument(_))));
    }
    for fault in [
        call.object_set_body(object, "{}"),
        call.object_set_type(object, "Opaque"),
    ] {
        assert!(matches!(fault, Err(Fault::Argument(_))), "{fault:?}");
    }
    let objects = call.finish().objects;
    assert_eq!((objects.len(), objects[0].name.as_str()), (1, "llama-a"));
    assert_eq!(objects[0].text("a.sh"), Some("echo hi"));
    assert_eq!(objects[0].text("b"), None);
}

#[test]
fn devices_can_be_set_for_the_plugins_own_sources_only() {
    let plugin = plugin(&manifest("p", &[("writes", "pod-sets[*].devices[*]")]));
    let mut call = call(Phase::Transform, &plugin);
    let set = pod_set(&mut call, "node");
    let devices = |source: &str| Devices {
        source: source.to_owned(),
        count: Some(4),
        accelerator: true,
    };
    for source in ["", "resource/nvidia.com/gpu"] {
        let fault = call.pod_set_put_devices(set, &devices(source)).unwrap_err();
        assert!(matches!(fault, Fault::Argument(_)), "{fault}");
    }
    call.pod_set_put_devices(set, &devices("resource-claim/gpu/a"))
        .unwrap();
}

#[test]
fn resource_claims_have_exactly_one_source() {
    let claims = [("writes", "pod-sets[*].resource-claims[*]")];
    let plugin = plugin(&manifest("p", &claims));
    let mut call = call(Phase::Transform, &plugin);
    let set = pod_set(&mut call, "node");
    let claim = |claim: Option<&str>, template: Option<&str>| PodResourceClaim {
        name: "gpu".to_owned(),
        resource_claim: claim.map(str::to_owned),
        resource_claim_template: template.map(str::to_owned),
    };
    for (one, other) in [(None, None), (Some("a"), Some("b"))] {
        let fault = call
            .pod_set_put_resource_claim(set, &claim(one, other))
            .unwrap_err();
        assert!(matches!(fault, Fault::Argument(_)), "{fault}");
    }
    let made = claim(Some("a"), None);
    call.pod_set_put_resource_claim(set, &made).unwrap();
    let other = claim(None, Some("b"));
    call.pod_set_put_resource_claim(set, &other).unwrap();
    assert_eq!(call.pod_set_resource_claims(set).unwrap(), [other]);
    call.pod_set_remove_resource_claim(set, "gpu").unwrap();
    assert!(call.pod_set_resource_claims(set).unwrap().is_empty());
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

/// What ends a call over an argument.
fn argument_problem(result: Result<(), Fault>) -> String {
    match result.unwrap_err() {
        Fault::Argument(problem) => problem,
        fault => panic!("{fault}"),
    }
}

#[test]
fn scheduling_fields_are_validated_as_by_kubernetes() {
    let claims = [
        ("writes", "pod-sets[*].scheduling-gates[*]"),
        ("writes", "pod-sets[*].tolerations[*]"),
        ("writes", "pod-sets[*].affinity-terms[*]"),
    ];
    let mut call = call(Phase::Transform, &plugin(&manifest("p", &claims)));
    let set = pod_set(&mut call, "node");
    for name in ["", "a b", "-a", "a/b/c", "UPPER.example.com/a", "a/"] {
        let result = call.pod_set_add_scheduling_gate(set, name);
        assert!(
            argument_problem(result).contains("qualified name"),
            "{name}"
        );
    }
    for (json, reported) in [
        ("[]", "not a valid JSON object"),
        ("{", "not valid JSON"),
        ("{}", "the operator `Exists`"),
        (
            r#"{"key": "a", "operator": "In"}"#,
            "the operator of a toleration",
        ),
        (
            r#"{"key": "a", "effect": "Never"}"#,
            "the effect of a toleration",
        ),
        (
            r#"{"operator": "Exists", "value": "a"}"#,
            "must not have a value",
        ),
        (
            r#"{"key": "a", "tolerationSeconds": 3, "effect": "NoSchedule"}"#,
            "needs the effect",
        ),
        (
            r#"{"operator": "Exists", "foo": 1}"#,
            "unknown field `foo` in a toleration; valid fields are key, ",
        ),
        (
            r#"{"key": "a b!!", "operator": "Exists"}"#,
            "a valid label key",
        ),
        (
            r#"{"key": "k", "operator": 5}"#,
            "operator: is not a string",
        ),
        (r#"{"key": "k", "value": "x y z"}"#, "a valid label value"),
        (
            r#"{"operator": "Exists", "effect": 7}"#,
            "effect: is not a string",
        ),
        (
            r#"{"key": "a", "operator": "Lt", "value": "abc"}"#,
            "an integer",
        ),
        (
            r#"{"key": "a", "operator": "Gt", "value": "007"}"#,
            "an integer",
        ),
        (
            r#"{"operator": "Exists", "tolerationSeconds": "soon", "effect": "NoExecute"}"#,
            "tolerationSeconds: is not an integer",
        ),
    ] {
        let problem = argument_problem(call.pod_set_add_toleration(set, "id", json));
        assert!(problem.contains(reported), "{json}: {problem}");
    }
    let problem =
        argument_problem(call.pod_set_add_toleration(set, "An Id", r#"{"operator": "Exists"}"#));
    assert!(problem.contains("the id"), "{problem}");
    for (at, json, reported) in [
        ("nodeAffinity", "{}", "the list must be"),
        ("podAffinity/maybe", "{}", "the list must be"),
        (
            "nodeAffinity/required",
            r#"{"matchExpressions": []}"#,
            "matches no node",
        ),
        (
            "nodeAffinity/preferred",
            r#"{"preference": {}}"#,
            "`weight`",
        ),
        (
            "nodeAffinity/preferred",
            r#"{"weight": 101, "preference": {}}"#,
            "`weight`",
        ),
        ("nodeAffinity/preferred", r#"{"weight": 1}"#, "`preference`"),
        (
            "nodeAffinity/required",
            r#"{"matchExpressions": [{"key": "a", "operator": "Banana"}]}"#,
            "matchExpressions[0]: the operator must be one of In, ",
        ),
        (
            "nodeAffinity/required",
            r#"{"matchExpressions": [["a", "Exists"]]}"#,
            "matchExpressions[0]: is not an object",
        ),
        (
            "nodeAffinity/required",
            r#"{"matchExpressions": [{"key": "a", "operator": "Exists"}], "weight": 1}"#,
            "unknown field `weight`",
        ),
        (
            "nodeAffinity/required",
            r#"{"matchExpressions": [{"key": "a", "operator": "In"}]}"#,
            "need values",
        ),
        (
            "nodeAffinity/required",
            r#"{"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}"#,
            "take no values",
        ),
        (
            "nodeAffinity/required",
            r#"{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}"#,
            "need one value",
        ),
        (
            "nodeAffinity/required",
            r#"{"matchFields": [{"key": "spec.taints", "operator": "In", "values": ["a"]}]}"#,
            "`metadata.name`",
        ),
        (
            "nodeAffinity/preferred",
            r#"{"weight": 1, "preference": {"matchExpressions": [{"key": "a b", "operator": "Exists"}]}}"#,
            "preference.matchExpressions[0]: the key",
        ),
        (
            "podAffinity/required",
            r#"{"topologyKey": "zone", "labelSelector": 7}"#,
            "labelSelector: is not an object",
        ),
        (
            "podAffinity/required",
            r#"{"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}"#,
            "labelSelector.matchExpressions[0]: the operator",
        ),
        (
            "podAffinity/required",
            r#"{"topologyKey": "zone", "namespaceSelector": {"matchLabels": {"a": 1}}}"#,
            "namespaceSelector.matchLabels: `a` is not a valid label key",
        ),
        (
            "podAffinity/required",
            r#"{"topologyKey": "zone", "namespaces": ["a.b"]}"#,
            "an invalid namespace name",
        ),
        (
            "podAffinity/required",
            r#"{"topologyKey": "zone", "matchLabelKeys": ["a"]}"#,
            "need `labelSelector`",
        ),
        (
            "podAffinity/required",
            r#"{"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]}"#,
            "is also in",
        ),
        (
            "podAffinity/required",
            r#"{"topologyKey": ""}"#,
            "`topologyKey`",
        ),
        (
            "podAntiAffinity/preferred",
            r#"{"weight": 1}"#,
            "`podAffinityTerm`",
        ),
        (
            "podAntiAffinity/preferred",
            r#"{"weight": 1, "podAffinityTerm": {}}"#,
            "`topologyKey`",
        ),
    ] {
        let problem = argument_problem(call.pod_set_add_affinity_term(set, "id", at, json));
        assert!(problem.contains(reported), "{at} {json}: {problem}");
    }
    assert!(call.writes().is_empty());
    // What Kubernetes takes is taken, with `null` for what is absent.
    for json in [
        r#"{"key": "example.com/gpu", "value": "", "effect": "NoExecute", "tolerationSeconds": -1}"#,
        r#"{"key": "a", "operator": "Lt", "value": "-9223372036854775808", "effect": null}"#,
        r#"{"key": null, "operator": "Exists", "tolerationSeconds": null}"#,
    ] {
        call.pod_set_add_toleration(set, "id", json).unwrap();
    }
    for (at, json) in [
        (
            "nodeAffinity/required",
            r#"{"matchExpressions": [{"key": "a", "operator": "Lt", "values": ["5"]}], "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]}]}"#,
        ),
        (
            "nodeAffinity/preferred",
            r#"{"weight": 1, "preference": {}}"#,
        ),
        (
            "podAntiAffinity/preferred",
            r#"{"weight": 100, "podAffinityTerm": {"topologyKey": "a/b", "namespaces": ["a"], "namespaceSelector": {}, "labelSelector": {"matchLabels": {"a": ""}, "matchExpressions": [{"key": "b", "operator": "DoesNotExist", "values": []}]}, "matchLabelKeys": ["c"], "mismatchLabelKeys": ["a"]}}"#,
        ),
    ] {
        call.pod_set_add_affinity_term(set, "id", at, json).unwrap();
    }
}

#[test]
fn pod_names_and_groups_are_validated_as_by_kubernetes() {
    let claims = [
        ("writes", "pod-sets[*].dns-searches[*]"),
        ("reads", "pod-sets[*].dns-searches[#]"),
        ("writes", "pod-sets[*].fs-group"),
        ("writes", "pod-sets[*].backoff-limit"),
    ];
    let mut call = call(Phase::Transform, &plugin(&manifest("p", &claims)));
    let set = pod_set(&mut call, "node");
    for domain in ["", ".", "a b", "-a", "a..b"] {
        let problem = argument_problem(call.pod_set_add_dns_search(set, domain));
        assert!(problem.contains("DNS name"), "{domain}: {problem}");
    }
    // With a dot at the end or without, it is one domain.
    for domain in ["b.example", "a.example.", "b.example.", "a.example"] {
        call.pod_set_add_dns_search(set, domain).unwrap();
    }
    assert_eq!(
        call.pod_set_dns_searches(set).unwrap(),
        ["b.example", "a.example"]
    );
    for gid in [-1, 2_147_483_648] {
        assert!(argument_problem(call.pod_set_set_fs_group(set, gid)).contains("2147483647"));
    }
    assert_eq!(call.pod_set_fs_group(set), Ok(None));
    call.pod_set_set_fs_group(set, 0).unwrap();
    assert_eq!(call.pod_set_fs_group(set), Ok(Some(0)));
    let problem = argument_problem(call.pod_set_set_backoff_limit(set, 2_147_483_648));
    assert!(problem.contains("2147483647"), "{problem}");
    assert_eq!(call.pod_set_backoff_limit(set), Ok(None));
    call.pod_set_set_backoff_limit(set, 0).unwrap();
    assert_eq!(call.pod_set_backoff_limit(set), Ok(Some(0)));
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
    let mut call = call(Phase::Transform, &plugin(&manifest("p", &[])));
    let node = container(&mut call, "node", "node");
    let name = format!("A\u{1b}[31m\u{202e}{}", "x".repeat(5000));
    let fault = call.container_put_env(node, &name, "1").unwrap_err();
    assert!(
        matches!(
            &fault,
            Fault::NotClaimed {
                verb: Verb::Write,
                ..
            }
        ),
        "{fault}"
    );
    let message = fault.to_string();
    assert!(
        !message.contains(['\u{1b}', '\u{202e}']) && message.len() < 4096,
        "{message}"
    );
    assert_eq!(call.finish().writes.len(), 0);
}
