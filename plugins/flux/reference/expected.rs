//! What the scripts of Flux have to do, and what its pods have to have.

use serde_json::{Map, Value, json};

use crate::{
    expected::{
        container,
        devices::Devices,
        input::{at, behind, of_runtime},
        pods_of,
    },
    form::form,
    seen::Seen,
};

/// The label of Kubernetes nodes with their architecture.
const ARCHITECTURE: &str = "kubernetes.io/arch";

/// Returns what a fact of the scripts has to be.
fn fact(seen: &Seen<'_>, name: &str) -> Option<Value> {
    let trainer = seen.made_trainer();
    let devices = Devices::of(seen, trainer);
    let accelerators = devices.accelerators();
    let explicit = seen.explicit_processes("flux", 2);
    let tasks = explicit.unwrap_or_else(|| accelerators.unwrap_or(1).max(1));
    let namespace = seen.job["metadata"]["namespace"]
        .as_str()
        .unwrap_or("default");
    let set = trainer["name"].as_str().unwrap_or_default();
    let first = format!("{}-{set}-0", seen.name());
    Some(match name {
        "tasksPerNode" => json!(tasks),
        "cores" => json!(devices.cpus.max(tasks)),
        "cpuAffinity" => json!("off"),
        "gpus" | "gpusAskedPerNode" => json!(accelerators.unwrap_or(0)),
        "bind" => json!("tcp://*:%p"),
        "connect" => json!(format!(
            "tcp://%h.{}.{namespace}.svc.cluster.local:%p",
            seen.subdomain()
        )),
        "lead" => json!(format!("{first}-0")),
        "nodes" => json!(pods_of(trainer)),
        "hosts" => match pods_of(trainer) {
            1 => json!(format!("{first}-0")),
            nodes => json!(format!("{first}-[0-{}]", nodes - 1)),
        },
        _ => return None,
    })
}

pub(super) fn is_fact(seen: &Seen<'_>) -> bool {
    let name = seen.path().strip_prefix("data[");
    let name = name.and_then(|name| name.strip_suffix(']'));
    let expected = name.and_then(|name| fact(seen, name));
    expected.is_some() && seen.ours() == expected.as_ref()
}

/// Whether Flux runs the words of the command: the TrainJob's, or else the runtime's.
pub(super) fn runs_the_command(seen: &Seen<'_>) -> bool {
    let job = seen.made_trainer();
    let mut jobs = seen
        .replicated_jobs()
        .filter(|of| of["name"] == job["name"]);
    let runtime = jobs
        .next()
        .map_or(&Value::Null, |job| container(job, "containers", "node"));
    let list = |field: &str| {
        let given = seen.trainer()[field].as_array();
        given
            .or_else(|| runtime[field].as_array())
            .cloned()
            .unwrap_or_default()
    };
    seen.ours() == Some(&json!([list("command"), list("args")].concat()))
}

