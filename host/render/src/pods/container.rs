//! The containers of a pod.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use trainyard_model::names::is_env_name;

use super::{Faults, NOT_NEGATIVE, list, names, resources, text};
use crate::trail::Trail;

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

/// The ports of a container or a host.
const PORTS: (i64, i64) = (1, 65_535);

/// Checks all containers of a pod with these volumes.
pub(super) fn check(faults: &mut Faults, at: &Trail<'_>, pod: &Value, volumes: &BTreeSet<&str>) {
    let mut known = BTreeSet::new();
    for member in ["containers", "initContainers"] {
        let at = at.member(member);
        let containers = list(pod, member);
        if containers.is_empty() && member == "containers" {
            faults.add(&at, "the pod has no container; add one");
        }
        for (position, container) in containers.iter().enumerate() {
            let at = at.item(position);
            let name = text(container, "name");
            if !known.insert(name) {
                faults.add(
                    &at.member("name"),
                    format!("another container of the pod is named `{name}` too; rename one"),
                );
            }
            one(faults, &at, container, volumes);
            resources::check(faults, &at, container);
            probes(faults, &at, container, member);
        }
    }
}

fn one(faults: &mut Faults, at: &Trail<'_>, container: &Value, volumes: &BTreeSet<&str>) {
    names::label(faults, &at.member("name"), text(container, "name"));
    if text(container, "image").is_empty() {
        let message = "the container has no image; set it here, or in `spec.trainer.image` of the TrainJob for its container `node`";
        faults.add(&at.member("image"), message);
    }
    let policies = ["Always", "IfNotPresent", "Never"];
    faults.word(at, container, "imagePullPolicy", &policies);
    let policies = ["File", "FallbackToLogsOnError"];
    faults.word(at, container, "terminationMessagePolicy", &policies);
    env(faults, at, container);
    ports(faults, at, container);
    mounts(faults, at, container, volumes);
    security(faults, at, container);
}

fn env(faults: &mut Faults, at: &Trail<'_>, container: &Value) {
    let at = at.member("env");
    for (position, var) in list(container, "env").iter().enumerate() {
        let at = at.item(position);
        let name = text(var, "name");
        if !is_env_name_of_pods(name) {
            faults.add(
                &at.member("name"),
                format!("`{name}` is not the name of an env var (printable ASCII characters without `=`); correct it"),
            );
        }
        let Some(from) = var.get("valueFrom") else {
            continue;
        };
        let at = at.member("valueFrom");
        let sources = from.as_object().map_or(0, |sources| {
            sources.values().filter(|source| source.is_object()).count()
        });
        if sources != 1 {
            faults.add(&at, format!("has {sources} sources; set exactly one"));
        } else if !text(var, "value").is_empty() {
            faults.add(&at, "the env var has a `value` too; remove one of them");
        }
    }
}

/// Whether the text is the name of an env var. A space is allowed.
fn is_env_name_of_pods(name: &str) -> bool {
    is_env_name(&name.replace(' ', "_")) || name.len() > 253
}

fn ports(faults: &mut Faults, at: &Trail<'_>, container: &Value) {
    let at = at.member("ports");
    let mut known = BTreeSet::new();
    for (position, port) in list(container, "ports").iter().enumerate() {
        let at = at.item(position);
        faults.range(&at, port, "containerPort", PORTS);
        if port.get("hostPort").and_then(Value::as_i64) != Some(0) {
            faults.range(&at, port, "hostPort", PORTS);
        }
        faults.word(&at, port, "protocol", &PROTOCOLS);
        let name = text(port, "name");
        if name.is_empty() {
            continue;
        }
        let form = "the name of a port (at most 15 characters `a-z`, `0-9` and `-`, at least one of them a letter, no `--`, not beginning or ending with `-`)";
        faults.form(&at.member("name"), name, is_port_name, form);
        if !known.insert(name) {
            faults.add(
                &at.member("name"),
                format!("another port of the container is named `{name}` too; rename one"),
            );
        }
    }
}

fn is_port_name(name: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    name.len() <= 15
        && name.bytes().all(is_inner)
        && name.bytes().any(|b| b.is_ascii_lowercase())
        && !name.contains("--")
        && !name.starts_with('-')
        && !name.ends_with('-')
}

fn mounts(faults: &mut Faults, at: &Trail<'_>, container: &Value, volumes: &BTreeSet<&str>) {
    let list_at = at.member("volumeMounts");
    let mut known = BTreeSet::new();
    for (position, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at = list_at.item(position);
        let name = text(mount, "name");
        if !volumes.contains(name) {
            faults.add(
                &at.member("name"),
                format!("the pod has no volume `{name}`; add it to `volumes` of the pod, or remove the mount"),
            );
        }
        let path = text(mount, "mountPath");
        if path.is_empty() {
            faults.add(&at.member("mountPath"), "is empty; set it");
        } else if !known.insert(path) {
            faults.add(
                &at.member("mountPath"),
                format!("another volume is mounted at `{path}` too; change or remove one"),
            );
        }
        for member in ["subPath", "subPathExpr"] {
            let path = text(mount, member);
            if path.starts_with('/') || path.split('/').any(|part| part == "..") {
                // The API server names no item.
                faults.add(
                    &list_at.member(member),
                    format!("`{path}` is not a path inside of the volume; remove a leading `/` and parts `..`"),
                );
            }
        }
    }
}

fn security(faults: &mut Faults, at: &Trail<'_>, container: &Value) {
    let Some(context) = container.get("securityContext") else {
        return;
    };
    let at = at.member("securityContext");
    for member in ["runAsUser", "runAsGroup"] {
        faults.range(&at, context, member, (0, i64::from(i32::MAX)));
    }
    let is = |member: &str| context.get(member).and_then(Value::as_bool);
    if is("privileged") == Some(true) && is("allowPrivilegeEscalation") == Some(false) {
        faults.add(
            &at,
            "a privileged container cannot have `allowPrivilegeEscalation: false`; remove one of them",
        );
    }
}

/// Checks the probes of a container. Init containers have probes only as sidecars.
fn probes(faults: &mut Faults, at: &Trail<'_>, container: &Value, list: &str) {
    let is_sidecar = text(container, "restartPolicy") == "Always";
    for member in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get(member).filter(|probe| probe.is_object()) else {
            continue;
        };
        let at = at.member(member);
        if list == "initContainers" && !is_sidecar {
            let message = "init containers have no probes, unless their `restartPolicy` is `Always`; remove it";
            faults.add(&at, message);
            continue;
        }
        probe_of(faults, &at, probe, member);
    }
}

fn probe_of(faults: &mut Faults, at: &Trail<'_>, probe: &Value, member: &str) {
    let kinds = ["exec", "httpGet", "tcpSocket", "grpc"];
    let handlers = kinds.iter().filter(|kind| probe.get(**kind).is_some());
    if handlers.count() == 0 {
        faults.add(
            at,
            "has no handler; set one of exec, httpGet, tcpSocket and grpc",
        );
    }
    for member in [
        "failureThreshold",
        "initialDelaySeconds",
        "periodSeconds",
        "successThreshold",
        "timeoutSeconds",
    ] {
        faults.range(at, probe, member, NOT_NEGATIVE);
    }
    let successes = probe.get("successThreshold").and_then(Value::as_i64);
    if member != "readinessProbe" && successes.is_some_and(|successes| successes > 1) {
        let message = format!("is {}, but must be 1 for this probe", json!(successes));
        faults.add(&at.member("successThreshold"), message);
    }
}
