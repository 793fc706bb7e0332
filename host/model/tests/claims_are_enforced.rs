//! Every access needs its claim, which is checked on every call.

use std::sync::Arc;

use serde_json::json;
use trainyard_model::{
    call::{Call, CallInputs, Fault},
    claims::ClaimPath,
    contract::handle,
    lookup::{LookupAnswer, LookupKey, Lookups, ObjectKey},
    plugin::Phase,
    record::{Field, Fields, Owner, PodSet, Record},
};

use crate::common::{
    call, call_over, call_with, container, job, manifest,
    methods::{METHODS, Method, On, node, port},
    missing_claim, mount, plugin, pod_set, record, with, with_helper,
};

const NODE: &str = "pod-sets[node].containers[node]";

fn try_with(method: &Method, phase: Phase, claims: &[(&str, &str)], on: On) -> Result<(), Fault> {
    (method.run)(&mut call_with(phase, claims), on)
}

#[test]
fn methods_need_each_of_their_claims_and_no_others() {
    for method in METHODS {
        let (name, claims) = (method.name, method.all_claims());
        let all = try_with(method, method.phase, &claims, On::Record);
        all.unwrap_or_else(|fault| panic!("{name}: {fault}"));
        for missing in method.claims {
            let mut others = claims.clone();
            others.retain(|claim| claim != missing);
            let mut call = call_with(method.phase, &others);
            let fault = (method.run)(&mut call, On::Record).unwrap_err();
            let (list, path) = missing_claim(&fault);
            assert_eq!((list, path.as_str()), *missing, "{name}");
            assert!(call.writes().is_empty());
            // The manifest takes what the message prints, and then the method succeeds.
            let message = fault.to_string();
            let (list, claim) = pasted(&message);
            others.push((list, &claim));
            let all = try_with(method, method.phase, &others, On::Record);
            all.unwrap_or_else(|fault| panic!("{name}: {message}: {fault}"));
        }
    }
}

/// Claims of other fields, pod sets and containers than those of a path.
fn beside(path: &str) -> Vec<String> {
    let wide = [
        "labels[*]",
        "pod-sets[*].pod-labels[*]",
        "pod-sets[*].containers[*].image",
        "pod-sets[*].init-containers[*].image",
    ];
    let claim: ClaimPath = path.parse().unwrap();
    let mut others = wide.map(str::to_owned).to_vec();
    others.retain(|other| !other.parse::<ClaimPath>().unwrap().overlaps(&claim));
    for (part, other) in [
        ("pod-sets[node]", "pod-sets[launcher]"),
        ("s[node].", "s[other]."),
    ] {
        others.extend(path.contains(part).then(|| path.replace(part, other)));
    }
    others
}