/// Returns what only Trainyard has at the end of the path, in the pods of a replicated job.
fn of_pods(seen: &Seen<'_>) -> Option<Value> {
    let path = seen.path();
    if path.ends_with("].template.spec.backoffLimit") {
        return Some(json!(0));
    }
    let (set, name) = (seen.set_name(), seen.name());
    let to_pod = format!("spec.replicatedJobs[{set}].template.spec.template.spec");
    let to_node = format!("{to_pod}.containers[node]");
    let runtime = form(&seen.runtime["spec"]["template"]);
    let made = form(seen.job_set());
    let node = at(&made, &to_node).unwrap_or(&Value::Null);
    let is_of_memory = path.contains("[shared-memory]") || path.contains("[/dev/shm]");
    if is_of_memory && at(&runtime, &to_node).is_some_and(has_shared_memory) {
        return of_runtime(seen);
    }
    let mut expected = json!({
        "restartPolicy": "Never",
        "initContainers": {
            "[flux-installer]": installer(seen, &at(&runtime, &to_pod)?["nodeSelector"], node),
            "order": ["flux-installer"],
        },
        "containers": {"[node]": {"volumeMounts": {
            "[/curve]": read_only("flux-curve", "/curve"),
            "[/dev/shm]": mount("shared-memory", "/dev/shm"),
            "[/etc/flux-config]": read_only("flux-config", "/etc/flux-config"),
            "[/mnt/flux]": mount("flux-install", "/mnt/flux"),
            "[/opt/software]": mount("spack-install", "/opt/software"),
        }}},
        "nodeSelector": {ARCHITECTURE: "amd64"},
        "volumes": {
            "[flux-config]": volume("flux-config", "configMap", json!({"name": format!("{name}-flux-entrypoint"), "defaultMode": 0o755})),
            "[flux-curve]": volume("flux-curve", "secret", json!({"secretName": format!("{name}-flux-curve"), "defaultMode": 0o400})),
            "[flux-install]": volume("flux-install", "emptyDir", json!({})),
            "[spack-install]": volume("spack-install", "emptyDir", json!({})),
            "[shared-memory]": volume("shared-memory", "emptyDir", json!({"medium": "Memory", "sizeLimit": memory(node)})),
        },
    });
    if let Some(group) = group(seen) {
        expected["securityContext"] = json!({"fsGroup": group});
    }
    at(&expected, behind(path, ".template.spec.template.spec")?).cloned()
}

fn mount(name: &str, path: &str) -> Value {
    json!({"name": name, "mountPath": path})
}

fn read_only(name: &str, path: &str) -> Value {
    json!({"name": name, "mountPath": path, "readOnly": true})
}

fn volume(name: &str, source: &str, of: Value) -> Value {
    json!({"name": name, source: of})
}

/// Returns whether a container mounts shared memory.
fn has_shared_memory(container: &Value) -> bool {
    let mut mounts = container["volumeMounts"].as_object().into_iter().flatten();
    mounts.any(|(path, _)| {
        let path = path.trim_matches(|bracket| bracket == '[' || bracket == ']');
        path.trim_end_matches('/') == "/dev/shm"
    })
}

/// Returns the size of the shared memory of a container.
fn memory(container: &Value) -> Value {
    let mut lists = ["limits", "requests"].into_iter();
    let amount = lists.find_map(|list| container["resources"][list].get("memory").cloned());
    amount.unwrap_or_else(|| json!("8589934592000m"))
}

/// Returns the init container that installs Flux, for the architecture that a patch or the runtime chooses, with what container `node` has.
fn installer(seen: &Seen<'_>, selector: &Value, node: &Value) -> Value {
    let mut patched = seen.patched_pods();
    let patched = patched.find_map(|pod| pod["nodeSelector"][ARCHITECTURE].as_str());
    let chosen = patched.or_else(|| selector[ARCHITECTURE].as_str());
    let image = match chosen {
        Some("arm64") => "ghcr.io/converged-computing/flux-view-ubuntu:arm-jammy",
        _ => "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy",
    };
    let mut installer = json!({
        "name": "flux-installer", "image": image, "command": ["/bin/bash", "/etc/flux-config/init.sh"],
        "volumeMounts": {
            "[/mnt/flux]": mount("flux-install", "/mnt/flux"),
            "[/etc/flux-config]": read_only("flux-config", "/etc/flux-config"),
        },
    });
    for (field, value) in [
        ("resources", bounded(&node["resources"])),
        ("securityContext", restricted(node)),
    ] {
        if let Some(value) = value {
            installer[field] = value;
        }
    }
    installer
}

