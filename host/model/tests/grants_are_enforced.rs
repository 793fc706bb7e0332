//! The operator's grants limit what a plugin may claim, and some claims can never be granted.

use serde_json::json;
use trainyard_model::{
    call::{Call, Fault},
    claims::ClaimError,
    contract::handle,
    object::Content,
    plugin::Phase,
    plugin_info::{PluginError, PluginInfo, Settings},
    record::{Field, Level, ObeyedDomains},
    value::Port,
};

use crate::common::{
    call, call_with, container, granted, load, manifest,
    methods::{On, Run, node, port, run, set, text},
    missing_claim, mount, parsed, plugin_under, pod_set, set_and_node, with,
};

#[test]
fn claims_outside_the_defaults_need_a_grant() {
    for field in Field::ALL {
        let key = match field {
            Field::Objects => "[v1/ConfigMap/-a]",
            Field::Ports => "[80/TCP]",
            Field::Capabilities => "[IPC_LOCK]",
            field if field.is_keyed() => "[k]",
            _ => "",
        };
        let scope = match field.level() {
            Level::Job => "",
            Level::PodSet => "pod-sets[*].",
            Level::Container => "pod-sets[*].containers[*].",
        };
        let path = format!("{scope}{field}{key}");
        let list = ["writes", "creates"][usize::from(field.holds_containers())];
        use Field::*;
        let by_default = [
            Env,
            Ports,
            Labels,
            Annotations,
            PodLabels,
            PodAnnotations,
            Volumes,
            Mounts,
            Objects,
        ]
        .contains(field);
        let never = [
            JobSpec, Lookups, Catalog, Count, Replicas, EnvFrom, Placement,
        ]
        .contains(field);
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

#[test]
fn grant_allows_the_claims_it_covers() {
    let of_trainer = "pod-sets[@trainer].containers[node].image";
    let of_nodes = "pod-sets[@nodes].containers[node].image";
    for (claim, grant, covers) in [
        (of_trainer, "pod-sets[*].containers[*].image", true),
        (of_trainer, "pod-sets[@trainer].containers[no*].image", true),
        (of_trainer, "pod-sets[node].containers[node].image", false),
        (
            of_trainer,
            "pod-sets[@trainer].containers[other].image",
            false,
        ),
        (of_trainer, "pod-sets[*].containers[*].command", false),
        (of_trainer, of_nodes, false),
        (of_nodes, of_nodes, true),
        (of_nodes, of_trainer, false),
    ] {
        let loaded = load(&[("writes", claim)], &[grant]);
        assert_eq!(loaded.is_ok(), covers, "{claim} under {grant}");
    }
}

macro_rules! forbidden {
    ($($list:ident $path:literal $problem:literal;)+) => {
        const FORBIDDEN: &[(&str, &str, &str)] = &[$((stringify!($list), $path, $problem),)+];
    };
}

forbidden! {
    reads "objects[v1/ConfigMap/-a]" "not read";
    creates "pod-sets[*].volumes[a]" "only containers";
    writes "pod-sets[*].containers[a]" "`creates`";
    writes "labels[#]" "cannot be written";
    creates "pod-sets[*].containers[#]" "cannot be written";
    writes "job[/trainer]" "only the host writes this field";
    writes "objects[*]" "name an API version, a kind";
    writes "objects[apps/v1/*]" "name an API version, a kind";
    writes "objects[apps/v1/Depl*]" "name an API version, a kind";
    writes "objects[v1/*]" "name an API version, a kind";
    writes "objects[v1/SECRET/-a]" "name an API version, a kind";
    writes "objects[v1/ConfigMap/a]" "must begin with `-`";
    writes "objects[v1/Pod/-a]" "no plugin may emit a Pod";
    writes "objects[apps/v1/Deployment/-*]" "no plugin may emit a Deployment";
    writes "objects[batch/v1/Job/-a]" "no plugin may emit a Job";
    writes "objects[jobset.x-k8s.io/v1alpha2/JobSet/-a]" "no plugin may emit a JobSet";
    writes "objects[rbac.authorization.k8s.io/v1/Role/-a]" "no plugin may emit a Role";
    writes "objects[rbac.authorization.k8s.io/v1/RoleBinding/-a]" "no plugin may emit a RoleBinding";
    writes "objects[v1/ServiceAccount/-a]" "no plugin may emit";
    writes "objects[v1/POD/-a]" "no plugin may emit a POD";
    writes "objects[v1/PodMetrics/-a]" "no plugin may emit a PodMetrics";
    writes "objects[v1/Binding/-a]" "no plugin may emit a Binding";
    writes "objects[v1/Namespace/-a]" "a Namespace is cluster-scoped";
    writes "objects[certificates.k8s.io/v1/CertificateSigningRequest/-a]" "is cluster-scoped";
}

/// The errors of a built-in plugin, which is granted everything.
fn claim_errors(claims: &[(&str, &str)]) -> Vec<ClaimError> {
    let built_in = PluginInfo::new(
        parsed(&manifest("p", claims)),
        "native",
        Settings::built_in(),
    );
    match built_in.unwrap_err() {
        PluginError::Claims { errors, .. } => errors,
        error => panic!("{error}"),
    }
}

/// A role allows a resource, whatever the spelling of its kind.
#[test]
fn forbidden_claims_are_refused_despite_grants() {
    let claims: Vec<_> = FORBIDDEN
        .iter()
        .map(|(list, path, _)| (*list, *path))
        .collect();
    for (claim, (_, path, problem)) in claims.iter().zip(FORBIDDEN) {
        let errors = claim_errors(&[*claim]);
        assert!(
            errors[0].to_string().contains(problem),
            "{path}: {errors:?}"
        );
    }
    assert_eq!(
        claim_errors(&claims).len(),
        FORBIDDEN.len(),
        "all are reported at once"
    );
}

#[test]
fn number_of_claims_is_limited() {
    let paths: Vec<_> = (0..129).map(|n| format!("labels[{n}]")).collect();
    let claims: Vec<_> = paths.iter().map(|path| ("writes", path.as_str())).collect();
    let mut call = call_with(Phase::Transform, &claims[..128]);
    call.info_set_label(handle::Info(0), "127", "x").unwrap();
    assert_eq!(claim_errors(&claims), [ClaimError::TooMany(129)]);
}

/// The grant that a message says to add.
fn pasted_grant(message: &str) -> String {
    let (_, grant) = message.split_once("`grants: [").unwrap();
    let (grant, _) = grant.split_once("]` to its PolicyPlugin").unwrap();
    serde_json::from_str(grant).unwrap()
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
            load(&[("reads", claim)], &[&pasted_grant(&error.to_string())]).unwrap();
        }
    }
}

