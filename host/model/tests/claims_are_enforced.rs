//! Every touch needs its claim, a write its grant, and both are asked on every call.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::type_complexity,
    clippy::unwrap_used
)]

use crate::common::{
    self, call, call_over, container, granted, manifest, missing_claim, plugin, plugin_under,
    pod_set, record, with,
};
use std::sync::Arc;

use serde_json::json;
use trainyard_model::{
    call::{Call, CallInputs, Fault},
    claims::{ClaimError, ClaimPath, Touch},
    contract::handle,
    job::Job,
    lookup::LookupKey,
    object::Content,
    plugin::{Plugin, PluginError, Settings},
    policy::Phase,
    record::{Field, Fields, Owner, Place, PlaceScope, PodSet, Record},
    value::{Devices, Mount, PodResourceClaim, Port},
};

use crate::common::methods::METHODS;

const NODE: &str = "pod-sets[node].containers[node]";

#[test]
fn every_method_goes_with_its_claims() {
    for method in METHODS {
        let plugin = plugin(&manifest("p", method.claims));
        let mut call = call(method.phase, &plugin);
        (method.run)(&mut call).unwrap_or_else(|fault| panic!("{}: {fault}", method.name));
    }
}

#[test]
fn without_one_of_its_claims_a_method_ends_the_call_with_the_claim_that_is_missing() {
    for method in METHODS {
        for missing in method.claims {
            let others: Vec<_> = method
                .claims
                .iter()
                .copied()
                .filter(|claim| claim != missing)
                .collect();
            let mut call = call(method.phase, &plugin(&manifest("p", &others)));
            let fault = (method.run)(&mut call).unwrap_err();
            let (list, path) = missing_claim(&fault);
            assert_eq!((list, path.as_str()), *missing, "{}", method.name);
            let message = fault.to_string();
            let advice = format!("the manifest needs `{path}` in `claims.{list}`");
            assert!(message.ends_with(&advice), "{message}");
            assert!(call.changes().is_empty());
            // What the message prints is what the manifest takes.
            path.parse::<ClaimPath>().unwrap();
        }
    }
}

/// Reads of the record are claimed for transform only, and what a write claim names may be read.
#[test]
fn reads_need_no_claim_after_transform() {
    let reads = METHODS.iter().filter(|m| {
        m.claims
            .iter()
            .all(|(list, path)| *list == "reads" && is_of_record(path))
    });
    assert!(reads.clone().count() > 20);
    for method in reads {
        for phase in [Phase::Build, Phase::Check] {
            (method.run)(&mut call(phase, &plugin(&manifest("p", &[])))).unwrap();
        }
        let keyed = method.claims.iter().all(|(_, path)| !path.ends_with("[#]"));
        if keyed && !method.name.contains("devices") && !is_derived(method.name) {
            let writes: Vec<_> = method
                .claims
                .iter()
                .map(|(_, path)| ("writes", *path))
                .collect();
            (method.run)(&mut call(
                Phase::Transform,
                &plugin(&manifest("p", &writes)),
            ))
            .unwrap();
        }
    }
}

fn is_of_record(path: &str) -> bool {
    !path.starts_with("job[") && !path.starts_with("lookups[")
}

fn is_derived(name: &str) -> bool {
    matches!(name, "pod-set.accelerators" | "pod-set.processes")
}

#[test]
fn the_job_spec_and_lookups_need_their_claims_in_every_phase() {
    for method in METHODS
        .iter()
        .filter(|m| !m.claims.iter().any(|(_, path)| is_of_record(path)))
    {
        for phase in Phase::ALL {
            (method.run)(&mut call(phase, &plugin(&manifest("p", method.claims)))).unwrap();
            let fault = (method.run)(&mut call(phase, &plugin(&manifest("p", &[])))).unwrap_err();
            assert_eq!(missing_claim(&fault).1, method.claims[0].1);
        }
    }
}

