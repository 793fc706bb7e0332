//! Helpers for the tests of this crate: a record, plugins with few settings, and a plugin that is a function.

#[path = "../../../../tests/common/function_plugin.rs"]
mod function_plugin;
pub mod manual;
pub mod methods;
pub mod plans;
pub mod wit;

use std::sync::{Arc, LazyLock};

pub use function_plugin::FunctionPlugin;
pub use methods::mount;
use serde_json::{Value, json};
use trainyard_model::{
    call::{Call, CallInputs, Fault},
    claims::Grants,
    contract::handle,
    job::Job,
    limits::Limits,
    lookup::{LookupAnswer, LookupKey, Lookups, ObjectKey, Requester},
    manifest::Manifest,
    plugin::Phase,
    plugin_info::{PluginError, PluginInfo, Settings},
    record::{Datum, Field, Fields, Level, Permission, PodSet, Record},
};

/// A manifest of all phases with those claims, as `("writes", "labels[x]")`.
pub fn manifest(name: &str, claims: &[(&str, &str)]) -> Value {
    let list = |wanted: &str| -> Vec<&str> {
        let of_list = claims.iter().filter(|(list, _)| *list == wanted);
        of_list.map(|(_, path)| *path).collect()
    };
    json!({
        "name": name, "version": "1.0.0", "contract": "1.0.0", "activeWhen": "plugins",
        "phases": ["transform", "build", "check"],
        "claims": {"reads": list("reads"), "creates": list("creates"), "writes": list("writes")},
    })
}

/// The manifest with more keys, or other values of some.
pub fn with(mut manifest: Value, more: Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        manifest[key] = value.clone();
    }
    manifest
}

/// A plugin that may read, write and create everything that plugins can.
pub fn everything() -> Arc<PluginInfo> {
    static PLUGIN: LazyLock<Arc<PluginInfo>> = LazyLock::new(with_all_claims);
    PLUGIN.clone()
}

fn with_all_claims() -> Arc<PluginInfo> {
    let mut claims = vec![
        ("reads", "lookups[*]".to_owned()),
        ("reads", "job[\"\"]".to_owned()),
    ];
    for kind in ["v1/ConfigMap", "v1/Secret", "example.com/v1/Widget"] {
        claims.push(("writes", format!("objects[{kind}/-*]")));
    }
    let own = |field: &&Field| **field != Field::Objects && field.permission() != Permission::Host;
    for field in Field::ALL.iter().filter(own) {
        let scopes: &[&str] = match field.level() {
            Level::Job => &[""],
            Level::PodSet => &["pod-sets[*]."],
            Level::Container => &[
                "pod-sets[*].containers[*].",
                "pod-sets[*].init-containers[*].",
            ],
        };
        for scope in scopes {
            let list = if field.holds_containers() {
                "creates"
            } else {
                "writes"
            };
            let keys = if field.is_keyed() { "[*]" } else { "" };
            claims.push((list, format!("{scope}{field}{keys}")));
            if field.is_keyed() && field.name() != "raw" {
                claims.push(("reads", format!("{scope}{field}[#]")));
            }
        }
    }
    let claims: Vec<_> = claims
        .iter()
        .map(|(list, path)| (*list, path.as_str()))
        .collect();
    let reserved = ["MODE", "NODE_NAME"];
    plugin(&with(
        manifest("p", &claims),
        json!({ "reservedEnv": reserved }),
    ))
}

pub fn parsed(manifest: &Value) -> Manifest {
    Manifest::parse(manifest.to_string().as_bytes()).unwrap()
}

/// The plugin with all its claims granted.
pub fn plugin(manifest: &Value) -> Arc<PluginInfo> {
    plugin_under(manifest, Settings::built_in())
}

pub fn plugin_under(manifest: &Value, settings: Settings) -> Arc<PluginInfo> {
    Arc::new(PluginInfo::new(parsed(manifest), "native", settings).unwrap())
}

/// Settings that grant those paths beside the default.
pub fn granted(paths: &[&str]) -> Settings {
    Settings {
        grants: Grants::Paths(paths.iter().map(|path| path.parse().unwrap()).collect()),
        ..Settings::default()
    }
}

/// Loads a plugin with those claims under the default grants and those paths.
pub fn load(claims: &[(&str, &str)], grants: &[&str]) -> Result<PluginInfo, PluginError> {
    PluginInfo::new(parsed(&manifest("p", claims)), "native", granted(grants))
}

pub fn limited(limits: Limits) -> Settings {
    Settings {
        limits,
        ..Settings::built_in()
    }
}

/// A TrainJob `llama` with a pod set `node` (the trainer; containers `node` and `side`, init container `setup`) and a pod
/// set `launcher`.
pub fn record() -> Record {
    record_with(&[])
}

/// The same, whose containers have these values, too.
pub fn record_with(values: &[(Field, &str, Datum)]) -> Record {
    let mut record = Record::new("llama", "llama", "cluster.local");
    record.fields.load(Field::Labels, "team", "ml".into());
    let mut node = PodSet::new("node");
    node.ancestor = Some("trainer".into());
    node.count = 4;
    node.counts_nodes = true;
    node.fields.load(Field::PodLabels, "app", "llama".into());
    let data = json!({"name": "data", "emptyDir": {}});
    node.fields.load(Field::Volumes, "data", data.into());
    record.pod_sets.push(node);
    let pods = json!({"template": {"spec": {"runtimeClassName": "kata"}}});
    let jobs = json!([{"name": "node", "template": {"spec": pods}}]);
    record.template = Some(Arc::new(json!({"replicatedJobs": jobs})));
    record.pod_sets.push(PodSet::new("launcher"));
    add_container(&mut record, 0, Field::InitContainers, "setup", values);
    for (set, name) in [(0, "node"), (0, "side"), (1, "node")] {
        add_container(&mut record, set, Field::Containers, name, values);
    }
    record
}

