//! Every access needs its claim, which is checked on every call.

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
    contract::handle,
    lookup::{LookupKey, ObjectKey},
    plugin::Phase,
    record::{Field, Fields, Owner, PodSet, Record},
};

use crate::common::{
    self, call, call_over, container, manifest, methods::METHODS, missing_claim, mount, plugin,
    pod_set, record, with,
};

const NODE: &str = "pod-sets[node].containers[node]";

#[test]
fn every_method_succeeds_with_its_claims() {
    for method in METHODS {
        let plugin = plugin(&manifest("p", method.claims));
        let mut call = call(method.phase, &plugin);
        (method.run)(&mut call).unwrap_or_else(|fault| panic!("{}: {fault}", method.name));
    }
}

#[test]
fn missing_claim_ends_the_call_and_is_named() {
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
            let (list, claim) = pasted(&message);
            assert!(call.writes().is_empty());
            // What the message prints is what the manifest takes, and what lets the method go.
            let all: Vec<_> = others.into_iter().chain([(list, &*claim)]).collect();
            let plugin = plugin(&manifest("p", &all));
            (method.run)(&mut common::call(method.phase, &plugin))
                .unwrap_or_else(|fault| panic!("{}: {message}: {fault}", method.name));
        }
    }
}

/// The claim that a message says to add, with its list.
fn pasted(message: &str) -> (&'static str, String) {
    let advice = message.split_once("; add `").unwrap().1;
    let (claim, list) = advice.rsplit_once("` to `claims.").unwrap();
    let list = list.strip_suffix("` in the manifest").unwrap();
    let lists = ["reads", "creates", "writes"];
    let list = lists.into_iter().find(|one| *one == list).unwrap();
    (list, serde_json::from_str(claim).unwrap())
}

#[test]
fn suggested_claim_follows_the_spelling_of_existing_claims() {
    type Method = fn(&mut Call, handle::PodSet, handle::Container) -> Result<(), Fault>;
    let put_env: Method = |call, _, node| call.container_put_env(node, "A", "1");
    let put_env_in_words: Method = |call, _, node| call.container_put_env(node, "A[b]", "1");
    let put_label: Method = |call, set, _| call.pod_set_set_pod_label(set, "app", "1");
    let read_keys: Method = |call, _, node| call.container_env_names(node).map(drop);
    let read_all: Method = |call, _, node| call.container_mounts(node).map(drop);
    let put_mount: Method =
        |call, _, node| call.container_put_mount(node, &mount("data", "/data//x/"));
    let config =
        || json!({"job": "node", "nested": {"path": "/data/x"}, "list": ["A"], "a]b": "A"});
    for (others, pod_set_name, method, wanted) in [
        (
            &[][..],
            "node",
            put_env,
            "pod-sets[@nodes].containers[node].env[A]",
        ),
        (
            &[],
            "launcher",
            put_env,
            "pod-sets[launcher].containers[node].env[A]",
        ),
        (
            &[],
            "node",
            put_env_in_words,
            "pod-sets[@nodes].containers[node].env[\"A[b]\"]",
        ),
        (
            &["pod-sets[node].volumes[x]"],
            "node",
            put_env,
            "pod-sets[node].containers[node].env[A]",
        ),
        (
            &["pod-sets[*].volumes[x]"],
            "launcher",
            put_label,
            "pod-sets[*].pod-labels[app]",
        ),
        (
            &["pod-sets[*].containers[@base].args"],
            "node",
            put_env,
            "pod-sets[*].containers[@base].env[A]",
        ),
        (
            &["pod-sets[*].containers[side].args"],
            "node",
            put_env,
            "pod-sets[*].containers[node].env[A]",
        ),
        (
            &["pod-sets[$config./job].volumes[x]"],
            "node",
            put_label,
            "pod-sets[$config./job].pod-labels[app]",
        ),
        (
            &["pod-sets[$config./job].volumes[x]"],
            "launcher",
            put_label,
            "pod-sets[launcher].pod-labels[app]",
        ),
        (
            &[],
            "node",
            put_mount,
            "pod-sets[@nodes].containers[node].mounts[$config./nested/path]",
        ),
        (
            &[],
            "node",
            read_keys,
            "pod-sets[@nodes].containers[node].env[#]",
        ),
        (
            &["pod-sets[*].volumes[x]"],
            "node",
            read_all,
            "pod-sets[*].containers[node].mounts[*]",
        ),
    ] {
        let claims: Vec<_> = others.iter().map(|claim| ("writes", *claim)).collect();
        let run = |claims: &[(&str, &str)]| {
            let plugin = plugin(&manifest("p", claims));
            let mut call = call_over(Phase::Transform, &plugin, record(), 0, config());
            let set = pod_set(&mut call, pod_set_name);
            let node = container(&mut call, pod_set_name, "node");
            method(&mut call, set, node)
        };
        let message = run(&claims).unwrap_err().to_string();
        let (list, claim) = pasted(&message);
        assert_eq!(claim, wanted, "{message}");
        let all: Vec<_> = claims.into_iter().chain([(list, &*claim)]).collect();
        run(&all).unwrap_or_else(|fault| panic!("{message}: {fault}"));
    }
}