#[test]
fn node_sets_need_a_grant_for_the_counts_they_set() {
    let sets = json!([{"podSet": "node"}, {"podSet": "launcher", "when": "/on"}]);
    let manifest = with(manifest("p", &[]), json!({"nodeSets": sets}));
    let load = |grants: &[&str]| PluginInfo::new(parsed(&manifest), "native", granted(grants));
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
    PluginInfo::new(parsed(&manifest), "native", Settings::built_in()).unwrap();
}

#[test]
fn other_kinds_need_a_grant_and_a_body() {
    let claim = "objects[resource.k8s.io/v1/ResourceClaimTemplate/-*]";
    let manifest = manifest("p", &[("writes", claim)]);
    let error = PluginInfo::new(parsed(&manifest), "native", granted(&[])).unwrap_err();
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
    let objects = call.finish().objects;
    let Content::Body(body) = &objects[0].content else {
        panic!("{objects:?}")
    };
    assert_eq!(
        serde_json::to_value(body).unwrap(),
        json!({"spec": {"b": 2}})
    );
}

/// What a plugin with a claim on the field may do only with a grant of it, and the place below its container or pod set.
macro_rules! beyond {
    ($($on:ident.$method:ident($($arg:expr),*) $place:literal;)+) => {
        const BEYOND: &[(Run, &str)] = &[$((run!($on.$method($($arg),*)), $place),)+];
    };
}

