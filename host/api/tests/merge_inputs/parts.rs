//! The parts of pod specs.
#![allow(clippy::indexing_slicing)]

use std::ops::Range;

use proptest::{prelude::*, sample::select, strategy::BoxedStrategy};
use serde_json::{Map, Value, json};

pub fn word(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    select(words).prop_map(Value::from).boxed()
}

pub fn scalar(range: Range<i64>) -> BoxedStrategy<Value> {
    range.prop_map(Value::from).boxed()
}

/// An object with some of the fields, in any order.
pub fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let each: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| {
            prop::option::weighted(0.5, value.prop_map(move |value| (name, value)))
        })
        .collect();
    each.prop_shuffle()
        .prop_map(|fields| {
            let given = fields.into_iter().flatten();
            Value::Object(
                given
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect(),
            )
        })
        .boxed()
}

/// An object with that field, whatever else it has.
pub fn with(
    name: &'static str,
    value: BoxedStrategy<Value>,
    others: BoxedStrategy<Value>,
) -> BoxedStrategy<Value> {
    (value, others)
        .prop_map(move |(value, mut others)| {
            others[name] = value;
            others
        })
        .boxed()
}

/// A list of items with some of the names, in any order.
pub fn named(names: &'static [&'static str], item: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    keyed("name", names, item)
}

fn keyed(
    key: &'static str,
    names: &'static [&'static str],
    item: BoxedStrategy<Value>,
) -> BoxedStrategy<Value> {
    let chosen = Just(names.to_vec()).prop_shuffle();
    (chosen, prop::collection::vec(item, 1..=names.len().min(3)))
        .prop_map(move |(names, items)| {
            let with_key = |(name, item): (&str, Value)| {
                let mut map = Map::from_iter([(key.to_owned(), Value::from(name))]);
                map.extend(item.as_object().cloned().unwrap_or_default());
                Value::Object(map)
            };
            names.into_iter().zip(items).map(with_key).collect()
        })
        .boxed()
}

pub fn labels() -> BoxedStrategy<Value> {
    const KEYS: [&str; 4] = [
        "zone",
        "pool",
        "example.com/team",
        "kueue.x-k8s.io/queue-name",
    ];
    prop::collection::btree_map(select(KEYS.to_vec()), select(&["a", "b", "c"][..]), 1..4)
        .prop_map(|map| {
            map.into_iter()
                .map(|(key, value)| (key.to_owned(), json!(value)))
                .collect()
        })
        .boxed()
}

pub fn container() -> BoxedStrategy<Value> {
    let ports = json!([{"containerPort": 29500, "name": "rendezvous"}, {"containerPort": 80, "protocol": "UDP"}]);
    object(vec![
        (
            "image",
            word(&["registry.example.com/a:1", "registry.example.com/b:2"]),
        ),
        ("command", Just(json!(["python", "train.py"])).boxed()),
        ("args", Just(json!(["--epochs", "3"])).boxed()),
        ("env", env()),
        ("ports", Just(ports).boxed()),
        ("volumeMounts", mounts()),
        (
            "resources",
            Just(json!({"requests": {"cpu": "2"}, "limits": {"nvidia.com/gpu": "8"}})).boxed(),
        ),
        ("securityContext", security()),
        (
            "readinessProbe",
            Just(json!({"httpGet": {"path": "/", "port": 8080}})).boxed(),
        ),
    ])
}

pub fn container_patch() -> BoxedStrategy<Value> {
    object(vec![
        ("env", env()),
        ("volumeMounts", mounts()),
        ("securityContext", security()),
    ])
}

fn env() -> BoxedStrategy<Value> {
    let from = prop_oneof![
        word(&["status.hostIP", "metadata.name"])
            .prop_map(|path| json!({"fieldRef": {"fieldPath": path}})),
        word(&["token", "key"])
            .prop_map(|key| json!({"secretKeyRef": {"name": "keys", "key": key}})),
        word(&["token", "key"]).prop_map(
            |key| json!({"configMapKeyRef": {"name": "keys", "key": key, "optional": true}})
        ),
    ];
    let item = prop_oneof![
        word(&["1", "$(A)/data", "on"]).prop_map(|value| json!({"value": value})),
        from.prop_map(|from| json!({"valueFrom": from})),
        Just(json!({})),
    ];
    named(
        &["A", "B", "NCCL_DEBUG", "RANK", "PET_NNODES"],
        item.boxed(),
    )
}

