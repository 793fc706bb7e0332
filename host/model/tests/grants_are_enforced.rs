//! The operator's grants limit what a plugin may claim, and some claims can never be granted.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::type_complexity,
    clippy::unwrap_used
)]

use serde_json::json;
use trainyard_model::{
    call::{Call, Fault},
    claims::ClaimError,
    contract::handle,
    object::Content,
    plugin::Phase,
    plugin_info::{PluginError, PluginInfo, Settings},
    record::{Field, ObeyedDomains},
    value::Port,
};

use crate::common::{
    self, call, container, granted, load, manifest, missing_claim, mount, plugin, plugin_under,
    pod_set, with,
};

#[test]
fn claims_outside_the_defaults_need_a_grant() {
    for field in Field::ALL {
        let path = match field {
            Field::Objects => "objects[v1/ConfigMap/-a]".to_owned(),
            Field::Ports => format!("{}{field}[80/TCP]", scope(*field)),
            Field::Capabilities => format!("{}{field}[IPC_LOCK]", scope(*field)),
            field if field.is_keyed() => format!("{}{field}[k]", scope(*field)),
            field => format!("{}{field}", scope(*field)),
        };
        let list = if field.holds_containers() {
            "creates"
        } else {
            "writes"
        };
        let by_default = matches!(
            field,
            Field::Env
                | Field::Ports
                | Field::Labels
                | Field::Annotations
                | Field::PodLabels
                | Field::PodAnnotations
                | Field::Volumes
                | Field::Mounts
                | Field::Objects
        );
        let never = matches!(
            field,
            Field::JobSpec
                | Field::Lookups
                | Field::Catalog
                | Field::Count
                | Field::Replicas
                | Field::EnvFrom
                | Field::Placement
        );
        let plain = load(&[(list, &path)], &[]);
        assert_eq!(plain.is_ok(), by_default, "{path}");
        assert_eq!(load(&[(list, &path)], &[&path]).is_ok(), !never, "{path}");
        if let (Err(error), false) = (plain, never) {
            assert!(
                error.to_string().contains(&format!("grants: [\"{path}\"]")),
                "{error}"
            );
        }
    }
}

fn scope(field: Field) -> &'static str {
    match field.level() {
        trainyard_model::record::Level::Job => "",
        trainyard_model::record::Level::PodSet => "pod-sets[*].",
        trainyard_model::record::Level::Container => "pod-sets[*].containers[*].",
    }
}

#[test]
fn grant_allows_the_claims_it_covers() {
    let claim = [("writes", "pod-sets[@trainer].containers[node].image")];
    for (grant, covers) in [
        ("pod-sets[*].containers[*].image", true),
        ("pod-sets[@trainer].containers[no*].image", true),
        ("pod-sets[node].containers[node].image", false),
        ("pod-sets[@trainer].containers[other].image", false),
        ("pod-sets[*].containers[*].command", false),
    ] {
        assert_eq!(load(&claim, &[grant]).is_ok(), covers, "{grant}");
    }
}