/// Reads of the record are claimed for transform only, and what a write claim names may be read.
#[test]
fn reads_after_transform_need_no_claim() {
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
    !["job[", "lookups[", "catalog["]
        .iter()
        .any(|of| path.starts_with(of))
}

fn is_derived(name: &str) -> bool {
    matches!(name, "pod-set.accelerators" | "pod-set.processes")
}

#[test]
fn job_spec_and_lookups_need_claims_in_every_phase() {
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
fn pointer_claim_covers_its_subtree_only() {
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
fn missing_lookups_are_requested_and_secrets_are_withheld() {
    let claims = [("reads", "lookups[*]")];
    let mut call = call(Phase::Build, &plugin(&manifest("p", &claims)));
    assert!(
        call.lookups_get(handle::Lookups(0), "v1", "ConfigMap", "known")
            .unwrap()
            .is_some()
    );
    let key = LookupKey::Object(ObjectKey::new("v1", "ConfigMap", "other"));
    assert_eq!(
        call.lookups_get(handle::Lookups(0), "v1", "ConfigMap", "other"),
        Err(Fault::Missing(key))
    );
    for (version, kind) in [("v1", "Secret"), ("v1", "SECRET"), ("v2", "Secret")] {
        let fault = call.lookups_get(handle::Lookups(0), version, kind, "x");
        let fault = fault.unwrap_err().to_string();
        assert!(fault.contains("cannot look up Secrets"), "{fault}");
    }
    assert!(
        call.lookups_get(
            handle::Lookups(0),
            "v1",
            "ConfigMap",
            "another-runtime-snapshot"
        )
        .unwrap_err()
        .to_string()
        .contains("cannot look up runtime snapshots of TrainJobs")
    );
    // No text passes for another key of the claim, or for another path of the API server.
    for (version, kind, name) in [
        ("v1/ConfigMap/", "x", "y"),
        ("v1", "ConfigMap", "../secrets/x"),
        ("v1", "ConfigMap", "*"),
        ("v1", "ConfigMap", ".."),
        ("v1", "ConfigMap", ""),
        ("v1", "ConfigMap/a", "x"),
        ("v1", "CONFIGMAP", "x"),
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
fn claim_on_a_kind_allows_asking_whether_it_is_served() {
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
fn record_is_writable_in_transform_only() {
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
        assert_eq!(fault.to_string(), format!("cannot emit objects in {phase}"));
    }
}

#[test]
fn base_is_readable_without_claims_and_read_only() {
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
fn added_containers_are_writable_by_their_plugin_only() {
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

/// Claims on the containers of the base do not match those that plugins add, and therefore do not order the plugins.
#[test]
fn claims_on_base_containers_exclude_added_ones() {
    let claim = "pod-sets[*].containers[@base].limits[*]";
    let plugin = plugin(&manifest("q", &[("writes", claim)]));
    let creator = common::plugin(&manifest(
        "p",
        &[("creates", "pod-sets[*].containers[helper]")],
    ));
    let mut created = call(Phase::Transform, &creator);
    let set = pod_set(&mut created, "node");
    created
        .pod_set_add_container(set, "helper", "image")
        .unwrap();
    let record = created.finish().record;
    let mut call = call_over(Phase::Transform, &plugin, record, 2, json!({}));
    let set = pod_set(&mut call, "node");
    assert_eq!(call.pod_set_container(set, "helper"), Ok(None));
    for name in ["node", "side"] {
        let of_runtime = container(&mut call, "node", name);
        assert!(call.container_limits(of_runtime).is_ok());
        call.container_set_limit(of_runtime, "cpu", "1").unwrap();
    }
    let node = container(&mut call, "node", "node");
    let fault = call.container_set_image(node, "x").unwrap_err();
    assert_eq!(missing_claim(&fault).0, "writes");
}

/// Whether another plugin's container is there depends on the order, so that only claims that make an order show it.
#[test]
fn other_plugins_containers_are_visible_only_with_a_claim() {
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

/// An init container named `node` has no devices that count. A container that another plugin added does: the claim of the devices orders
/// the plugin after it.
#[test]
fn devices_are_those_of_the_node_container() {
    let claims = [("reads", "pod-sets[*].devices[*]")];
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
    for (list, home, devices) in [
        (Field::Containers, Owner::Runtime, 1),
        (Field::InitContainers, Owner::Runtime, 0),
        (Field::Containers, creators, 1),
    ] {
        let plugin = plugin(&manifest("p", &claims));
        let record = with_node(list, home);
        let mut call = call_over(Phase::Transform, &plugin, record, 1, json!({}));
        let set = pod_set(&mut call, "empty");
        let counted = call.pod_set_devices(set).unwrap();
        assert_eq!(counted.len(), devices, "{list} {home:?}");
        let accelerators = u32::try_from(devices).unwrap() * 8;
        assert_eq!(call.pod_set_accelerators(set), Ok(Some(accelerators)));
    }
    // Without a number of processes and accelerators, CPUs are counted, which need claims of their own.
    let mut call = call(Phase::Transform, &plugin(&manifest("p", &claims)));
    let set = pod_set(&mut call, "node");
    assert!(call.pod_set_processes(set).is_err());
}

#[test]
fn only_reserved_names_may_replace_other_values() {
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
fn names_can_be_reserved_conditionally() {
    let claims = [("writes", "pod-sets[*].containers[*].env[*]")];
    let reserved = json!([
        {"names": ["MODE"], "when": {"at": "/kind", "in": ["a", ""]}},
        {"names": ["MODE"], "when": "/strict"},
    ]);
    let plugin = plugin(&with(
        manifest("p", &claims),
        json!({"reservedEnv": reserved}),
    ));
    for (config, is_reserved) in [
        (json!({}), false),
        (json!({"kind": "a"}), true),
        (json!({"kind": ""}), true),
        (json!({"kind": "b"}), false),
        (json!({"kind": true, "strict": "a"}), false),
        (json!({"kind": "b", "strict": true}), true),
        (json!({"strict": false}), false),
    ] {
        let mut call = call_over(Phase::Transform, &plugin, record(), 0, config.clone());
        let node = container(&mut call, "node", "node");
        let put = call.container_put_env(node, "MODE", "mine");
        assert_eq!(put.is_ok(), is_reserved, "{config}: {put:?}");
    }
}

#[test]
fn variables_in_claims_take_the_train_jobs_value() {
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
fn journal_records_the_writer_and_the_reason() {
    let mut call = call(
        Phase::Transform,
        &plugin(&manifest("p", &[("writes", "labels[*]")])),
    );
    call.context_because(Call::CONTEXT, "since\u{7} it is so")
        .unwrap();
    call.info_set_label(handle::Info(0), "team", "x").unwrap();
    call.context_because(Call::CONTEXT, "").unwrap();
    call.info_set_label(handle::Info(0), "new", "y").unwrap();
    let writes = call.finish().writes;
    assert_eq!(writes[0].reason.as_deref(), Some(r"since\u{7} it is so"));
    assert_eq!(
        (writes[0].change.owner, writes[1].reason.as_deref()),
        (Owner::Plugin(1), None)
    );
}

/// MPI's launcher is not a node, although it can have the trainer's label.
#[test]
fn nodes_are_the_pod_sets_that_num_nodes_counts() {
    let claim = "pod-sets[@nodes].containers[node].env[A]";
    let plugin = plugin(&manifest("p", &[("writes", claim)]));
    let mut call = call_over(Phase::Transform, &plugin, record(), 0, json!({}));
    let put = |call: &mut Call, name: &str| {
        let node = container(call, name, "node");
        call.container_put_env(node, "A", "1")
    };
    put(&mut call, "node").unwrap();
    let refused = put(&mut call, "launcher").unwrap_err().to_string();
    assert!(refused.contains("no claim allows it"), "{refused}");
}
