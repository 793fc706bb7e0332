//! Generated inputs of a merge. Names are drawn from small pools, so that the sides share them.

mod parts;

use proptest::{
    prelude::*,
    strategy::{BoxedStrategy, ValueTree},
    test_runner::{Config, RngSeed, TestRunner},
};
use serde_json::{Map, Value, json};

use self::parts::{
    affinity, container, container_patch, labels, named, object, pod_security, scalar, tolerations,
    volume, with, word,
};

/// What is merged.
#[derive(Clone, Debug)]
pub struct Input {
    pub base: Value,
    pub patch: Value,
    /// Whether the patch holds nulls and empty lists, which go lost where it is typed.
    pub typed: bool,
}

/// The first `count` inputs of a seed.
pub fn inputs(count: usize, seed: u64) -> impl Iterator<Item = Input> {
    let config = Config {
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let input = input();
    (0..count).filter_map(move |_| Some(input.new_tree(&mut runner).ok()?.current()))
}

pub fn input() -> BoxedStrategy<Input> {
    any::<bool>()
        .prop_flat_map(|typed| (Just(typed), base(), patch(typed)))
        .prop_map(|(typed, base, patch)| Input { base, patch, typed })
        .boxed()
}

const JOBS: [&str; 2] = ["node", "launcher"];
const INIT: [&str; 4] = ["prepare", "fetch", "warm-up", "proxy"];
const CONTAINERS: [&str; 3] = ["node", "sidecar", "metrics"];
const VOLUMES: [&str; 5] = ["data", "shm", "scripts", "keys", "scratch"];

/// The spec of a runtime's JobSet template.
pub fn base() -> BoxedStrategy<Value> {
    let job = object(vec![
        ("replicas", scalar(1..3)),
        (
            "dependsOn",
            named(&["a", "b"], object(vec![("status", word(&["Ready"]))])),
        ),
    ]);
    let job = with("template", template(base_pod(), true), job);
    let others = object(vec![
        ("network", Just(json!({"enableDNSHostnames": true})).boxed()),
        ("failurePolicy", Just(json!({"maxRestarts": 3})).boxed()),
    ]);
    with("replicatedJobs", named(&JOBS, job), others)
}

/// The spec of a patch: what the reference's type has. Where it is typed, with nulls and empty lists in between.
pub fn patch(typed: bool) -> BoxedStrategy<Value> {
    let nothing = || Just(json!({})).boxed();
    let job = with("template", template(patched_pod(typed), false), nothing());
    (
        with("replicatedJobs", named(&JOBS, job), nothing()),
        prop::collection::vec(any::<u8>(), 64),
    )
        .prop_map(move |(mut patch, choices)| {
            if typed {
                sprinkle(&mut patch, &mut choices.into_iter().cycle());
            }
            patch
        })
        .boxed()
}

fn template(pod: BoxedStrategy<Value>, whole: bool) -> BoxedStrategy<Value> {
    let metadata = || object(vec![("metadata", metadata())]);
    let pods = with("template", with("spec", pod, metadata()), own(whole));
    with("spec", pods, metadata())
}

fn metadata() -> BoxedStrategy<Value> {
    object(vec![("labels", labels()), ("annotations", labels())])
}

/// What only a runtime has of a Job.
fn own(whole: bool) -> BoxedStrategy<Value> {
    let fields = vec![
        ("parallelism", scalar(1..9)),
        ("backoffLimit", scalar(1..9)),
    ];
    object(if whole { fields } else { Vec::new() })
}

fn base_pod() -> BoxedStrategy<Value> {
    let mut fields = shared(container());
    fields.extend([
        ("resourceClaims", claims()),
        ("restartPolicy", word(&["Never", "OnFailure"])),
        ("priorityClassName", word(&["high", "low"])),
        ("hostNetwork", Just(json!(true)).boxed()),
        ("hostAliases", Just(json!([{"ip": "10.0.0.1", "hostnames": ["a"]}])).boxed()),
        (
            "topologySpreadConstraints",
            Just(json!([{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}])).boxed(),
        ),
    ]);
    object(fields)
}

fn patched_pod(typed: bool) -> BoxedStrategy<Value> {
    let mut fields = shared(container_patch());
    if !typed {
        // The reference's type has no claims; its merge of them is asked for all the same.
        fields.push(("resourceClaims", claims()));
    }
    object(fields)
}

fn claims() -> BoxedStrategy<Value> {
    named(
        &["gpu", "nic", "channel"],
        prop_oneof![
            word(&["one", "four"]).prop_map(|name| json!({"resourceClaimName": name})),
            word(&["one", "four"]).prop_map(|name| json!({"resourceClaimTemplateName": name})),
        ]
        .boxed(),
    )
}

/// What a pod spec and a patch of it both have.
fn shared(container: BoxedStrategy<Value>) -> Vec<(&'static str, BoxedStrategy<Value>)> {
    let empty = || Just(json!({})).boxed();
    vec![
        ("serviceAccountName", word(&["trainer", "default"])),
        ("volumes", named(&VOLUMES, volume())),
        ("initContainers", named(&INIT, container.clone())),
        ("containers", named(&CONTAINERS, container)),
        (
            "imagePullSecrets",
            named(&["registry", "mirror", "vendor"], empty()),
        ),
        (
            "schedulingGates",
            named(&["a.example.com/g", "b.example.com/g"], empty()),
        ),
        ("securityContext", pod_security()),
        ("nodeSelector", labels()),
        ("affinity", affinity()),
        ("tolerations", tolerations()),
        ("terminationGracePeriodSeconds", scalar(1..60)),
    ]
}

/// Puts nulls and empty lists where a client may write them and a type drops them.
fn sprinkle(value: &mut Value, choices: &mut impl Iterator<Item = u8>) {
    const LISTS: [&str; 6] = [
        "tolerations",
        "volumes",
        "env",
        "volumeMounts",
        "items",
        "preferredDuringSchedulingIgnoredDuringExecution",
    ];
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| sprinkle(item, choices)),
        Value::Object(map) => {
            map.values_mut().for_each(|value| sprinkle(value, choices));
            let keys: Vec<String> = map.keys().cloned().collect();
            for key in keys {
                let choice = choices.next().unwrap_or(255);
                if choice < 8 && LISTS.contains(&key.as_str()) {
                    map.insert(key, json!([]));
                } else if choice < 12 && NULLABLE.contains(&key.as_str()) {
                    map.insert(key, Value::Null);
                }
            }
            add_empty(map, choices);
        }
        _ => {}
    }
}

const NULLABLE: [&str; 8] = [
    "affinity",
    "securityContext",
    "nodeSelector",
    "serviceAccountName",
    "tolerations",
    "env",
    "template",
    "valueFrom",
];

/// Fields that are not there are written as null or empty.
fn add_empty(map: &mut Map<String, Value>, choices: &mut impl Iterator<Item = u8>) {
    let fields: &[&str] = if map.contains_key("mountPath") || map.contains_key("operator") {
        &[]
    } else if map.contains_key("containers") || map.contains_key("nodeSelector") {
        &["tolerations", "imagePullSecrets", "volumes"]
    } else if map.contains_key("volumeMounts") {
        &["env"]
    } else {
        &[]
    };
    for field in fields {
        if choices.next().is_some_and(|choice| choice < 64) && !map.contains_key(*field) {
            let empty = choices.next().is_some_and(|choice| choice < 128);
            let value = if empty { json!([]) } else { Value::Null };
            map.insert((*field).to_owned(), value);
        }
    }
}