/// Returns the part of a container's resources that the installer has too.
fn bounded(resources: &Value) -> Option<Value> {
    let known = ["cpu", "memory", "ephemeral-storage"];
    let mut bounded = Map::new();
    for list in ["requests", "limits"] {
        // A limit is also the request.
        let lists = if list == "requests" {
            &["limits", list][..]
        } else {
            &[list]
        };
        let amounts = lists
            .iter()
            .flat_map(|list| resources[*list].as_object().into_iter().flatten());
        let amounts = amounts.filter(|(name, _)| known.contains(&name.as_str()));
        let amounts: Map<_, _> = amounts
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if !amounts.is_empty() {
            bounded.insert(list.to_owned(), amounts.into());
        }
    }
    (!bounded.is_empty()).then(|| bounded.into())
}

/// Returns the part of a container's security context that restricts it.
fn restricted(container: &Value) -> Option<Value> {
    let context = container["securityContext"].as_object()?;
    let adds = ["capabilities", "privileged", "procMount", "windowsOptions"];
    let kept = context
        .iter()
        .filter(|(name, _)| !adds.contains(&name.as_str()));
    let mut kept: Map<_, _> = kept
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let dropped = &container["securityContext"]["capabilities"]["drop"];
    if dropped.is_array() {
        kept.insert("capabilities".to_owned(), json!({"drop": dropped}));
    }
    (!kept.is_empty()).then(|| kept.into())
}

/// Returns the group of the pod's files.
fn group(seen: &Seen<'_>) -> Option<u64> {
    let pod = &seen.made_trainer()["template"]["spec"]["template"]["spec"];
    let node = container(seen.made_trainer(), "containers", "node");
    let of = |field: &str| {
        let of_node = &node["securityContext"][field];
        if of_node.is_null() {
            &pod["securityContext"][field]
        } else {
            of_node
        }
    };
    match of("runAsUser").as_u64() {
        Some(0) => None,
        Some(user) => Some(
            of("runAsGroup")
                .as_u64()
                .filter(|group| *group != 0)
                .unwrap_or(user),
        ),
        None => (*of("runAsNonRoot") == true).then_some(1000),
    }
}

/// Whether the pods have what Flux needs, or what the runtime has instead.
pub(super) fn is_of_pods(seen: &Seen<'_>) -> bool {
    if seen.path().starts_with("data[") {
        return is_fact(seen);
    }
    if seen.path().contains(".affinity") {
        return spreads(seen);
    }
    let expected = of_pods(seen).or_else(|| of_runtime(seen));
    seen.ours() == expected.as_ref()
}

/// Whether the volume has its own name, and nothing has the other name.
pub(super) fn has_volume(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    if path.ends_with("-flux-entrypoint]") {
        return seen.ours().is_none();
    }
    match path.ends_with(".name") {
        true => seen.ours() == Some(&json!("flux-config")),
        false => is_of_pods(seen),
    }
}

/// Whether pods prefer different machines, in addition to what the reference has there.
pub(super) fn spreads(seen: &Seen<'_>) -> bool {
    let labels = json!({
        "jobset.sigs.k8s.io/jobset-name": seen.name(),
        "jobset.sigs.k8s.io/replicatedjob-name": seen.made_trainer()["name"],
    });
    let term = json!({"weight": 100, "podAffinityTerm": {
        "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels},
    }});
    let preferred = "podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution";
    let mut terms = seen
        .theirs()
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    terms.push(term);
    terms.sort_by_key(|term| form(term).to_string());
    let rest = behind(seen.path(), ".affinity").unwrap_or_default();
    let mut expected =
        json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}});
    if seen.theirs().is_some() && rest != preferred {
        // The reference's members are compared one by one.
        expected = Value::Null;
    }
    let sorted = |value: &Value| {
        let mut items = value.as_array().cloned().unwrap_or_default();
        items.sort_by_key(|item| form(item).to_string());
        json!(items)
    };
    match (at(&expected, rest), seen.ours()) {
        (Some(expected), Some(ours)) if rest == preferred => sorted(expected) == sorted(ours),
        (expected, ours) => expected.is_some() && expected == ours,
    }
}