beyond! {
    set.pod_set_put_raw_volume("x", r#"{"hostPath": {"path": "/"}}"#) "volumes[x]";
    set.pod_set_put_empty_dir("data", None, None) "volumes[data]";
    set.pod_set_remove_volume("data") "volumes[data]";
    node.container_put_mount(&mount("data", "/x")) "mounts[/x]";
    node.container_put_mount(&mount("none", "/x")) "mounts[/x]";
    with_mount.container_remove_mount("/data") "mounts[/data]";
    with_mount.container_put_mount(&mount("own", "/data")) "mounts[/data]";
    node.container_put_port(&Port { host_port: Some(22), ..port(22) }) "ports[22/TCP]";
    node.container_put_port(&Port { host_ip: text("192.0.2.1"), ..port(22) }) "ports[22/TCP]";
    node.container_put_env_raw("RAW", r#"{"secretKeyRef": {"name": "a", "key": "b"}}"#) "env[RAW]";
    node.container_set_raw("securityContext/privileged", "true") "raw[securityContext/privileged]";
    node.container_set_raw("volumeDevices", "[]") "raw[volumeDevices]";
    node.container_add_capability("SYS_ADMIN") "capabilities[SYS_ADMIN]";
}

/// The container `node`, which has a mount of the runtime at `/data`, after the plugin added a volume `own`.
fn with_mount(call: &mut Call, _: On) -> Result<handle::Container, Fault> {
    let set = set(call, On::Record)?;
    call.pod_set_put_empty_dir(set, "own", None, None)?;
    node(call, On::Record)
}

/// A grant on a container covers only what is in it, and a raw source is any Secret of the namespace, also one that the user of the
/// TrainJob may not read. So a plugin needs the same claims and grants in containers of its own.
#[test]
fn access_beyond_a_container_needs_a_grant_even_in_own_containers() {
    let added = ("creates", "pod-sets[node].containers[own]");
    let volumes = ("writes", "pod-sets[@trainer].volumes[*]");
    for (on, name) in [(On::Record, "node"), (On::Own, "own")] {
        for (run, place) in BEYOND {
            let (field, _) = place.split_once('[').unwrap();
            // No container that the plugin adds has a mount of the runtime.
            if on == On::Own && (field == "volumes" || place.ends_with("[/data]")) {
                continue;
            }
            let at = |scope: &str, key: &str| match field {
                "volumes" => format!("pod-sets[{scope}].{field}[{key}"),
                _ => format!("pod-sets[{scope}].containers[{name}].{field}[{key}"),
            };
            let (claim, place) = (
                at("@trainer", "*]"),
                at("node", place.split_once('[').unwrap().1),
            );
            let try_with = |claims: &[(&str, &str)], grants: &[&str]| {
                let plugin = plugin_under(&manifest("p", claims), granted(grants));
                run(&mut call(Phase::Transform, &plugin), on)
            };
            if field != "volumes" {
                let fault = try_with(&[added, volumes], &[added.1]).unwrap_err();
                assert_eq!(missing_claim(&fault), ("writes", place.clone()));
            }
            let claims = [added, volumes, ("writes", &claim)];
            // Raw members and capabilities have no default grant: such a plugin is not even loaded.
            if ["raw", "capabilities"].contains(&field) {
                assert!(load(&claims, &[added.1]).is_err());
                try_with(&claims, &[added.1, &claim]).unwrap();
                continue;
            }
            let fault = try_with(&claims, &[added.1]).unwrap_err();
            assert!(
                matches!(&fault, Fault::NotGranted { path, .. } if *path == place),
                "{fault}"
            );
            // The grant in the message allows it: that of the claim, since only claims can be granted.
            try_with(&claims, &[added.1, &pasted_grant(&fault.to_string())]).unwrap();
        }
    }
}

/// Under the default grants, with claims on all of them.
#[test]
fn own_volumes_mounts_ports_and_values_need_no_grant() {
    let inside = ["mounts[*]", "ports[*]", "env[*]"]
        .map(|field| format!("pod-sets[*].containers[*].{field}"));
    let mut claims = vec![
        ("creates", "pod-sets[*].containers[own]"),
        ("writes", "pod-sets[*].volumes[*]"),
        ("writes", "objects[v1/ConfigMap/-a]"),
    ];
    claims.extend(inside.iter().map(|path| ("writes", path.as_str())));
    for on in [On::Record, On::Own] {
        let mut call = call(
            Phase::Transform,
            &plugin_under(&manifest("p", &claims), granted(&[claims[0].1])),
        );
        let (set, node) = (set(&mut call, on).unwrap(), node(&mut call, on).unwrap());
        call.pod_set_put_empty_dir(set, "cache", Some("Memory"), None)
            .unwrap();
        call.pod_set_put_own_config_map(set, "scripts", "-a", Some(0o440), &[])
            .unwrap();
        for volume in ["cache", "scripts"] {
            call.container_put_mount(node, &mount(volume, &format!("/{volume}")))
                .unwrap();
        }
        call.container_remove_mount(node, "/cache").unwrap();
        call.pod_set_remove_volume(set, "cache").unwrap();
        call.container_put_port(node, &port(80)).unwrap();
        call.container_put_env(node, "PLAIN", "value").unwrap();
    }
}

#[test]
fn granted_host_ports_are_read_back() {
    let mut call = call_with(
        Phase::Transform,
        &[("writes", "pod-sets[*].containers[*].ports[*]")],
    );
    let node = container(&mut call, "node", "node");
    let (host_port, host_ip) = (Some(8080), text("192.0.2.1"));
    let port = Port {
        host_port,
        host_ip,
        ..port(80)
    };
    call.container_put_port(node, &port).unwrap();
    assert_eq!(call.container_port(node, 80, "TCP"), Ok(Some(port)));
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
    let (set, node) = set_and_node(&mut call);
    call.pod_set_put_empty_dir(set, "data", None, None).unwrap();
    call.container_put_mount(node, &mount("data", "/mine"))
        .unwrap();
    call.container_remove_mount(node, "/mine").unwrap();
    let fault = call.container_remove_mount(node, "/data").unwrap_err();
    assert!(matches!(fault, Fault::NotGranted { .. }), "{fault}");
}

#[test]
fn keys_that_controllers_obey_need_a_claim_and_a_grant_by_name() {
    type Write = fn(&mut Call, handle::PodSet, &str) -> Result<(), Fault>;
    let labels: Write = |c, _, key| c.info_set_label(handle::Info(0), key, "x");
    let annotations: Write = |c, _, key| c.info_set_annotation(handle::Info(0), key, "x");
    let pod_labels: Write = |c, set, key| {
        c.pod_set_set_pod_label(set, key, "x")?;
        c.pod_set_remove_pod_label(set, key)
    };
    let pod_annotations: Write = |c, set, key| {
        c.pod_set_set_pod_annotation(set, key, "x")?;
        c.pod_set_remove_pod_annotation(set, key)
    };
    let fields = [
        ("labels", labels),
        ("annotations", annotations),
        ("pod-sets[node].pod-labels", pod_labels),
        ("pod-sets[node].pod-annotations", pod_annotations),
    ];
    for (field, write) in fields {
        let set_under = |claim: &str, grants: &[&str], key: &str| {
            let plugin = plugin_under(&manifest("p", &[("writes", claim)]), granted(grants));
            let mut call = call(Phase::Transform, &plugin);
            let set = pod_set(&mut call, "node");
            write(&mut call, set, key)
        };
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

#[test]
fn operators_change_the_list_of_obeyed_domains() {
    let listed = ObeyedDomains::new(["a.io", "b.io", "c.io"]);
    let changed = |add: &[&str], remove: &[&str]| {
        let [add, remove] =
            [add, remove].map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
        let changed = listed.changed(&add, &remove);
        changed.domains().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(changed(&[], &[]), ["a.io", "b.io", "c.io"]);
    assert_eq!(
        changed(&["d.io", "a.io"], &["b.io"]),
        ["a.io", "c.io", "d.io"]
    );
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