#[test]
fn a_pointer_includes_what_is_below_it_and_no_more() {
    let read = |claim: &str, at: &str| {
        let mut call = call(Phase::Check, &plugin(&manifest("p", &[("reads", claim)])));
        let spec = call.job_spec(handle::Job(0)).unwrap();
        call.document_json(spec, at)
    };
    assert_eq!(
        read("job[/trainer]", "/trainer/numNodes"),
        Ok(Some("4".to_owned()))
    );
    assert_eq!(
        read("job[\"\"]", "/trainer/numNodes"),
        Ok(Some("4".to_owned()))
    );
    for at in ["", "/train", "/trainers", "/trainer2/x"] {
        let fault = read("job[/trainer]", at).unwrap_err();
        let (list, path) = missing_claim(&fault);
        assert_eq!(list, "reads");
        assert!(
            read(&path, at).is_ok(),
            "the missing claim is printed as the manifest takes it: {path}"
        );
    }
    for no_pointer in ["trainer", "/a~b", "/a~"] {
        let fault = read("job[\"\"]", no_pointer).unwrap_err();
        assert!(fault.to_string().contains("RFC 6901"), "{fault}");
    }
}

#[test]
fn the_host_asks_for_what_it_does_not_hold_and_gives_no_secrets() {
    let claims = [
        ("reads", "lookups[v1/ConfigMap/*]"),
        ("reads", "lookups[v1/Secret/*]"),
    ];
    let mut call = call(Phase::Build, &plugin(&manifest("p", &claims)));
    assert!(
        call.lookups_get(handle::Lookups(0), "v1", "ConfigMap", "known")
            .unwrap()
            .is_some()
    );
    let key = LookupKey::Object {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: "other".to_owned(),
    };
    assert_eq!(
        call.lookups_get(handle::Lookups(0), "v1", "ConfigMap", "other"),
        Err(Fault::Missing(key))
    );
    assert!(
        call.lookups_get(handle::Lookups(0), "v1", "Secret", "x")
            .unwrap_err()
            .to_string()
            .contains("Secrets are never")
    );
    assert!(
        call.lookups_get(
            handle::Lookups(0),
            "v1",
            "ConfigMap",
            "another-runtime-snapshot"
        )
        .unwrap_err()
        .to_string()
        .contains("runtime snapshots of TrainJobs are never")
    );
    // No text passes for another key of the claim, or for another path of the API server.
    for (version, kind, name) in [
        ("v1/ConfigMap/", "x", "y"),
        ("v1", "ConfigMap", "../secrets/x"),
        ("v1", "ConfigMap", "*"),
        ("v1", "ConfigMap", ".."),
        ("v1", "ConfigMap", ""),
        ("v1", "ConfigMap/a", "x"),
        ("a/b/c", "Kind", "x"),
    ] {
        let fault = call
            .lookups_get(handle::Lookups(0), version, kind, name)
            .unwrap_err();
        assert!(
            matches!(fault, Fault::Argument(_)),
            "{version} {kind} {name}: {fault}"
        );
    }
}

#[test]
fn a_claim_on_any_object_of_a_kind_includes_asking_whether_it_is_served() {
    for claim in [
        "lookups[v1/ConfigMap/*]",
        "lookups[v1/ConfigMap/#]",
        "lookups[*]",
    ] {
        let mut call = call(
            Phase::Transform,
            &plugin(&manifest("p", &[("reads", claim)])),
        );
        assert_eq!(
            call.lookups_served(handle::Lookups(0), "v1", "ConfigMap"),
            Ok(true),
            "{claim}"
        );
    }
    let mut call = call(
        Phase::Transform,
        &plugin(&manifest("p", &[("reads", "lookups[v1/ConfigMap/a*]")])),
    );
    let fault = call
        .lookups_all(handle::Lookups(0), "v1", "ConfigMap")
        .unwrap_err();
    assert_eq!(
        missing_claim(&fault),
        ("reads", "lookups[v1/ConfigMap/*]".to_owned())
    );
}

#[test]
fn writes_to_the_record_are_for_transform_only() {
    let writes = METHODS.iter().filter(|m| {
        m.phase == Phase::Transform && m.claims.iter().any(|(list, _)| *list != "reads")
    });
    for method in writes {
        for phase in [Phase::Build, Phase::Check] {
            let fault =
                (method.run)(&mut call(phase, &plugin(&manifest("p", method.claims)))).unwrap_err();
            assert!(
                matches!(fault, Fault::WrongPhase { .. }),
                "{} in {phase}: {fault}",
                method.name
            );
        }
    }
    let plugin = plugin(&manifest("p", &[("writes", "objects[v1/ConfigMap/-a]")]));
    for phase in [Phase::Transform, Phase::Check] {
        let fault = call(phase, &plugin)
            .objects_emit(handle::Objects(0), "v1", "ConfigMap", "-a", None)
            .unwrap_err();
        assert_eq!(
            fault.to_string(),
            format!("it may not emit objects in {phase}")
        );
    }
}