#[test]
fn claims_of_other_fields_and_places_allow_nothing() {
    for method in METHODS {
        for missing in method.claims {
            let beside = beside(missing.1);
            let mut claims = method.all_claims();
            claims.retain(|claim| claim != missing);
            for other in &beside {
                let is_wide = other.contains("[*]") && missing.0 == "creates";
                let list = if is_wide { "reads" } else { missing.0 };
                claims.push((list, other));
            }
            let fault = try_with(method, method.phase, &claims, On::Record).unwrap_err();
            let (list, path) = missing_claim(&fault);
            assert_eq!((list, path.as_str()), *missing, "{}", method.name);
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

macro_rules! suggestions {
    ($([$($claimed:literal),*] $on:ident in $set:literal $method:ident($($arg:expr),*) => $wanted:literal;)+) => {
        const SUGGESTIONS: &[(&[&str], &str, Suggested, &str)] = &[$((
            &[$($claimed),*], $set, |call, set| { let handle = $on(call, set); call.$method(handle, $($arg),*).map(drop) }, $wanted,
        ),)+];
    };
}

type Suggested = fn(&mut Call, &str) -> Result<(), Fault>;

suggestions! {
    [] main in "node" container_put_env("A", "1") => "pod-sets[@nodes].containers[node].env[A]";
    [] main in "launcher" container_put_env("A", "1") => "pod-sets[launcher].containers[node].env[A]";
    [] main in "node" container_put_env("A[b]", "1") => "pod-sets[@nodes].containers[node].env[\"A[b]\"]";
    ["pod-sets[node].volumes[x]"] main in "node" container_put_env("A", "1") => "pod-sets[node].containers[node].env[A]";
    ["pod-sets[*].volumes[x]"] pod_set in "launcher" pod_set_set_pod_label("app", "1") => "pod-sets[*].pod-labels[app]";
    ["pod-sets[*].containers[@base].args"] main in "node" container_put_env("A", "1") => "pod-sets[*].containers[@base].env[A]";
    ["pod-sets[*].containers[side].args"] main in "node" container_put_env("A", "1") => "pod-sets[*].containers[node].env[A]";
    ["pod-sets[$config./job].volumes[x]"] pod_set in "node" pod_set_set_pod_label("app", "1") => "pod-sets[$config./job].pod-labels[app]";
    ["pod-sets[$config./job].volumes[x]"] pod_set in "launcher" pod_set_set_pod_label("app", "1") => "pod-sets[launcher].pod-labels[app]";
    [] main in "node" container_put_mount(&mount("data", "/data//x/")) => "pod-sets[@nodes].containers[node].mounts[$config./nested/path]";
    [] main in "node" container_env_names() => "pod-sets[@nodes].containers[node].env[#]";
    ["pod-sets[*].volumes[x]"] main in "node" container_mounts() => "pod-sets[*].containers[node].mounts[*]";
    ["pod-sets[*].pod-labels[$job]"] main in "node" container_put_env("llama", "1") => "pod-sets[*].containers[node].env[$job]";
    ["pod-sets[*].pod-labels[$job]"] main in "node" container_put_env("other", "1") => "pod-sets[*].containers[node].env[other]";
    [] main in "node" container_put_port(&port(29500)) => "pod-sets[@nodes].containers[node].ports[$config./port/TCP]";
    [] main in "node" container_put_env("29500/TCP", "1") => "pod-sets[@nodes].containers[node].env[29500/TCP]";
    [] pod_set in "node" pod_set_pod_label("kueue.x-k8s.io/queue-name") => "pod-sets[@nodes].pod-labels[$config./queue]";
    [] pod_set in "node" pod_set_set_pod_label("kueue.x-k8s.io/queue-name", "a") => "pod-sets[@nodes].pod-labels[kueue.x-k8s.io/queue-name]";
    [] spec in "node" document_kind("/trainer") => "job[/trainer]";
    [] spec in "node" document_kind("") => "job[\"\"]";
}

fn main(call: &mut Call, pod_set: &str) -> handle::Container {
    container(call, pod_set, "node")
}

fn spec(call: &mut Call, _: &str) -> handle::Document {
    call.job_spec(handle::Job(0)).unwrap()
}

#[test]
fn suggested_claim_follows_the_spelling_of_existing_claims() {
    let config = json!({
        "job": "node", "nested": {"path": "/data/x"}, "list": ["A"], "a]b": "A", "port": 29500,
        "queue": "kueue.x-k8s.io/queue-name", "at": "/trainer", "none": "",
    });
    for (claims, pod_set, method, wanted) in SUGGESTIONS {
        let mut claims: Vec<_> = claims.iter().map(|claim| ("writes", *claim)).collect();
        let run = |claims: &[(&str, &str)]| {
            let plugin = plugin(&manifest("p", claims));
            let mut call = call_over(Phase::Transform, &plugin, record(), 0, config.clone());
            method(&mut call, pod_set)
        };
        let message = run(&claims).unwrap_err().to_string();
        let (list, claim) = pasted(&message);
        assert_eq!(claim, *wanted, "{message}");
        claims.push((list, &claim));
        run(&claims).unwrap_or_else(|fault| panic!("{message}: {fault}"));
    }
}

/// Reads of the record are claimed for transform only, and what a write claim names may be read.
#[test]
fn reads_after_transform_need_no_claim() {
    let mut reads = 0;
    for method in METHODS {
        let mut claims = method.claims.iter();
        if method.claims.is_empty()
            || !claims.all(|(list, path)| *list == "reads" && is_of_record(path))
        {
            continue;
        }
        reads += 1;
        for phase in [Phase::Build, Phase::Check] {
            try_with(method, phase, &[], On::Record).unwrap();
        }
        let is_keyed = method.claims.iter().all(|(_, path)| !path.ends_with("[#]"));
        let is_derived = matches!(
            method.name,
            "pod_set_devices" | "pod_set_accelerators" | "pod_set_processes"
        );
        if is_keyed && !is_derived {
            let writes: Vec<_> = method
                .claims
                .iter()
                .map(|(_, path)| ("writes", *path))
                .collect();
            try_with(method, Phase::Transform, &writes, On::Record).unwrap();
        }
    }
    assert!(reads > 20, "{reads}");
}

fn is_of_record(path: &str) -> bool {
    !["job[", "lookups[", "catalog["]
        .iter()
        .any(|of| path.starts_with(of))
}

#[test]
fn job_spec_and_lookups_need_claims_in_every_phase() {
    for method in METHODS {
        if method.claims.is_empty() || method.claims.iter().any(|(_, path)| is_of_record(path)) {
            continue;
        }
        for phase in Phase::ALL {
            try_with(method, phase, method.claims, On::Record).unwrap();
            let fault = try_with(method, phase, &[], On::Record).unwrap_err();
            assert_eq!(missing_claim(&fault).1, method.claims[0].1);
        }
    }
}

#[test]
fn pointer_claim_covers_its_subtree_only() {
    let read = |claim: &str, at: &str| {
        let mut call = call_with(Phase::Check, &[("reads", claim)]);
        let spec = call.job_spec(handle::Job(0)).unwrap();
        call.document_json(spec, at)
    };
    for claim in ["job[/trainer]", "job[\"\"]"] {
        assert_eq!(read(claim, "/trainer/numNodes"), Ok(Some("4".to_owned())));
    }
    for at in ["", "/train", "/trainers", "/trainer2/x"] {
        let (list, path) = missing_claim(&read("job[/trainer]", at).unwrap_err());
        assert_eq!(list, "reads");
        // The missing claim is printed as the manifest takes it.
        assert!(read(&path, at).is_ok(), "{path}");
    }
}

#[test]
fn missing_lookups_are_requested() {
    let mut call = call_with(Phase::Build, &[("reads", "lookups[*]")]);
    let mut look_up = |name| call.lookups_get(handle::Lookups(0), "v1", "ConfigMap", name);
    assert!(look_up("known").unwrap().is_some());
    let key = LookupKey::Object(ObjectKey::new("v1", "ConfigMap", "other"));
    assert_eq!(look_up("other"), Err(Fault::Missing(key)));
}

/// Whether it exists would depend on when the TrainJob is rendered.
#[test]
fn objects_of_the_train_job_are_hidden_from_its_lookups() {
    let owner = json!({"kind": "TrainJob", "name": "llama", "uid": "6f2a", "controller": true});
    let metadata = json!({"name": "a", "ownerReferences": [owner]});
    let object = LookupAnswer::Object(Arc::new(json!({ "metadata": metadata })));
    let key = || ObjectKey::new("v1", "ConfigMap", "a");
    let mut known = Lookups::default();
    for key in [
        LookupKey::Object(key()),
        LookupKey::Optional(key()),
        LookupKey::Catalog(key()),
    ] {
        known.insert(key, object.clone());
    }
    let claims = ["lookups[*]", "catalog[v1/ConfigMap/a]"].map(|path| ("reads", path));
    let inputs = CallInputs {
        plugin: plugin(&manifest("p", &claims)),
        rank: 1,
        config: Arc::default(),
        job: job(),
        base: Arc::new(record()),
        lookups: Arc::new(known),
        kept: Arc::default(),
    };
    let mut call = Call::new(Phase::Build, record(), inputs);
    let lookups = handle::Lookups(0);
    let fault = call
        .lookups_get(lookups, "v1", "ConfigMap", "a")
        .unwrap_err();
    let hidden = "the object is emitted for this TrainJob; plugins cannot look it up";
    assert_eq!(fault, Fault::Argument(hidden.to_owned()));
    assert_eq!(call.lookups_find(lookups, "v1", "ConfigMap", "a"), Ok(None));
    let in_catalog = call.lookups_find_in_catalog(lookups, "v1", "ConfigMap", "a");
    assert!(in_catalog.unwrap().is_some());
}

#[test]
fn claim_on_a_kind_allows_asking_whether_it_is_served() {
    let lookups = handle::Lookups(0);
    for claim in ["[v1/ConfigMap/*]", "[v1/ConfigMap/#]", "[*]"] {
        let claim = format!("lookups{claim}");
        let mut call = call_with(Phase::Transform, &[("reads", &claim)]);
        let served = call.lookups_served(lookups, "v1", "ConfigMap");
        assert_eq!(served, Ok(true), "{claim}");
    }
    let mut call = call_with(Phase::Transform, &[("reads", "lookups[v1/ConfigMap/a*]")]);
    let fault = call.lookups_all(lookups, "v1", "ConfigMap").unwrap_err();
    let missing = "lookups[v1/ConfigMap/*]".to_owned();
    assert_eq!(missing_claim(&fault), ("reads", missing));
}

#[test]
fn record_and_objects_are_writable_in_one_phase_only() {
    for method in METHODS.iter().filter(|method| method.is_write()) {
        for phase in Phase::ALL
            .into_iter()
            .filter(|phase| *phase != method.phase)
        {
            let what = if method.phase == Phase::Build {
                "emit objects"
            } else {
                "write the record"
            };
            let fault = try_with(method, phase, &method.all_claims(), On::Record).unwrap_err();
            assert_eq!(fault, Fault::WrongPhase { what, phase }, "{}", method.name);
        }
    }
}

#[test]
fn base_is_readable_without_claims_and_read_only() {
    for method in METHODS.iter().filter(|method| method.is_of_record()) {
        let is_write = method.value.is_some() || method.is_write();
        let mut claims = method.all_claims();
        claims.retain(|(_, path)| is_write || path.starts_with("lookups["));
        let ended = try_with(method, Phase::Transform, &claims, On::Base);
        let expected = if is_write {
            Err(Fault::BaseWritten)
        } else {
            Ok(())
        };
        assert_eq!(ended, expected, "{}", method.name);
    }
    let mut call = call_with(Phase::Transform, &[("writes", "labels[team]")]);
    let base = call.context_base(Call::CONTEXT).unwrap();
    let set = call.info_pod_set(base, "node").unwrap().unwrap();
    let node = call.pod_set_container(set, "node").unwrap().unwrap();
    assert!(call.pod_set_containers(set).unwrap().contains(&node));
    call.info_set_label(handle::Info(0), "team", "changed")
        .unwrap();
    assert_eq!(call.info_label(base, "team"), Ok(Some("ml".to_owned())));
    let image = "registry.example.com/base:1".to_owned();
    assert_eq!(call.container_image(node), Ok(Some(image)));
    assert_eq!(call.pod_set_processes(set), Ok(Some(8)));
}

/// What affects more than the container. The volume of the mount is not the plugin's own.
const BEYOND: [&str; 5] = [
    "container_set_raw",
    "container_add_capability",
    "container_put_env_raw",
    "container_put_mount",
    "container_default_mount",
];

/// In its own container, a plugin needs claims only for what affects more than the container.
#[test]
fn added_containers_are_writable_by_their_plugin_only() {
    let created = [
        ("creates", "pod-sets[node].containers[own]"),
        ("creates", "pod-sets[node].init-containers[own]"),
    ];
    for method in METHODS
        .iter()
        .filter(|method| method.name.starts_with("container_"))
    {
        let mut claims = method.all_claims();
        claims.retain(|(_, path)| !path.starts_with(NODE));
        let ended = try_with(
            method,
            Phase::Transform,
            &[&claims[..], &created].concat(),
            On::Own,
        );
        let is_host_port = method
            .value
            .is_some_and(|value| value().get("hostPort").is_some());
        let is_beyond = is_host_port || BEYOND.contains(&method.name);
        assert_eq!(ended.is_err(), is_beyond, "{}: {ended:?}", method.name);
    }

    let mut own = call_with(Phase::Transform, &created);
    let added = node(&mut own, On::Own).unwrap();
    own.container_put_env(added, "A", "1").unwrap();
    assert_eq!(own.container_env_names(added), Ok(vec!["A".to_owned()]));
    assert_eq!(own.container_created_by_me(added), Ok(true));
    let record = own.finish().record;
    let other = plugin(&manifest(
        "q",
        &[("reads", "pod-sets[node].containers[own].image")],
    ));
    let mut other = call_over(Phase::Transform, &other, record, 2, json!({}));
    let own = container(&mut other, "node", "own");
    assert_eq!(other.container_created_by_me(own), Ok(false));
    let fault = other.container_put_env(own, "A", "2").unwrap_err();
    assert_eq!(
        missing_claim(&fault),
        ("writes", "pod-sets[node].containers[own].env[A]".to_owned())
    );
}

/// Claims on the containers of the base do not match those that plugins add, and therefore do not order the plugins.
#[test]
fn claims_on_base_containers_exclude_added_ones() {
    let plugin = plugin(&manifest(
        "q",
        &[("writes", "pod-sets[*].containers[@base].limits[*]")],
    ));
    let mut call = call_over(Phase::Transform, &plugin, with_helper(), 2, json!({}));
    let set = pod_set(&mut call, "node");
    assert_eq!(call.pod_set_container(set, "helper"), Ok(None));
    for name in ["node", "side"] {
        let of_runtime = container(&mut call, "node", name);
        assert!(call.container_limits(of_runtime).is_ok());
        call.container_set_limit(of_runtime, "cpu", "1").unwrap();
    }
}

/// Whether another plugin's container is there depends on the order, so that only claims that make an order show it.
#[test]
fn other_plugins_containers_are_visible_only_with_a_claim() {
    for (list, path, seen) in [
        ("reads", "labels[x]", false),
        ("reads", "pod-sets[*].containers[node].image", false),
        (
            "reads",
            "pod-sets[launcher].containers[helper].image",
            false,
        ),
        ("reads", "pod-sets[*].init-containers[#]", false),
        ("reads", "pod-sets[*].containers[#]", true),
        ("reads", "pod-sets[*].containers[helper]", true),
        ("writes", "pod-sets[@trainer].containers[*].env[X]", true),
    ] {
        let plugin = plugin(&manifest("q", &[(list, path)]));
        for (phase, seen) in [(Phase::Transform, seen), (Phase::Check, true)] {
            let mut call = call_over(phase, &plugin, with_helper(), 2, json!({}));
            let set = pod_set(&mut call, "node");
            let helper = call.pod_set_container(set, "helper").unwrap();
            assert_eq!(helper.is_some(), seen, "{path} in {phase}");
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
        let (path, owner) = (format!("{NODE}.env[MODE]"), "runtime");
        assert_eq!(write, Err(Fault::NotReserved { path, owner }));
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
        let owner = if is_reserved { "plugin" } else { "runtime" };
        assert_eq!(
            call.container_env_owner(node, "MODE"),
            Ok(Some(owner.to_owned()))
        );
    }
}

macro_rules! with_variables {
    ($($set:literal $on:ident.$method:ident($($arg:expr),*) [$($refused:literal)?];)+) => {
        const WITH_VARIABLES: &[(&str, Suggested, &[&str])] = &[$((
            $set, |call, set| { let handle = $on(call, set); call.$method(handle, $($arg),*).map(drop) }, &[$($refused)?],
        ),)+];
    };
}

with_variables! {
    "node" pod_set.pod_set_set_pod_label("llama", "1") [];
    "node" pod_set.pod_set_set_pod_label("other", "1") ["pod-sets[node].pod-labels[other]"];
    "node" main.container_put_mount(&mount("data", "/x")) [];
    "node" main.container_put_mount(&mount("data", "/y")) ["pod-sets[node].containers[node].mounts[/y]"];
    "launcher" main.container_put_mount(&mount("data", "/x")) ["pod-sets[launcher].containers[node].mounts[/x]"];
    "node" main.container_put_env("A", "1") [];
    "launcher" main.container_put_env("A", "1") ["pod-sets[launcher].containers[node].env[A]"];
}

/// `@nodes` leaves out MPI's launcher, which can have the trainer's label.
#[test]
fn variables_in_claims_take_the_train_jobs_value() {
    let mounts = "pod-sets[$config./where].containers[node].mounts[$config./path]";
    let labels = "pod-sets[*].pod-labels[$job]";
    let env = "pod-sets[@nodes].containers[node].env[A]";
    let plugin = plugin(&manifest(
        "p",
        &[mounts, labels, env].map(|path| ("writes", path)),
    ));
    for (set, run, refused) in WITH_VARIABLES {
        let config = json!({"where": "node", "path": "/x"});
        let ended = run(
            &mut call_over(Phase::Transform, &plugin, record(), 0, config),
            set,
        );
        let missing = ended.err().map(|fault| missing_claim(&fault).1);
        assert_eq!(missing.as_deref(), refused.first().copied());
    }
    // Only the key of a port ends with its protocol.
    let env = "pod-sets[*].containers[node].env[$config./names/TCP]";
    let of_config = crate::common::plugin(&manifest("p", &[("writes", env)]));
    let config = json!({"names": {"TCP": "A"}});
    let mut named = call_over(Phase::Transform, &of_config, record(), 0, config);
    let node = main(&mut named, "node");
    named.container_put_env(node, "A", "1").unwrap();
    let lookups = handle::Lookups(0);
    let of_config = crate::common::plugin(&manifest("p", &[("reads", "lookups[$config./of]")]));
    for (of, is_allowed) in [
        ("v1/ConfigMap/known", true),
        ("v1/ConfigMap/other", false),
        ("v1/ConfigMap", false),
    ] {
        let config = json!({ "of": of });
        let mut named = call_over(Phase::Build, &of_config, record(), 0, config);
        let found = named.lookups_get(lookups, "v1", "ConfigMap", "known");
        assert_eq!(found.is_ok(), is_allowed, "{of}: {found:?}");
    }
    // Without a value the claim means nothing.
    let mut without = call_over(Phase::Transform, &plugin, record(), 0, json!({}));
    let node = main(&mut without, "node");
    assert!(
        without
            .container_put_mount(node, &mount("data", "/x"))
            .is_err()
    );
}
