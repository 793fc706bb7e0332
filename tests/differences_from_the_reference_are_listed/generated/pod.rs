//! Pods and their containers, in runtimes and in patches.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use super::{
    fields, list, one_of,
    parts::{affinity, labels, named, pod_security, scalar, tolerations, word},
};

/// The volumes of pods, which containers mount.
const VOLUMES: [&str; 4] = ["data", "shm", "scripts", "initializer"];

/// Names of init containers.
const INIT: [&str; 3] = ["prepare", "fetch", "warm-up"];

/// Quantities, in many spellings.
pub(super) fn resources() -> BoxedStrategy<Value> {
    one_of(vec![
        json!({"requests": {"cpu": 4}}),
        json!({"requests": {"cpu": "1500m", "memory": "0.5Gi"}}),
        json!({"limits": {"cpu": "2.5", "memory": "1024Mi"}}),
        json!({"limits": {"memory": "64Gi"}}),
        json!({"requests": {"nvidia.com/gpu": 8}, "limits": {"nvidia.com/gpu": 8}}),
        json!({"requests": {"cpu": "16"}, "limits": {"nvidia.com/gpu": "4", "cpu": 16}}),
        json!({"limits": {"nvidia.com/gpu": 1}}),
        json!({"limits": {"amd.com/gpu": 2, "memory": "1e9"}}),
        json!({"limits": {"nvidia.com/mig-1g.10gb": 2, "cpu": 8}}),
        json!({"requests": {"cpu": 8}, "limits": {"google.com/tpu": 4}}),
        json!({"limits": {"nvidia.com/gpumem": 4096, "cpu": 3}}),
        json!({"limits": {"nvidia.com/gpumem": 4096, "nvidia.com/gpu": 2}}),
    ])
}

/// Generates env vars, some of which reference others.
pub(super) fn env(names: &'static [&'static str]) -> BoxedStrategy<Value> {
    let sources = vec![
        json!({"fieldRef": {"fieldPath": "metadata.name"}}),
        json!({"fieldRef": {"apiVersion": "v1", "fieldPath": "status.hostIP"}}),
        json!({"secretKeyRef": {"name": "keys", "key": "token"}}),
        json!({"configMapKeyRef": {"name": "settings", "key": "level", "optional": true}}),
        json!({"resourceFieldRef": {"resource": "limits.cpu", "containerName": "node", "divisor": "1"}}),
        json!({"fileKeyRef": {"volumeName": "data", "path": "env", "key": "KEY"}}),
    ];
    let item = prop_oneof![
        6 => word(&["1", "", "on", "$(A)/data", "$(PET_MASTER_ADDR)", "$(JAX_COORDINATOR_ADDRESS)", "$(DMLC_TRACKER_URI)", "$$(A)"]).prop_map(|value| json!({"value": value})),
        3 => one_of(sources).prop_map(|from| json!({"valueFrom": from})),
        1 => Just(json!({})),
    ];
    named(names, item.boxed())
}

fn mounts() -> BoxedStrategy<Value> {
    list(vec![
        (
            0.5,
            one_of(vec![
                json!({"name": "data", "mountPath": "/data"}),
                json!({"name": "data", "mountPath": "/data", "readOnly": true}),
            ]),
        ),
        (
            0.3,
            Just(json!({"name": "shm", "mountPath": "/dev/shm"})).boxed(),
        ),
        (
            0.2,
            Just(json!({"name": "scripts", "mountPath": "/scripts", "subPath": "a"})).boxed(),
        ),
    ])
}

fn ports() -> BoxedStrategy<Value> {
    one_of(vec![
        json!([{"containerPort": 8080, "name": "http"}]),
        json!([{"containerPort": 8080}]),
        json!([{"containerPort": 8080}, {"containerPort": 9090}]),
        json!([{"containerPort": 29500}]),
        json!([{"containerPort": 29500, "name": "rendezvous"}, {"containerPort": 53, "protocol": "UDP", "name": "dns"}]),
        json!([{"containerPort": 29500, "protocol": "UDP", "name": "side"}]),
    ])
}

/// Generates a container of a runtime, which has a probe with this probability.
fn container(name: &'static str, probed: f64) -> BoxedStrategy<Value> {
    let others = fields(vec![
        (
            "command",
            0.5,
            one_of(vec![
                json!(["python", "train.py"]),
                json!(["torchrun", "train.py"]),
            ]),
        ),
        (
            "args",
            0.3,
            one_of(vec![json!(["--epochs", "3"]), json!([])]),
        ),
        (
            "env",
            0.4,
            env(&[
                "A",
                "B",
                "NCCL_DEBUG",
                "PET_NNODES",
                "JAX_NUM_PROCESSES",
                "DMLC_NUM_WORKER",
            ]),
        ),
        ("ports", 0.3, ports()),
        ("resources", 0.5, resources()),
        ("volumeMounts", 0.4, mounts()),
        (
            "envFrom",
            0.1,
            Just(json!([{"secretRef": {"name": "keys"}}, {"configMapRef": {"name": "settings"}}]))
                .boxed(),
        ),
        ("imagePullPolicy", 0.1, word(&["Always", "IfNotPresent"])),
        (
            "securityContext",
            0.1,
            Just(json!({"capabilities": {"add": ["IPC_LOCK"]}})).boxed(),
        ),
        (
            "readinessProbe",
            probed,
            Just(json!({"httpGet": {"path": "/", "port": 8080}})).boxed(),
        ),
    ]);
    others
        .prop_map(move |mut container| {
            container["name"] = name.into();
            container["image"] = "registry.example.com/torch:2.9".into();
            container
        })
        .boxed()
}