#[test]
fn base_is_read_without_claims_and_never_written() {
    let writes = [
        ("writes", "labels[*]"),
        ("writes", "pod-sets[*].containers[*].env[*]"),
        ("writes", "pod-sets[*].volumes[*]"),
    ];
    let mut call = call(Phase::Transform, &plugin(&manifest("p", &writes)));
    let (base, info) = (
        call.context_base(Call::CONTEXT).unwrap(),
        call.context_info(Call::CONTEXT).unwrap(),
    );
    let set = call.info_pod_set(base, "node").unwrap().unwrap();
    let containers = call.pod_set_containers(set).unwrap();
    let node = call.pod_set_container(set, "node").unwrap().unwrap();
    assert!(containers.contains(&node));
    call.info_set_label(info, "team", "changed").unwrap();
    assert_eq!(call.info_label(base, "team"), Ok(Some("ml".to_owned())));
    assert_eq!(
        call.container_image(node),
        Ok(Some("registry.example.com/base:1".to_owned()))
    );
    assert_eq!(call.pod_set_processes(set), Ok(Some(8)));
    for written in [
        call.info_set_label(base, "a", "b"),
        call.container_put_env(node, "A", "b"),
        call.pod_set_put_empty_dir(set, "x", None, None),
        call.container_set_image(node, "x"),
    ] {
        assert_eq!(written, Err(Fault::BaseWritten));
    }
    assert_eq!(
        call.pod_set_add_container(set, "x", "y"),
        Err(Fault::BaseWritten)
    );
}