/// The record after another plugin added the container `helper` to the pod set `node`.
pub fn with_helper() -> Record {
    let creator = manifest("p", &[("creates", "pod-sets[*].containers[helper]")]);
    let mut created = call(Phase::Transform, &plugin(&creator));
    let set = pod_set(&mut created, "node");
    created
        .pod_set_add_container(set, "helper", "image")
        .unwrap();
    created.finish().record
}

fn add_container(
    record: &mut Record,
    pod_set: u32,
    list: Field,
    name: &str,
    values: &[(Field, &str, Datum)],
) {
    let mut fields = Fields::default();
    fields.load(Field::Image, "", "registry.example.com/base:1".into());
    fields.load(Field::Command, "", ["run".to_owned()].as_slice().into());
    fields.load(Field::Env, "MODE", "plain".into());
    fields.load(
        Field::Env,
        "NODE_NAME",
        json!({"fieldRef": {"fieldPath": "spec.nodeName"}}).into(),
    );
    fields.load(Field::Ports, "80/TCP", json!({"containerPort": 80}).into());
    let mount = json!({"name": "data", "mountPath": "/data"});
    fields.load(Field::Mounts, "/data", mount.into());
    fields.load(Field::Requests, "cpu", "4".into());
    fields.load(Field::Limits, "nvidia.com/gpu", "8".into());
    for (field, key, value) in values {
        fields.load(*field, key, value.clone());
    }
    record.load_container(pod_set, list, name, fields);
}

pub fn job() -> Arc<Job> {
    Arc::new(Job {
        name: "llama".into(),
        namespace: "ml".into(),
        uid: "6f2a".into(),
        nodes: 4,
        spec: Arc::new(json!({"trainer": {"numNodes": 4, "args": ["a"]}})),
        ..Job::default()
    })
}

/// The TrainJob of the tests.
pub const ASKER: Requester<'static> = Requester {
    name: "job",
    uid: None,
};

/// Answers to what the tests look up: a ConfigMap `known`, the list of ConfigMaps, that they are served; no LimitRange; and the
/// RuntimeClass of the pod set `node`.
pub fn lookups() -> Arc<Lookups> {
    let (version, kind) = ("v1".to_owned(), "ConfigMap".to_owned());
    let object = Arc::new(json!({"metadata": {"name": "known"}}));
    let mut lookups = Lookups::default();
    lookups.insert(
        LookupKey::Object(ObjectKey::new(version.clone(), kind.clone(), "known")),
        LookupAnswer::Object(object.clone()),
    );
    lookups.insert(
        LookupKey::All {
            api_version: version.clone(),
            kind: kind.clone(),
        },
        LookupAnswer::all(vec![object], ASKER),
    );
    let limit_ranges = LookupKey::All {
        api_version: version.clone(),
        kind: "LimitRange".to_owned(),
    };
    lookups.insert(limit_ranges, LookupAnswer::all(Vec::new(), ASKER));
    let class = LookupKey::Object(ObjectKey::new("node.k8s.io/v1", "RuntimeClass", "kata"));
    let overhead = json!({"overhead": {"podFixed": {"cpu": "250m", "memory": "160Mi"}}});
    lookups.insert(class, LookupAnswer::Object(Arc::new(overhead)));
    let served = LookupKey::Served {
        api_version: version,
        kind,
    };
    lookups.insert(served, LookupAnswer::Served(true));
    let optional = LookupKey::Optional(ObjectKey::new("v1", "ConfigMap", "optional"));
    lookups.insert(optional, LookupAnswer::Absent);
    let in_catalog = LookupKey::Catalog(ObjectKey::new("v1", "ConfigMap", "shared"));
    lookups.insert(in_catalog, LookupAnswer::Absent);
    Arc::new(lookups)
}

/// A call over [`record`].
pub fn call(phase: Phase, plugin: &Arc<PluginInfo>) -> Call {
    call_over(phase, plugin, record(), 1, json!({}))
}

/// A call of a plugin with those claims and all grants.
pub fn call_with(phase: Phase, claims: &[(&str, &str)]) -> Call {
    call(phase, &plugin(&manifest("p", claims)))
}

pub fn call_over(
    phase: Phase,
    plugin: &Arc<PluginInfo>,
    record: Record,
    rank: u16,
    config: Value,
) -> Call {
    let inputs = CallInputs {
        plugin: plugin.clone(),
        rank,
        config: Arc::new(config),
        job: job(),
        base: Arc::new(record.clone()),
        lookups: lookups(),
        kept: Arc::default(),
    };
    Call::new(phase, record, inputs)
}

/// The handle of a pod set.
pub fn pod_set(call: &mut Call, name: &str) -> handle::PodSet {
    let info = call.context_info(Call::CONTEXT).unwrap();
    call.info_pod_set(info, name).unwrap().unwrap()
}

/// The handle of a container.
pub fn container(call: &mut Call, pod_set_name: &str, name: &str) -> handle::Container {
    let set = pod_set(call, pod_set_name);
    call.pod_set_container(set, name).unwrap().unwrap()
}

/// The pod set `node` and its container `node`.
pub fn set_and_node(call: &mut Call) -> (handle::PodSet, handle::Container) {
    (pod_set(call, "node"), container(call, "node", "node"))
}

/// The missing claim of a fault, with how the place was touched.
pub fn missing_claim(fault: &Fault) -> (&'static str, String) {
    match fault {
        Fault::NotClaimed { verb, path, .. } => (verb.list(), path.clone()),
        other => panic!("no claim is missing: {other}"),
    }
}
