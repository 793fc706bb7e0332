//! The record of the fuzzers, the TrainJob, what lookups answer, and the plugins whose claims apply.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use trainyard_model::{
    claims::Grants,
    job::Job,
    limits::Limits,
    lookup::{LookupAnswer, LookupKey, Lookups, ObjectKey, Requester},
    manifest::Manifest,
    plugin_info::{PluginInfo, Settings},
    record::{Field, Fields, PodSet, Record},
};

/// Claims that need no grant, on a few places.
const FEW: &[(&str, &str)] = &[
    ("reads", "pod-sets[*].containers[#]"),
    ("reads", "pod-sets[node].containers[*].image"),
    ("reads", "labels[*]"),
    ("writes", "labels[te*]"),
    ("writes", "annotations[x]"),
    ("writes", "pod-sets[@trainer].pod-labels[app]"),
    ("writes", "pod-sets[node].pod-annotations[*]"),
    ("writes", "pod-sets[@nodes].volumes[cache]"),
    ("writes", "pod-sets[node].volumes[shm]"),
    ("writes", "pod-sets[node].containers[node].mounts[/cache]"),
    ("writes", "pod-sets[node].containers[node].mounts[/dev/shm]"),
    ("writes", "pod-sets[node].containers[@base].env[PET_*]"),
    ("writes", "pod-sets[*].containers[side].env[A]"),
    ("writes", "pod-sets[*].containers[$config./name].ports[*]"),
    ("writes", "objects[v1/ConfigMap/-a]"),
    ("writes", "objects[v1/ConfigMap/-b]"),
    ("reads", "job[/trainer/args]"),
];

/// The plugins: with everything claimed and granted, with less and less, and with small limits.
pub(super) static PLUGINS: LazyLock<Vec<Arc<PluginInfo>>> = LazyLock::new(|| {
    let small = Limits {
        import_bytes: 4096,
        handles: 32,
        writes: 16,
        log_lines: 4,
        containers: 1,
        objects: 1,
        key_material: 1,
        kept_bytes: 64,
        ..Limits::default()
    };
    let everything = everything();
    let pod_sets_only: Vec<_> = everything
        .iter()
        .filter(|(_, path)| !path.contains("containers"))
        .cloned()
        .collect();
    let creates: Vec<_> = everything
        .iter()
        .filter(|(list, _)| list == "creates" || list == "reads")
        .cloned()
        .collect();
    let few: Vec<_> = FEW
        .iter()
        .map(|(list, path)| ((*list).to_owned(), (*path).to_owned()))
        .collect();
    let limited = Settings {
        limits: small,
        ..Settings::built_in()
    };
    vec![
        plugin("all", &everything, Settings::built_in()),
        plugin("few", &few, Settings::default()),
        plugin("pods", &pod_sets_only, Settings::built_in()),
        plugin("creator", &creates, Settings::built_in()),
        plugin("small", &everything, limited),
        plugin("none", &[], Settings::default()),
    ]
});

/// The configuration of all plugins.
pub(super) static CONFIG: LazyLock<Arc<Value>> =
    LazyLock::new(|| Arc::new(json!({"name": "side", "port": 80, "list": ["a", {"b": 1.5}]})));

fn everything() -> Vec<(String, String)> {
    let mut claims = Vec::new();
    let mut add = |list: &str, path: String| claims.push((list.to_owned(), path));
    for field in Field::ALL
        .iter()
        .filter(|field| !matches!(field, Field::Count | Field::Replicas))
    {
        let keys = if field.is_keyed() { "[*]" } else { "" };
        match (field, field.level()) {
            (Field::Containers | Field::InitContainers, _) => {
                add("reads", format!("pod-sets[*].{field}[#]"));
                add("creates", format!("pod-sets[*].{field}[*]"));
            }
            (Field::Objects, _) => {
                for (kind, suffix) in [
                    ("ConfigMap", "-a"),
                    ("ConfigMap", "-b"),
                    ("Secret", "-mpi-ssh-auth"),
                    ("Secret", "-a"),
                ] {
                    add("writes", format!("objects[v1/{kind}/{suffix}]"));
                }
                add(
                    "writes",
                    "objects[scheduling.x-k8s.io/v1alpha1/PodGroup/]".to_owned(),
                );
            }
            (Field::JobSpec, _) => add("reads", "job[/trainer]".to_owned()),
            (Field::Lookups, _) => {
                for kind in [
                    "v1/ConfigMap",
                    "v1/LimitRange",
                    "node.k8s.io/v1/RuntimeClass",
                ] {
                    add("reads", format!("lookups[{kind}/*]"));
                }
            }
            (Field::Catalog, _) => add("reads", "catalog[v1/ConfigMap/shared]".to_owned()),
            (_, trainyard_model::record::Level::Job) => add("writes", format!("{field}{keys}")),
            (_, trainyard_model::record::Level::PodSet) => {
                add("writes", format!("pod-sets[*].{field}{keys}"))
            }
            (_, trainyard_model::record::Level::Container) => {
                add("writes", format!("pod-sets[*].containers[*].{field}{keys}"));
                add(
                    "writes",
                    format!("pod-sets[*].init-containers[*].{field}{keys}"),
                );
            }
        }
    }
    claims.retain(|(_, path)| is_possible(path));
    claims
}