#[test]
fn a_handle_to_nothing_ends_the_call() {
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
fn what_a_plugin_added_it_may_write_and_no_other_plugin() {
    let claims = [("creates", "pod-sets[node].init-containers[fetch]")];
    let mut own = call(Phase::Transform, &plugin(&manifest("p", &claims)));
    let set = pod_set(&mut own, "node");
    let added = own
        .pod_set_add_init_container(set, "fetch", "image")
        .unwrap();
    own.container_put_env(added, "A", "1").unwrap();
    own.container_set_command(added, &["fetch".to_owned()])
        .unwrap();
    own.container_place_first(added).unwrap();
    assert_eq!(own.container_env_names(added), Ok(vec!["A".to_owned()]));
    assert_eq!(own.container_created_by_me(added), Ok(true));
    assert!(
        own.pod_set_add_init_container(set, "fetch", "image")
            .is_err(),
        "the name is taken"
    );
    let setup = container(&mut own, "node", "setup");
    assert!(
        matches!(own.container_place_first(setup), Err(Fault::Argument(_))),
        "it is the runtime's"
    );

    let record = own.finish().record;
    let other = plugin(&manifest(
        "q",
        &[("reads", "pod-sets[node].init-containers[fetch].image")],
    ));
    let mut other = call_over(Phase::Transform, &other, record, 2, json!({}));
    let fetch = container(&mut other, "node", "fetch");
    assert_eq!(other.container_created_by_me(fetch), Ok(false));
    let fault = other.container_put_env(fetch, "A", "2").unwrap_err();
    assert_eq!(
        missing_claim(&fault),
        (
            "writes",
            "pod-sets[node].init-containers[fetch].env[A]".to_owned()
        )
    );
}

/// Whether another plugin's container is there depends on the order, so that only claims that make an order show it.
#[test]
fn another_plugins_container_is_in_sight_of_a_claim_only() {
    let creator = plugin(&manifest(
        "p",
        &[("creates", "pod-sets[*].containers[helper]")],
    ));
    let mut created = call(Phase::Transform, &creator);
    let set = pod_set(&mut created, "node");
    created
        .pod_set_add_container(set, "helper", "image")
        .unwrap();
    let record = created.finish().record;
    for (claims, seen) in [
        (vec![], false),
        (vec![("reads", "pod-sets[*].containers[node].image")], false),
        (
            vec![("reads", "pod-sets[launcher].containers[helper].image")],
            false,
        ),
        (vec![("reads", "pod-sets[*].init-containers[#]")], false),
        (vec![("reads", "pod-sets[*].containers[#]")], true),
        (vec![("reads", "pod-sets[*].containers[helper]")], true),
        (
            vec![("writes", "pod-sets[@trainer].containers[*].env[X]")],
            true,
        ),
    ] {
        let plugin = plugin(&manifest("q", &claims));
        for (phase, seen) in [(Phase::Transform, seen), (Phase::Check, true)] {
            let mut call = call_over(phase, &plugin, record.clone(), 2, json!({}));
            let set = pod_set(&mut call, "node");
            assert_eq!(
                call.pod_set_container(set, "helper").unwrap().is_some(),
                seen,
                "{claims:?} in {phase}"
            );
            assert!(call.pod_set_container(set, "node").unwrap().is_some());
        }
    }
}

fn load(claims: &[(&str, &str)], grants: &[&str]) -> Result<Plugin, PluginError> {
    Plugin::new(
        common::parsed(&manifest("p", claims)),
        "native",
        granted(grants),
    )
}

#[test]
fn what_the_default_does_not_name_needs_a_grant() {
    for field in Field::ALL {
        let path = match field {
            Field::Objects => "objects[v1/ConfigMap/-a]".to_owned(),
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
fn a_grant_allows_what_it_covers() {
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
fn claims_that_no_plugin_can_have_are_refused_whatever_is_granted() {
    let impossible = [
        ("reads", "objects[v1/ConfigMap/-a]", "not read"),
        ("creates", "pod-sets[*].volumes[a]", "only containers"),
        ("writes", "pod-sets[*].containers[a]", "`creates`"),
        ("writes", "labels[#]", "can't be written"),
        ("creates", "pod-sets[*].containers[#]", "can't be written"),
        ("writes", "job[/trainer]", "the host's"),
        ("writes", "objects[*]", "name version, kind"),
        ("writes", "objects[v1/ConfigMap/a]", "begins with `-`"),
        ("writes", "objects[v1/Pod/-a]", "no plugin emits a Pod"),
        (
            "writes",
            "objects[rbac.authorization.k8s.io/v1/RoleBinding/-a]",
            "no plugin emits a RoleBinding",
        ),
        ("writes", "objects[v1/ServiceAccount/-a]", "no plugin emits"),
        ("writes", "objects[v1/Secret/-a]", "not supported yet"),
    ];
    for (list, path, problem) in impossible {
        let manifest = common::parsed(&manifest("p", &[(list, path)]));
        let error = Plugin::new(manifest, "native", Settings::built_in()).unwrap_err();
        assert!(error.to_string().contains(problem), "{path}: {error}");
    }
    let all: Vec<_> = impossible
        .iter()
        .map(|(list, path, _)| (*list, *path))
        .collect();
    let error = Plugin::new(
        common::parsed(&manifest("p", &all)),
        "native",
        Settings::built_in(),
    )
    .unwrap_err();
    let PluginError::Claims { errors, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(errors.len(), impossible.len(), "all are told at once");
}

#[test]
fn as_many_claims_as_bits_count_and_no_more() {
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
    let error = Plugin::new(
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

/// A plugin under the default grants, with claims on all volumes and mounts.
fn guest() -> Call {
    let claims = [
        ("writes", "pod-sets[*].volumes[*]"),
        ("writes", "pod-sets[*].containers[*].mounts[*]"),
        ("writes", "objects[v1/ConfigMap/-a]"),
    ];
    call(
        Phase::Transform,
        &plugin_under(&manifest("p", &claims), Settings::default()),
    )
}

fn mount(volume: &str, path: &str) -> Mount {
    Mount {
        volume: volume.to_owned(),
        path: path.to_owned(),
        read_only: true,
        ..Mount::default()
    }
}

#[test]
fn a_host_port_needs_a_grant() {
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
        Err(Fault::Argument("the host port is 0".to_owned()))
    );
    let at = |address: &str| Port {
        host_ip: Some(address.to_owned()),
        ..plain.clone()
    };
    assert_eq!(
        free.container_put_port(node, &at("node-1")),
        Err(Fault::Argument("`node-1` is no IP address".to_owned()))
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

#[test]
fn a_mount_is_one_that_kubernetes_takes() {
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
    for (wrong, told) in [
        (
            Mount {
                sub_path: text("a"),
                sub_path_expr: text("b"),
                ..plain.clone()
            },
            "there is both a `sub-path` and a `sub-path-expr`; leave out one",
        ),
        (
            Mount {
                sub_path: text("/a"),
                ..plain.clone()
            },
            "`sub-path` is `/a`, and no relative path without `..`",
        ),
        (
            Mount {
                sub_path_expr: text("a/../b"),
                ..plain.clone()
            },
            "`sub-path-expr` is `a/../b`, and no relative path without `..`",
        ),
        (
            Mount {
                mount_propagation: text("Both"),
                ..plain.clone()
            },
            "`mount-propagation` is `Both`, which is none of None, HostToContainer, Bidirectional",
        ),
        (
            Mount {
                recursive_read_only: text("Always"),
                ..plain.clone()
            },
            "`recursive-read-only` is `Always`, which is none of Disabled, IfPossible, Enabled",
        ),
        (
            Mount {
                recursive_read_only: text("Enabled"),
                read_only: false,
                ..plain.clone()
            },
            "a recursive read-only mount is not read-only, or has a mount propagation",
        ),
    ] {
        let fault = call.container_put_mount(node, &wrong).unwrap_err();
        assert_eq!(fault, Fault::Argument(told.to_owned()));
    }
}

#[test]
fn without_a_grant_volumes_and_mounts_are_the_plugins_own() {
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
        assert!(
            fault
                .to_string()
                .contains(&format!("grants: [\"{place}\"]")),
            "{fault}"
        );
        let claims = [
            ("writes", "pod-sets[*].volumes[*]"),
            ("writes", "pod-sets[*].containers[*].mounts[*]"),
        ];
        let mut free = common::call(Phase::Transform, &plugin(&manifest("p", &claims)));
        write(&mut free, set, node).unwrap();
    }
}

#[test]
fn a_config_map_of_its_own_is_one_that_the_plugin_may_emit() {
    let mut call = guest();
    let set = pod_set(&mut call, "node");
    let fault = call
        .pod_set_put_own_config_map(set, "x", "-other", None, &[])
        .unwrap_err();
    assert_eq!(
        missing_claim(&fault),
        ("writes", "objects[v1/ConfigMap/-other]".to_owned())
    );
    for suffix in ["", "other-job", "-A", "-a/b"] {
        let fault = call
            .pod_set_put_own_config_map(set, "x", suffix, None, &[])
            .unwrap_err();
        assert!(matches!(fault, Fault::Argument(_)), "{suffix}: {fault}");
    }
}

/// TrainJob `a` with the suffix `-b-runtime-snapshot` would have the name of TrainJob `a-b`'s snapshot.
#[test]
fn names_that_the_host_keeps_are_refused_as_claims_and_as_names() {
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
            assert!(transform.changes().is_empty());
        }
    }
}

/// Whoever may write below `/data` may not write beside it by another spelling.
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
        let place = Place {
            scope: PlaceScope::Container(id),
            field: Field::Mounts,
            key: "/data//sub/".into(),
        };
        record.write(place, Some(written.into()), Owner::Patch, None);
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
        let change = call.changes().last().unwrap();
        assert_eq!(&*change.place.key, at, "{path}");
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
        let change = free.changes().last().unwrap();
        assert_eq!(&*change.place.key, "/data//sub/", "it takes its place");
        assert_eq!(change.old.as_ref().unwrap().owner, Owner::Patch);
    }
}

/// An init container named `node` is none whose devices count, nor is a container that another plugin may have added or not.
#[test]
fn devices_are_counted_on_the_container_that_the_plugin_may_see() {
    let asker = [
        ("reads", "pod-sets[*].devices[*]"),
        ("reads", "pod-sets[*].containers[node].requests[*]"),
        ("reads", "pod-sets[*].containers[node].limits[*]"),
    ];
    let blind = [("reads", "pod-sets[*].devices[*]")];
    let with_node = |list: Field, home: Owner| {
        let mut record = Record::new("llama", "llama", "cluster.local");
        record.pod_sets.push(PodSet::new("empty"));
        let mut fields = Fields::default();
        fields.load(Field::Limits, "nvidia.com/gpu", "8".into());
        if home == Owner::Runtime {
            record.load_container(0, list, "node", fields);
            return record;
        }
        let creator = plugin(&manifest(
            "creator",
            &[("creates", "pod-sets[*].containers[node]")],
        ));
        let mut call = call_over(Phase::Transform, &creator, record, 2, json!({}));
        let set = pod_set(&mut call, "empty");
        let added = call.pod_set_add_container(set, "node", "image").unwrap();
        call.container_set_limit(added, "nvidia.com/gpu", "8")
            .unwrap();
        call.finish().record
    };
    let creators = Owner::Plugin(2);
    for (list, home, claims, devices) in [
        (Field::Containers, Owner::Runtime, &asker[..], 1),
        (Field::InitContainers, Owner::Runtime, &asker[..], 0),
        (Field::InitContainers, Owner::Runtime, &blind[..], 0),
        (Field::Containers, creators, &asker[..], 1),
        (Field::Containers, creators, &blind[..], 0),
    ] {
        let plugin = plugin(&manifest("p", claims));
        let record = with_node(list, home);
        let mut call = call_over(Phase::Transform, &plugin, record, 1, json!({}));
        let set = pod_set(&mut call, "empty");
        let counted = call.pod_set_devices(set).unwrap();
        assert_eq!(counted.len(), devices, "{list} {home:?} {claims:?}");
        assert_eq!(
            call.pod_set_processes(set),
            Ok(Some(if devices == 1 { 8 } else { 1 }))
        );
    }
    // Without the claim on what the runtime's node container asks for, the call ends.
    let mut call = call(Phase::Transform, &plugin(&manifest("p", &blind)));
    let set = pod_set(&mut call, "node");
    assert!(call.pod_set_devices(set).is_err());
}

#[test]
fn lookups_beyond_a_config_map_by_its_name_need_a_grant() {
    for (claim, by_default) in [
        ("lookups[v1/ConfigMap/tracing]", true),
        ("lookups[v1/ConfigMap/*]", false),
        ("lookups[v1/ConfigMap/a*]", false),
        ("lookups[\"v1/ConfigMap/*\"]", false),
        ("lookups[v1/ConfigMap/#]", false),
        ("lookups[v1/ConfigMap/]", false),
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
            let grant = grants.split_once("]` in the policy file").unwrap().0;
            let grant = grant.trim_matches(['\'']).trim_start_matches('"');
            assert!(
                grant
                    .trim_end_matches('"')
                    .starts_with(&claim[..claim.len() - 2]),
                "{message}"
            );
        }
    }
}

#[test]
fn node_sets_need_a_grant_of_the_counts_that_they_set() {
    let sets = json!([{"podSet": "node"}, {"podSet": "launcher", "when": "/on"}]);
    let manifest = with(manifest("p", &[]), json!({"nodeSets": sets}));
    let load = |grants: &[&str]| Plugin::new(common::parsed(&manifest), "native", granted(grants));
    let (node, launcher) = ("pod-sets[node].count", "pod-sets[launcher].count");
    let error = load(&[node]).unwrap_err().to_string();
    assert!(
        error.ends_with(&format!(
            "its `nodeSets` let `numNodes` set `{launcher}`, which is not granted; the operator allows it by `grants: [\"{launcher}\"]` in the policy file"
        )),
        "{error}"
    );
    let PluginError::Claims { errors, .. } = load(&[]).unwrap_err() else {
        panic!()
    };
    assert_eq!(errors.len(), 2);
    load(&[node, launcher]).unwrap();
    load(&["pod-sets[*].count"]).unwrap();
    Plugin::new(common::parsed(&manifest), "native", Settings::built_in()).unwrap();
}

#[test]
fn objects_are_of_the_kind_that_is_claimed() {
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
    let body = call.object_set_body(object, "{}");
    assert!(matches!(body, Err(Fault::Argument(_))), "{body:?}");
    let objects = call.finish().objects;
    let Content::ConfigMap(map) = &objects[0].content else {
        panic!("{objects:?}")
    };
    assert_eq!(
        (objects.len(), objects[0].name.as_str(), &*map.data["a.sh"]),
        (1, "llama-a", "echo hi")
    );
}

#[test]
fn objects_of_other_kinds_need_a_grant_and_have_a_body() {
    let claim = "objects[resource.k8s.io/v1/ResourceClaimTemplate/-*]";
    let manifest = manifest("p", &[("writes", claim)]);
    let error = Plugin::new(common::parsed(&manifest), "native", granted(&[])).unwrap_err();
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
fn no_plugin_emits_what_carries_power() {
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
        let built_in = Plugin::new(common::parsed(&manifest), "native", Settings::built_in());
        assert!(built_in.is_err(), "{claim}");
    }
}

#[test]
fn devices_are_put_for_sources_that_are_not_the_hosts() {
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
fn a_resource_claim_has_one_source() {
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
fn json_is_parsed_within_the_meter() {
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
fn values_of_others_are_replaced_by_reserved_names_only() {
    let claims = [("writes", "pod-sets[*].containers[*].env[*]")];
    let plain = plugin(&manifest("p", &claims));
    let mut call = call(Phase::Transform, &plain);
    let node = container(&mut call, "node", "node");
    call.container_default_env(node, "MODE", "mine").unwrap();
    assert_eq!(
        call.container_env(node, "MODE"),
        Ok(Some("plain".to_owned())),
        "it yields"
    );
    for write in [
        call.container_put_env(node, "MODE", "mine"),
        call.container_remove_env(node, "MODE"),
    ] {
        let fault = write.unwrap_err();
        assert!(
            matches!(
                &fault,
                Fault::NotReserved {
                    owner: "runtime",
                    ..
                }
            ),
            "{fault}"
        );
        assert!(
            fault.to_string().contains(&format!("`{NODE}.env[MODE]`")),
            "{fault}"
        );
    }
    let reserving = plugin(&with(
        manifest("p", &claims),
        json!({"reservedEnv": ["MODE"]}),
    ));
    let mut call = common::call(Phase::Transform, &reserving);
    let node = container(&mut call, "node", "node");
    call.container_put_env(node, "MODE", "mine").unwrap();
    assert_eq!(
        call.container_env_owner(node, "MODE"),
        Ok(Some("plugin".to_owned()))
    );
    for name in ["", "A=B", "A\0"] {
        assert!(
            matches!(
                call.container_put_env(node, name, "x"),
                Err(Fault::Argument(_))
            ),
            "{name:?}"
        );
    }
}

#[test]
fn a_claim_by_a_variable_means_the_jobs_own_value() {
    let claims = [
        (
            "writes",
            "pod-sets[$config./where].containers[node].mounts[$config./path]",
        ),
        ("writes", "pod-sets[*].pod-labels[$job]"),
    ];
    let plugin = plugin(&manifest("p", &claims));
    let config = json!({"where": "node", "path": "/x"});
    let mut call = call_over(Phase::Transform, &plugin, record(), 0, config);
    let (set, node) = (
        pod_set(&mut call, "node"),
        container(&mut call, "node", "node"),
    );
    call.pod_set_set_pod_label(set, "llama", "1").unwrap();
    call.container_put_mount(node, &mount("data", "/x"))
        .unwrap();
    let launcher = container(&mut call, "launcher", "node");
    for (fault, path) in [
        (
            call.pod_set_set_pod_label(set, "other", "1"),
            "pod-sets[node].pod-labels[other]",
        ),
        (
            call.container_put_mount(node, &mount("data", "/y")),
            "pod-sets[node].containers[node].mounts[/y]",
        ),
        (
            call.container_put_mount(launcher, &mount("data", "/x")),
            "pod-sets[launcher].containers[node].mounts[/x]",
        ),
    ] {
        assert_eq!(
            missing_claim(&fault.unwrap_err()),
            ("writes", path.to_owned())
        );
    }
    let mut without = call_over(Phase::Transform, &plugin, record(), 0, json!({}));
    let node = container(&mut without, "node", "node");
    assert!(
        without
            .container_put_mount(node, &mount("data", "/x"))
            .is_err(),
        "without a value the claim means nothing"
    );
}

#[test]
fn a_fault_can_not_steer_a_terminal() {
    let mut call = call(Phase::Transform, &plugin(&manifest("p", &[])));
    let node = container(&mut call, "node", "node");
    let name = format!("A\u{1b}[31m\u{202e}{}", "x".repeat(5000));
    let fault = call.container_put_env(node, &name, "1").unwrap_err();
    assert!(
        matches!(
            &fault,
            Fault::NotClaimed {
                touch: Touch::Write,
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
    assert_eq!(call.finish().changes.len(), 0);
}

#[test]
fn who_wrote_and_why_stands_in_the_journal() {
    let mut call = call(
        Phase::Transform,
        &plugin(&manifest("p", &[("writes", "labels[*]")])),
    );
    call.context_because(Call::CONTEXT, "since\u{7} it is so")
        .unwrap();
    call.info_set_label(handle::Info(0), "team", "x").unwrap();
    call.context_because(Call::CONTEXT, "").unwrap();
    call.info_set_label(handle::Info(0), "new", "y").unwrap();
    let changes = call.finish().changes;
    assert_eq!(changes[0].reason.as_deref(), Some(r"since\u{7} it is so"));
    assert_eq!(
        (changes[0].owner, changes[1].reason.as_deref()),
        (Owner::Plugin(1), None)
    );
}