#[test]
fn forbidden_claims_are_refused_despite_grants() {
    let impossible = [
        ("reads", "objects[v1/ConfigMap/-a]", "not read"),
        ("creates", "pod-sets[*].volumes[a]", "only containers"),
        ("writes", "pod-sets[*].containers[a]", "`creates`"),
        ("writes", "labels[#]", "cannot be written"),
        ("creates", "pod-sets[*].containers[#]", "cannot be written"),
        ("writes", "job[/trainer]", "only the host writes this field"),
        ("writes", "objects[*]", "name an API version, a kind"),
        ("writes", "objects[v1/ConfigMap/a]", "must begin with `-`"),
        ("writes", "objects[v1/Pod/-a]", "no plugin may emit a Pod"),
        (
            "writes",
            "objects[rbac.authorization.k8s.io/v1/RoleBinding/-a]",
            "no plugin may emit a RoleBinding",
        ),
        (
            "writes",
            "objects[v1/ServiceAccount/-a]",
            "no plugin may emit",
        ),
        // A role allows a resource, whatever the spelling of its kind.
        ("writes", "objects[v1/POD/-a]", "no plugin may emit a POD"),
        (
            "writes",
            "objects[v1/PodMetrics/-a]",
            "no plugin may emit a PodMetrics",
        ),
        (
            "writes",
            "objects[v1/SECRET/-a]",
            "name an API version, a kind",
        ),
        (
            "writes",
            "objects[v1/Binding/-a]",
            "no plugin may emit a Binding",
        ),
        (
            "writes",
            "objects[v1/Namespace/-a]",
            "a Namespace is cluster-scoped",
        ),
        (
            "writes",
            "objects[certificates.k8s.io/v1/CertificateSigningRequest/-a]",
            "is cluster-scoped",
        ),
    ];
    for (list, path, problem) in impossible {
        let manifest = common::parsed(&manifest("p", &[(list, path)]));
        let error = PluginInfo::new(manifest, "native", Settings::built_in()).unwrap_err();
        assert!(error.to_string().contains(problem), "{path}: {error}");
    }
    let all: Vec<_> = impossible
        .iter()
        .map(|(list, path, _)| (*list, *path))
        .collect();
    let error = PluginInfo::new(
        common::parsed(&manifest("p", &all)),
        "native",
        Settings::built_in(),
    )
    .unwrap_err();
    let PluginError::Claims { errors, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(errors.len(), impossible.len(), "all are reported at once");
}

#[test]
fn number_of_claims_is_limited() {
    let paths: Vec<_> = (0..129).map(|n| format!("labels[{n}]")).collect();
    let claims = |n: usize| {
        paths
            .iter()
            .take(n)
            .map(|path| ("writes", path.as_str()))
            .collect::<Vec<_>>()
    };
    let plugin = plugin(&manifest("p", &claims(128)));
    let mut call = call(Phase::Transform, &plugin);
    call.info_set_label(handle::Info(0), "127", "x").unwrap();
    let error = PluginInfo::new(
        common::parsed(&manifest("p", &claims(129))),
        "native",
        Settings::built_in(),
    )
    .unwrap_err();
    let PluginError::Claims { errors, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(errors, [ClaimError::TooMany(129)]);
}

#[test]
fn privileged_kinds_can_not_be_emitted() {
    for claim in [
        "objects[v1/Pod/-a]",
        "objects[apps/v1/Deployment/-*]",
        "objects[batch/v1/Job/-a]",
        "objects[rbac.authorization.k8s.io/v1/Role/-a]",
        "objects[jobset.x-k8s.io/v1alpha2/JobSet/-a]",
        "objects[*]",
        "objects[apps/v1/*]",
        "objects[apps/v1/Depl*]",
        "objects[v1/*]",
    ] {
        let manifest = manifest("p", &[("writes", claim)]);
        let built_in = PluginInfo::new(common::parsed(&manifest), "native", Settings::built_in());
        assert!(built_in.is_err(), "{claim}");
    }
}

#[test]
fn lookups_other_than_a_named_config_map_need_a_grant() {
    for (claim, by_default) in [
        ("lookups[v1/ConfigMap/tracing]", true),
        ("lookups[v1/ConfigMap/*]", false),
        ("lookups[v1/ConfigMap/a*]", false),
        ("lookups[\"v1/ConfigMap/*\"]", false),
        ("lookups[v1/ConfigMap/#]", false),
        ("lookups[$config./key]", false),
        ("lookups[*]", false),
        ("lookups[v1/Node/gpu-1]", false),
        ("lookups[scheduling.k8s.io/v1/PriorityClass/high]", false),
    ] {
        let without = load(&[("reads", claim)], &[]);
        assert_eq!(without.is_ok(), by_default, "{claim}");
        load(&[("reads", claim)], &[claim]).unwrap();
        load(&[("reads", claim)], &["lookups[*]"]).unwrap();
        if let Err(error) = without {
            let message = error.to_string();
            let grants = message.split_once("`grants: [").unwrap().1;
            let grant = grants.split_once("]` to its PolicyPlugin").unwrap().0;
            let grant: String = serde_json::from_str(grant).unwrap();
            load(&[("reads", claim)], &[&grant]).unwrap();
        }
    }
}

#[test]
fn node_sets_need_a_grant_for_the_counts_they_set() {
    let sets = json!([{"podSet": "node"}, {"podSet": "launcher", "when": "/on"}]);
    let manifest = with(manifest("p", &[]), json!({"nodeSets": sets}));
    let load =
        |grants: &[&str]| PluginInfo::new(common::parsed(&manifest), "native", granted(grants));
    let (node, launcher) = ("pod-sets[node].count", "pod-sets[launcher].count");
    let error = load(&[node]).unwrap_err().to_string();
    assert!(
        error.ends_with(&format!(
            "its `nodeSets` let `numNodes` set `{launcher}`, which is not granted; add `grants: [\"{launcher}\"]` to its PolicyPlugin"
        )),
        "{error}"
    );
    let PluginError::Claims { errors, .. } = load(&[]).unwrap_err() else {
        panic!()
    };
    assert_eq!(errors.len(), 2);
    load(&[node, launcher]).unwrap();
    load(&["pod-sets[*].count"]).unwrap();
    PluginInfo::new(common::parsed(&manifest), "native", Settings::built_in()).unwrap();
}

#[test]
fn other_kinds_need_a_grant_and_a_body() {
    let claim = "objects[resource.k8s.io/v1/ResourceClaimTemplate/-*]";
    let manifest = manifest("p", &[("writes", claim)]);
    let error = PluginInfo::new(common::parsed(&manifest), "native", granted(&[])).unwrap_err();
    assert!(error.to_string().contains("is not granted"), "{error}");
    let plugin = plugin_under(&manifest, granted(&[claim]));
    let mut call = call(Phase::Build, &plugin);
    let (api, kind) = ("resource.k8s.io/v1", "ResourceClaimTemplate");
    let object = call
        .objects_emit(handle::Objects(0), api, kind, "-gpu", None)
        .unwrap();
    call.object_set_body(object, r#"{"spec": {"a": 1}}"#)
        .unwrap();
    call.object_set_body(object, r#"{"spec": {"b": 2}}"#)
        .unwrap();
    for fault in [
        call.object_set_body(object, r#"{"metadata": {"name": "other"}}"#),
        call.object_set_body(object, r#"{"status": {}}"#),
        call.object_set_body(object, r#"{"kind": "Pod"}"#),
        call.object_set_body(object, "[]"),
        call.object_append(object, "a", "b"),
        call.object_set_immutable(object),
    ] {
        assert!(matches!(fault, Err(Fault::Argument(_))), "{fault:?}");
    }
    let objects = call.finish().objects;
    let Content::Body(body) = &objects[0].content else {
        panic!("{objects:?}")
    };
    assert_eq!(
        serde_json::to_value(body).unwrap(),
        json!({"spec": {"b": 2}})
    );
}

#[test]
fn host_ports_need_a_grant() {
    let claims = [("writes", "pod-sets[node].containers[node].ports[*]")];
    let plain = Port {
        number: 80,
        protocol: "TCP".to_owned(),
        ..Port::default()
    };
    let open = Port {
        host_port: Some(8080),
        ..plain.clone()
    };
    let mut own = common::call(
        Phase::Transform,
        &plugin_under(&manifest("p", &claims), Settings::default()),
    );
    let node = container(&mut own, "node", "node");
    own.container_put_port(node, &plain).unwrap();
    let fault = own.container_put_port(node, &open).unwrap_err();
    let place = "pod-sets[node].containers[node].ports[80/TCP]";
    assert!(
        matches!(&fault, Fault::NotGranted { path, what: "a host port", .. } if path == place),
        "{fault}"
    );
    let mut free = common::call(Phase::Transform, &plugin(&manifest("p", &claims)));
    free.container_put_port(node, &open).unwrap();
    assert_eq!(free.container_port(node, 80, "TCP"), Ok(Some(open.clone())));
    let zero = Port {
        host_port: Some(0),
        ..open
    };
    assert_eq!(
        free.container_put_port(node, &zero),
        Err(Fault::Argument("the host port must not be 0".to_owned()))
    );
    let at = |address: &str| Port {
        host_ip: Some(address.to_owned()),
        ..plain.clone()
    };
    assert_eq!(
        free.container_put_port(node, &at("node-1")),
        Err(Fault::Argument("`node-1` is not an IP address".to_owned()))
    );
    free.container_put_port(node, &at("192.0.2.1")).unwrap();
    assert_eq!(
        free.container_port(node, 80, "TCP"),
        Ok(Some(at("192.0.2.1")))
    );
    assert!(matches!(
        own.container_put_port(node, &at("192.0.2.1")),
        Err(Fault::NotGranted { .. })
    ));
}

const OWN: [(&str, &str); 3] = [
    ("writes", "pod-sets[@trainer].volumes[*]"),
    ("writes", "pod-sets[@trainer].containers[*].mounts[*]"),
    ("writes", "objects[v1/ConfigMap/-a]"),
];

/// A plugin under the default grants, with claims on all volumes and mounts of the trainer.
fn guest() -> Call {
    call(
        Phase::Transform,
        &plugin_under(&manifest("p", &OWN), Settings::default()),
    )
}

#[test]
fn without_a_grant_only_the_plugins_own_volumes_can_be_mounted() {
    let mut own = guest();
    let (set, node) = (
        pod_set(&mut own, "node"),
        container(&mut own, "node", "node"),
    );
    own.pod_set_put_empty_dir(set, "cache", Some("Memory"), None)
        .unwrap();
    own.pod_set_put_own_config_map(set, "scripts", "-a", Some(0o440), &[])
        .unwrap();
    own.container_put_mount(node, &mount("cache", "/cache"))
        .unwrap();
    own.container_put_mount(node, &mount("scripts", "/scripts"))
        .unwrap();
    own.container_remove_mount(node, "/cache").unwrap();
    own.pod_set_remove_volume(set, "cache").unwrap();

    type Foreign = fn(&mut Call, handle::PodSet, handle::Container) -> Result<(), Fault>;
    let table: &[(Foreign, &str)] = &[
        (
            |c, set, _| c.pod_set_put_raw_volume(set, "x", r#"{"hostPath": {"path": "/"}}"#),
            "pod-sets[node].volumes[x]",
        ),
        (
            |c, set, _| c.pod_set_put_empty_dir(set, "data", None, None),
            "pod-sets[node].volumes[data]",
        ),
        (
            |c, set, _| c.pod_set_remove_volume(set, "data"),
            "pod-sets[node].volumes[data]",
        ),
        (
            |c, _, node| c.container_put_mount(node, &mount("data", "/x")),
            "pod-sets[node].containers[node].mounts[/x]",
        ),
        (
            |c, _, node| c.container_put_mount(node, &mount("none", "/x")),
            "pod-sets[node].containers[node].mounts[/x]",
        ),
        (
            |c, _, node| c.container_remove_mount(node, "/data"),
            "pod-sets[node].containers[node].mounts[/data]",
        ),
        (
            |c, set, node| {
                c.pod_set_put_empty_dir(set, "own", None, None)?;
                c.container_put_mount(node, &mount("own", "/data"))
            },
            "pod-sets[node].containers[node].mounts[/data]",
        ),
    ];
    for (write, place) in table {
        let mut call = guest();
        let (set, node) = (
            pod_set(&mut call, "node"),
            container(&mut call, "node", "node"),
        );
        let fault = write(&mut call, set, node).unwrap_err();
        assert!(
            matches!(&fault, Fault::NotGranted { path, .. } if path == place),
            "{fault}"
        );
        // The grant in the message allows it: that of the claim, since only claims can be granted.
        let message = fault.to_string();
        let (_, grant) = message.split_once("`grants: [").unwrap();
        let (grant, _) = grant.split_once("]` to its PolicyPlugin").unwrap();
        let grant: String = serde_json::from_str(grant).unwrap();
        let settings = granted(&[&grant]);
        let mut free = common::call(
            Phase::Transform,
            &plugin_under(&manifest("p", &OWN), settings),
        );
        write(&mut free, set, node).unwrap();
    }
}

#[test]
fn plugins_may_emit_only_their_own_data() {
    let mut call = guest();
    let set = pod_set(&mut call, "node");
    let node = container(&mut call, "node", "node");
    for (kind, claims) in [("ConfigMap", "v1/ConfigMap"), ("Secret", "v1/Secret")] {
        let mut put = |suffix: &str| {
            if kind == "Secret" {
                [
                    call.pod_set_put_own_secret(set, "x", suffix, None, &[]),
                    call.container_put_env_own_secret(node, "X", suffix, "key"),
                ]
            } else {
                [
                    call.pod_set_put_own_config_map(set, "x", suffix, None, &[]),
                    call.container_put_env_own_config_map(node, "X", suffix, "key"),
                ]
            }
        };
        for fault in put("-other") {
            let missing = missing_claim(&fault.unwrap_err());
            assert_eq!(missing, ("writes", format!("objects[{claims}/-other]")));
        }
        for suffix in ["", "other-job", "-A", "-a/b"] {
            for fault in put(suffix) {
                assert!(
                    matches!(fault, Err(Fault::Argument(_))),
                    "{suffix}: {fault:?}"
                );
            }
        }
    }
}

/// A raw source is any Secret of the namespace, also one that the user of the TrainJob may not read.
#[test]
fn raw_env_sources_need_a_grant_even_in_own_containers() {
    let env = "pod-sets[*].containers[*].env[*]";
    let added = "pod-sets[*].containers[helper]";
    let claims = [("writes", env), ("creates", added)];
    let source = r#"{"secretKeyRef": {"name": "a", "key": "b"}}"#;
    for (grants, is_allowed) in [(&[added] as &[_], false), (&[added, env], true)] {
        let plugin = plugin_under(&manifest("p", &claims), granted(grants));
        let mut call = call(Phase::Transform, &plugin);
        let set = pod_set(&mut call, "node");
        let own = call.pod_set_add_container(set, "helper", "image").unwrap();
        for target in [container(&mut call, "node", "node"), own] {
            call.container_put_env(target, "PLAIN", "value").unwrap();
            let put = call.container_put_env_raw(target, "RAW", source);
            assert_eq!(put.is_ok(), is_allowed, "{put:?}");
            if let Err(fault) = put {
                assert!(matches!(fault, Fault::NotGranted { .. }), "{fault}");
            }
            for malformed in ["", "[]", "{}", r#"{"a": 1, "b": 2}"#, "null"] {
                let fault = call.container_put_env_raw(target, "RAW", malformed);
                let is_reported = matches!(fault, Err(Fault::Argument(_)));
                assert_eq!(is_reported, is_allowed, "{malformed}: {fault:?}");
            }
        }
    }
}

/// A grant on a container covers only what is in it.
#[test]
fn access_beyond_a_container_needs_a_grant_even_in_own_containers() {
    let added = "pod-sets[*].containers[helper]";
    let inside = |field: &str| format!("{added}.{field}");
    let (raw, ports, mounts) = (inside("raw[*]"), inside("ports[*]"), inside("mounts[*]"));
    let capabilities = inside("capabilities[*]");
    let volumes = "pod-sets[*].volumes[*]";
    type Reach = fn(&mut Call, handle::Container) -> Result<(), Fault>;
    let table: &[(Reach, &str, &str)] = &[
        (
            |c, own| c.container_set_raw(own, "securityContext/privileged", "true"),
            &raw,
            "raw[securityContext/privileged]",
        ),
        (
            |c, own| c.container_add_capability(own, "SYS_ADMIN"),
            &capabilities,
            "capabilities[SYS_ADMIN]",
        ),
        (
            |c, own| c.container_set_raw(own, "volumeDevices", "[]"),
            &raw,
            "raw[volumeDevices]",
        ),
        (
            |c, own| {
                c.container_put_port(
                    own,
                    &Port {
                        number: 22,
                        protocol: "TCP".to_owned(),
                        host_port: Some(22),
                        ..Port::default()
                    },
                )
            },
            &ports,
            "ports[22/TCP]",
        ),
        (
            |c, own| c.container_put_mount(own, &mount("data", "/x")),
            &mounts,
            "mounts[/x]",
        ),
    ];
    let try_it = |claims: &[(&str, &str)], grants: &[&str], reach: Reach| {
        let plugin = plugin_under(&manifest("p", claims), granted(grants));
        let mut call = call(Phase::Transform, &plugin);
        let set = pod_set(&mut call, "node");
        let own = call.pod_set_add_container(set, "helper", "image").unwrap();
        call.container_set_image(own, "image:2").unwrap();
        call.container_set_command(own, &["run".to_owned()])
            .unwrap();
        call.container_put_env(own, "A", "1").unwrap();
        call.container_set_request(own, "cpu", "1").unwrap();
        let port = Port {
            number: 80,
            protocol: "TCP".to_owned(),
            ..Port::default()
        };
        call.container_put_port(own, &port).unwrap();
        call.pod_set_put_empty_dir(set, "own", None, None).unwrap();
        call.container_put_mount(own, &mount("own", "/own"))
            .unwrap();
        call.container_put_mount(own, &mount("own", "/gone"))
            .unwrap();
        call.container_remove_mount(own, "/gone").unwrap();
        reach(&mut call, own)
    };
    for (reach, claim, place) in table {
        let place = format!("pod-sets[node].containers[helper].{place}");
        let bare = [("creates", added), ("writes", volumes)];
        let fault = try_it(&bare, &[added], *reach).unwrap_err();
        assert_eq!(missing_claim(&fault), ("writes", place.clone()));
        let claims = [bare[0], bare[1], ("writes", *claim)];
        // Raw members and capabilities have no default grant: such a plugin is not even loaded.
        if ![&raw, &capabilities].contains(&&claim.to_string()) {
            let fault = try_it(&claims, &[added], *reach).unwrap_err();
            assert!(
                matches!(&fault, Fault::NotGranted { path, .. } if *path == place),
                "{fault}"
            );
        }
        try_it(&claims, &[added, claim], *reach).unwrap();
    }
}

#[test]
fn mounts_belong_to_the_plugin_that_added_them() {
    let volumes = "pod-sets[*].volumes[*]";
    let claims = [
        ("writes", volumes),
        ("writes", "pod-sets[*].containers[*].mounts[*]"),
    ];
    let plugin = plugin_under(&manifest("p", &claims), granted(&[volumes]));
    let mut call = call(Phase::Transform, &plugin);
    let (set, node) = (
        pod_set(&mut call, "node"),
        container(&mut call, "node", "node"),
    );
    call.pod_set_put_empty_dir(set, "data", None, None).unwrap();
    call.container_put_mount(node, &mount("data", "/mine"))
        .unwrap();
    call.container_remove_mount(node, "/mine").unwrap();
    let fault = call.container_remove_mount(node, "/data").unwrap_err();
    assert!(matches!(fault, Fault::NotGranted { .. }), "{fault}");
}

#[test]
fn keys_that_controllers_obey_need_a_claim_and_a_grant_by_name() {
    let set_under = |claim: &str, grants: &[&str], key: &str| {
        let settings = granted(grants);
        let manifest = manifest("p", &[("writes", claim)]);
        let mut call = call(Phase::Transform, &plugin_under(&manifest, settings));
        let info = call.context_info(Call::CONTEXT).unwrap();
        let set = pod_set(&mut call, "node");
        let field = claim.split_once('[').map_or("", |(field, _)| field);
        match field {
            "labels" => call.info_set_label(info, key, "x"),
            "annotations" => call.info_set_annotation(info, key, "x"),
            _ if claim.contains("pod-labels") => {
                call.pod_set_set_pod_label(set, key, "x")?;
                call.pod_set_remove_pod_label(set, key)
            }
            _ => {
                call.pod_set_set_pod_annotation(set, key, "x")?;
                call.pod_set_remove_pod_annotation(set, key)
            }
        }
    };
    let fields = [
        "labels",
        "annotations",
        "pod-sets[node].pod-labels",
        "pod-sets[node].pod-annotations",
    ];
    for field in fields {
        let place = |key: &str| format!("{field}[{key}]");
        for key in [
            "container.apparmor.security.beta.kubernetes.io/node",
            "security.alpha.kubernetes.io/unsafe-sysctls",
            "scheduling.x-k8s.io/pod-group",
            "scheduling.k8s.io/group-name",
            "scheduling.volcano.sh/queue-name",
            "kueue.x-k8s.io/queue-name",
            "alpha.jobset.sigs.k8s.io/exclusive-topology",
            "kai.scheduler/queue",
            "k8s.v1.cni.cncf.io/networks",
            "sidecar.istio.io/inject",
            "eks.amazonaws.com/role-arn",
            "azure.workload.identity/use",
            "io.kubernetes.cri-o.Devices",
        ] {
            let named = place(key);
            for wide in [place(&format!("{}*", &key[..8])), place("*")] {
                for grants in [&[] as &[&str], &[&wide], &[&place("*")]] {
                    let fault = set_under(&wide, grants, key).unwrap_err();
                    assert_eq!(missing_claim(&fault), ("writes", named.clone()), "{wide}");
                }
            }
            for grants in [
                &[] as &[&str],
                &[&place("*")],
                &[&place(&format!("{}*", &key[..8]))],
            ] {
                let error = load(&[("writes", &named)], grants).unwrap_err().to_string();
                assert!(error.contains(&format!("grants: [\"{named}\"]")), "{error}");
            }
            set_under(&named, &[&named], key).unwrap();
        }
        for key in [
            "app.kubernetes.io/name",
            "example.com/kubernetes.io",
            "mykubernetes.io/a",
            "kubernetes.io.example.com/a",
            "volcano",
        ] {
            set_under(&place("*"), &[], key).unwrap();
        }
    }
    // Reading them needs only a claim.
    let plugin = load(&[("reads", "pod-sets[*].pod-annotations[*]")], &[]).unwrap();
    let mut call = call(Phase::Transform, &std::sync::Arc::new(plugin));
    let set = pod_set(&mut call, "node");
    let key = "scheduling.k8s.io/group-name";
    assert_eq!(call.pod_set_pod_annotation(set, key), Ok(None));
}

/// The domains that controllers obey are part of what a started TrainJob is pinned to, for plugins that they affect.
#[test]
fn obeyed_domains_are_pinned_for_plugins_that_write_labels() {
    let pinned = |claim: &str, domains: &[&str]| {
        let settings = Settings {
            obeyed: ObeyedDomains::new(domains.iter().copied()),
            ..granted(&[claim])
        };
        plugin_under(&manifest("p", &[("writes", claim)]), settings).pinned_settings()
    };
    let (two, reversed, one) = (&["a.io", "b.io"], &["b.io", "a.io"], &["a.io"]);
    let label = "labels[team]";
    assert_eq!(pinned(label, two), pinned(label, reversed));
    assert_ne!(pinned(label, two), pinned(label, one));
    let env = "pod-sets[*].containers[*].env[A]";
    assert_eq!(pinned(env, two), pinned(env, one));
}