/// Generates the pod spec of a runtime, whose first container has this name.
pub(super) fn of_runtime(name: &'static str) -> BoxedStrategy<Value> {
    let mut all = shared();
    all.extend([
        ("restartPolicy", 0.3, word(&["Never", "OnFailure"])),
        ("priorityClassName", 0.1, word(&["high"])),
        ("hostNetwork", 0.1, Just(json!(true)).boxed()),
    ]);
    // An init container with a probe is invalid.
    let init = list(INIT.map(|name| (0.3, container(name, 0.005))).into());
    let containers = (
        container(name, 0.1),
        prop::option::weighted(0.4, container("logger", 0.1)),
        any::<bool>(),
    );
    let containers = containers.prop_map(|(first, second, swapped)| {
        let mut both: Vec<_> = [Some(first), second].into_iter().flatten().collect();
        if swapped {
            both.reverse();
        }
        Value::from(both)
    });
    let claims = prop::bool::weighted(0.05);
    (fields(all), init, containers, claims)
        .prop_map(|(mut pod, init, containers, claims)| {
            pod["containers"] = containers;
            if claims {
                pod["resourceClaims"] =
                    json!([{"name": "gpu", "resourceClaimTemplateName": "eight"}]);
                pod["containers"][0]["resources"]["claims"] = json!([{"name": "gpu"}]);
            }
            if init != json!([]) {
                pod["initContainers"] = init;
            }
            pod["volumes"] = VOLUMES
                .map(|name| json!({"name": name, "emptyDir": {}}))
                .into_iter()
                .collect();
            pod
        })
        .boxed()
}

fn container_patch(name: &'static str, env_weight: f64) -> BoxedStrategy<Value> {
    let others = fields(vec![
        ("env", env_weight, env(&["A", "B", "PROXY"])),
        ("volumeMounts", 0.4, mounts_of_patch()),
        (
            "securityContext",
            0.2,
            Just(json!({"runAsUser": 7, "capabilities": {"drop": ["ALL"]}})).boxed(),
        ),
    ]);
    others
        .prop_map(move |mut container| {
            container["name"] = name.into();
            container
        })
        .boxed()
}

fn mounts_of_patch() -> BoxedStrategy<Value> {
    one_of(vec![
        json!([{"name": "data", "mountPath": "/data", "readOnly": false}]),
        json!([{"name": "data", "mountPath": "/more"}]),
        json!([{"name": "scripts", "mountPath": "/scripts", "readOnly": true}]),
        json!([{"name": "nowhere", "mountPath": "/nowhere"}]),
    ])
}

fn volumes_of_patch() -> BoxedStrategy<Value> {
    one_of(vec![
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "runs"}}]),
        json!([{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16384Mi"}}]),
        json!([{"name": "extra", "configMap": {"name": "a", "items": [{"key": "a", "path": "b"}]}}]),
        json!([{"name": "extra", "hostPath": {"path": "/mnt"}}, {"name": "scripts", "secret": {"secretName": "b"}}]),
    ])
}

/// Generates the pod spec of a patch. Most patches match the runtime.
pub(super) fn of_patch() -> BoxedStrategy<Value> {
    let mut all = shared();
    all.extend([
        ("volumes", 0.3, volumes_of_patch()),
        (
            "imagePullSecrets",
            0.2,
            Just(json!([{"name": "registry"}])).boxed(),
        ),
        (
            "schedulingGates",
            0.2,
            Just(json!([{"name": "a.example.com/gate"}])).boxed(),
        ),
        (
            "resourceClaims",
            0.03,
            Just(json!([{"name": "nic", "resourceClaimName": "fast"}])).boxed(),
        ),
        (
            "containers",
            0.4,
            list(vec![
                (0.6, container_patch("node", 0.15)),
                (0.2, container_patch("logger", 0.6)),
                (0.03, container_patch("nobody", 0.5)),
            ]),
        ),
        (
            "initContainers",
            0.15,
            list(vec![
                (0.6, container_patch("prepare", 0.5)),
                (0.4, container_patch("fetch", 0.5)),
            ]),
        ),
    ]);
    fields(all)
}

/// Generates the fields that pod specs and patches share.
fn shared() -> Vec<(&'static str, f64, BoxedStrategy<Value>)> {
    vec![
        ("serviceAccountName", 0.2, word(&["trainer", "default"])),
        ("nodeSelector", 0.25, labels()),
        ("affinity", 0.15, affinity()),
        ("tolerations", 0.2, tolerations()),
        ("securityContext", 0.15, pod_security()),
        ("terminationGracePeriodSeconds", 0.15, scalar(1..60)),
    ]
}

/// Generates the objects that the pods' resource claims reference.
pub(super) fn claimed() -> [Value; 2] {
    let spec = json!({"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 8}}]}});
    let metadata = |name: &str| json!({"name": name, "namespace": "ml"});
    [
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata("eight"), "spec": {"spec": spec}}),
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata("fast"), "spec": spec}),
    ]
}