/// Whether a manifest may have the claim.
fn is_possible(path: &str) -> bool {
    let list = if path.ends_with("[#]")
        || path.starts_with("job")
        || path.starts_with("lookups")
        || path.starts_with("catalog")
    {
        "reads"
    } else if path.ends_with("containers[*]") {
        "creates"
    } else {
        "writes"
    };
    load(
        "p",
        &[(list.to_owned(), path.to_owned())],
        Settings::built_in(),
    )
    .is_ok()
}

fn plugin(name: &str, claims: &[(String, String)], settings: Settings) -> Arc<PluginInfo> {
    Arc::new(load(name, claims, settings).unwrap_or_else(|error| panic!("{error}")))
}

fn load(name: &str, claims: &[(String, String)], settings: Settings) -> Result<PluginInfo, String> {
    let list = |wanted: &str| -> Vec<&str> {
        let of_list = claims.iter().filter(|(list, _)| list == wanted);
        of_list.map(|(_, path)| path.as_str()).collect()
    };
    let manifest = json!({
        "name": name, "version": "1.0.0", "contract": "1.0.0", "activeWhen": "plugins", "phases": ["transform", "build", "check"],
        "claims": {"reads": list("reads"), "creates": list("creates"), "writes": list("writes")},
        "reservedEnv": ["A", "MODE"],
    });
    let manifest =
        Manifest::parse(manifest.to_string().as_bytes()).map_err(|error| error.to_string())?;
    PluginInfo::new(manifest, "native", settings).map_err(|error| error.to_string())
}

/// Whether only the default grants apply to a plugin.
pub(super) fn has_default_grants(plugin: &PluginInfo) -> bool {
    plugin.settings.grants == Grants::default()
}

/// A TrainJob `llama` with a pod set `node` (the trainer; containers `node` and `side`, init container `setup`) and a pod set `launcher`.
pub(super) static RECORD: LazyLock<Record> = LazyLock::new(|| {
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
    let pods = json!({"template": {"spec": {"runtimeClassName": "kata", "dnsConfig": {"searches": ["a"]}}}});
    let jobs = json!([{"name": "node", "template": {"spec": pods}}]);
    record.template = Some(Arc::new(json!({"replicatedJobs": jobs})));
    record.pod_sets.push(PodSet::new("launcher"));
    add_container(&mut record, 0, Field::InitContainers, "setup");
    for (set, name) in [(0, "node"), (0, "side"), (1, "node")] {
        add_container(&mut record, set, Field::Containers, name);
    }
    record
});

fn add_container(record: &mut Record, pod_set: u32, list: Field, name: &str) {
    let mut fields = Fields::default();
    fields.load(Field::Image, "", "registry.example.com/base:1".into());
    fields.load(Field::Command, "", ["run".to_owned()].as_slice().into());
    fields.load(Field::Env, "MODE", "plain".into());
    let node_name = json!({"fieldRef": {"fieldPath": "spec.nodeName"}});
    fields.load(Field::Env, "NODE_NAME", node_name.into());
    fields.load(Field::Ports, "80/TCP", json!({"containerPort": 80}).into());
    let mount = json!({"name": "data", "mountPath": "/data"});
    fields.load(Field::Mounts, "/data", mount.into());
    fields.load(Field::Requests, "cpu", "4".into());
    fields.load(Field::Limits, "nvidia.com/gpu", "8".into());
    record.load_container(pod_set, list, name, fields);
}

/// The TrainJob.
pub(super) static JOB: LazyLock<Arc<Job>> = LazyLock::new(|| {
    Arc::new(Job {
        name: "llama".into(),
        namespace: "ml".into(),
        uid: "6f2a".into(),
        nodes: 4,
        spec: Arc::new(json!({"trainer": {"numNodes": 4, "args": ["a"]}})),
        ..Job::default()
    })
});

/// Some answers to lookups. Others are missing, so that the call ends.
pub(super) static LOOKUPS: LazyLock<Arc<Lookups>> = LazyLock::new(|| {
    let (api_version, kind) = ("v1".to_owned(), "ConfigMap".to_owned());
    let asker = Requester {
        name: "llama",
        uid: None,
    };
    let object = Arc::new(json!({"metadata": {"name": "known"}, "data": {"k": "v"}}));
    let class = json!({"overhead": {"podFixed": {"cpu": "250m", "memory": "160Mi"}}});
    let mut lookups = Lookups::default();
    let one = |api_version: &str, kind: &str, name: &str| ObjectKey::new(api_version, kind, name);
    lookups.insert(
        LookupKey::Object(one("v1", "ConfigMap", "known")),
        LookupAnswer::Object(object.clone()),
    );
    lookups.insert(
        LookupKey::Object(one("node.k8s.io/v1", "RuntimeClass", "kata")),
        LookupAnswer::Object(Arc::new(class)),
    );
    lookups.insert(
        LookupKey::Optional(one("v1", "ConfigMap", "optional")),
        LookupAnswer::Absent,
    );
    lookups.insert(
        LookupKey::Catalog(one("v1", "ConfigMap", "shared")),
        LookupAnswer::Absent,
    );
    let all = |kind: &str| LookupKey::All {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
    };
    lookups.insert(all("ConfigMap"), LookupAnswer::all(vec![object], asker));
    lookups.insert(all("LimitRange"), LookupAnswer::all(Vec::new(), asker));
    lookups.insert(
        LookupKey::Served { api_version, kind },
        LookupAnswer::Served(true),
    );
    Arc::new(lookups)
});