fn mounts() -> BoxedStrategy<Value> {
    let item = object(vec![
        ("subPath", word(&["a", "b"])),
        ("readOnly", Just(json!(true)).boxed()),
        ("mountPropagation", word(&["HostToContainer"])),
    ]);
    let named_volume = (word(&["data", "shm", "keys"]), item).prop_map(|(name, mut item)| {
        item["name"] = name;
        item
    });
    keyed(
        "mountPath",
        &["/data", "/dev/shm", "/keys", "/etc/scripts"],
        named_volume.boxed(),
    )
}

pub fn volume() -> BoxedStrategy<Value> {
    let items = Just(json!([{"key": "a", "path": "b"}])).boxed();
    let config_map = object(vec![
        ("name", word(&["a", "b"])),
        ("items", items.clone()),
        ("defaultMode", scalar(256..512)),
    ]);
    let secret = object(vec![("secretName", word(&["a", "b"])), ("items", items)]);
    let empty_dir = object(vec![
        ("medium", word(&["Memory"])),
        ("sizeLimit", word(&["1Gi", "64Gi"])),
    ]);
    let sources = json!([{"configMap": {"name": "a"}}, {"secret": {"name": "b"}}]);
    // The reference's type writes absent sources as null, which would take out the runtime's.
    let projected = scalar(256..512)
        .prop_map(move |mode| json!({"defaultMode": mode, "sources": sources.clone()}))
        .boxed();
    let claim = word(&["a", "b"]).prop_map(|name| json!({"claimName": name}));
    let of = |source: &'static str, value: BoxedStrategy<Value>| {
        value
            .prop_map(move |value| json!({ source: value }))
            .boxed()
    };
    prop_oneof![
        of("configMap", config_map),
        of("secret", secret),
        of("emptyDir", empty_dir),
        of("projected", projected),
        of("persistentVolumeClaim", claim.boxed()),
        Just(json!({})).boxed(),
    ]
    .boxed()
}

fn security() -> BoxedStrategy<Value> {
    let capabilities = object(vec![
        ("add", Just(json!(["IPC_LOCK", "SYS_PTRACE"])).boxed()),
        ("drop", Just(json!(["ALL"])).boxed()),
    ]);
    object(vec![
        ("runAsUser", scalar(1..2000)),
        ("runAsNonRoot", Just(json!(true)).boxed()),
        ("capabilities", capabilities),
        ("seccompProfile", seccomp()),
    ])
}

fn seccomp() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(json!({"type": "RuntimeDefault"})),
        Just(json!({"type": "Localhost", "localhostProfile": "a.json"})),
    ]
    .boxed()
}

pub fn pod_security() -> BoxedStrategy<Value> {
    let sysctl = word(&["net.core.somaxconn", "kernel.shm_rmid_forced"])
        .prop_map(|name| json!([{"name": name, "value": "1"}]));
    object(vec![
        ("fsGroup", scalar(1..2000)),
        (
            "supplementalGroups",
            prop::collection::vec(scalar(1..9), 1..4)
                .prop_map(Value::from)
                .boxed(),
        ),
        ("sysctls", sysctl.boxed()),
        ("seccompProfile", seccomp()),
    ])
}

pub fn affinity() -> BoxedStrategy<Value> {
    let term = || {
        word(&["zone", "pool"]).prop_map(
            |key| json!({"matchExpressions": [{"key": key, "operator": "In", "values": ["a"]}]}),
        )
    };
    let terms =
        prop::collection::vec(term(), 1..3).prop_map(|terms| json!({"nodeSelectorTerms": terms}));
    let preferred = (scalar(1..100), term())
        .prop_map(|(weight, preference)| json!([{"weight": weight, "preference": preference}]));
    let node = object(vec![
        (
            "requiredDuringSchedulingIgnoredDuringExecution",
            terms.boxed(),
        ),
        (
            "preferredDuringSchedulingIgnoredDuringExecution",
            preferred.boxed(),
        ),
    ]);
    let pods = word(&["zone", "rack"]).prop_map(|key| {
        json!({"requiredDuringSchedulingIgnoredDuringExecution":
            [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": "x"}}}]})
    });
    object(vec![
        ("nodeAffinity", node),
        ("podAffinity", pods.clone().boxed()),
        ("podAntiAffinity", pods.boxed()),
    ])
}

pub fn tolerations() -> BoxedStrategy<Value> {
    let one = word(&["nvidia.com/gpu", "spot", "maintenance"])
        .prop_map(|key| json!({"key": key, "operator": "Exists", "effect": "NoSchedule"}));
    prop::collection::vec(one, 1..4)
        .prop_map(Value::from)
        .boxed()
}
