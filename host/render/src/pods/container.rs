//! The containers of a pod.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use trainyard_api::StackPath;

use super::{NOT_NEGATIVE, PodProblems, names, resources};
use crate::json::{get, items, text};

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

/// The ports of a container or a host.
const PORTS: (i64, i64) = (1, 65_535);

/// Checks all containers of a pod with these volumes.
pub(super) fn check(
    problems: &mut PodProblems,
    at: &StackPath<'_>,
    pod: &Value,
    volumes: &BTreeSet<&str>,
) {
    let mut known = BTreeSet::new();
    let on_host = get(pod, "hostNetwork") == Some(&Value::Bool(true));
    for member in ["containers", "initContainers"] {
        let at = at.field(member);
        let containers = items(pod, member);
        if containers.is_empty() && member == "containers" {
            problems.add(&at, "the pod has no container; add one");
        }
        for (position, container) in containers.iter().enumerate() {
            let at = at.index(position);
            let name = text(container, "name");
            if !known.insert(name) {
                problems.add(
                    &at.field("name"),
                    format!("another container of the pod is named `{name}` too; rename one"),
                );
            }
            one(problems, &at, container, volumes);
            resources::check(problems, &at, container);
            probes(problems, &at, container, member);
            if on_host && member == "containers" {
                host_ports(problems, &at, container);
            }
        }
    }
}

fn one(
    problems: &mut PodProblems,
    at: &StackPath<'_>,
    container: &Value,
    volumes: &BTreeSet<&str>,
) {
    names::label(problems, &at.field("name"), text(container, "name"));
    if text(container, "image").is_empty() {
        let message = "the container has no image; set it here, or in `spec.trainer.image` of the TrainJob for its container `node`";
        problems.add(&at.field("image"), message);
    }
    let policies = ["Always", "IfNotPresent", "Never"];
    problems.word(at, container, "imagePullPolicy", &policies);
    let policies = ["File", "FallbackToLogsOnError"];
    problems.word(at, container, "terminationMessagePolicy", &policies);
    env(problems, at, container);
    ports(problems, at, container);
    mounts(problems, at, container, volumes);
    security(problems, at, container);
}

fn env(problems: &mut PodProblems, at: &StackPath<'_>, container: &Value) {
    let at = at.field("env");
    for (position, var) in items(container, "env").iter().enumerate() {
        let at = at.index(position);
        let name = text(var, "name");
        if !is_env_name_of_pods(name) {
            problems.add(
                &at.field("name"),
                format!("`{name}` is not the name of an env var (printable ASCII characters without `=`); correct it"),
            );
        }
        let Some(from) = get(var, "valueFrom") else {
            continue;
        };
        let at = at.field("valueFrom");
        let sources = from.as_object().map_or(0, |sources| {
            sources.values().filter(|source| source.is_object()).count()
        });
        if sources != 1 {
            problems.add(&at, format!("has {sources} sources; set exactly one"));
        } else if !text(var, "value").is_empty() {
            problems.add(&at, "the env var has a `value` too; remove one of them");
        }
    }
}

/// Whether the text is the name of an env var. A space is allowed, and the length is not limited.
fn is_env_name_of_pods(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'=')
}

fn ports(problems: &mut PodProblems, at: &StackPath<'_>, container: &Value) {
    let at = at.field("ports");
    let mut known = BTreeSet::new();
    for (position, port) in items(container, "ports").iter().enumerate() {
        let at = at.index(position);
        problems.range(&at, port, "containerPort", PORTS);
        if get(port, "hostPort").and_then(Value::as_i64) != Some(0) {
            problems.range(&at, port, "hostPort", PORTS);
        }
        problems.word(&at, port, "protocol", &PROTOCOLS);
        let name = text(port, "name");
        if name.is_empty() {
            continue;
        }
        let form = "the name of a port (at most 15 characters `a-z`, `0-9` and `-`, at least one of them a letter, no `--`, not beginning or ending with `-`)";
        problems.form(&at.field("name"), name, is_port_name, form);
        if !known.insert(name) {
            problems.add(
                &at.field("name"),
                format!("another port of the container is named `{name}` too; rename one"),
            );
        }
    }
}

/// Checks the ports of a container in the network of its machine.
fn host_ports(problems: &mut PodProblems, at: &StackPath<'_>, container: &Value) {
    let at = at.field("ports");
    for (position, port) in items(container, "ports").iter().enumerate() {
        let number = |member| get(port, member).and_then(Value::as_i64);
        let host_port = number("hostPort").filter(|number| *number != 0);
        if host_port.is_some() && host_port != number("containerPort") {
            let at = at.index(position);
            let message = "must equal `containerPort` if the pod has `hostNetwork: true`; remove it, or set both to the same number";
            problems.add(&at.field("hostPort"), message);
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

fn mounts(
    problems: &mut PodProblems,
    at: &StackPath<'_>,
    container: &Value,
    volumes: &BTreeSet<&str>,
) {
    let list_at = at.field("volumeMounts");
    let mut known = BTreeSet::new();
    for (position, mount) in items(container, "volumeMounts").iter().enumerate() {
        let at = list_at.index(position);
        let name = text(mount, "name");
        if !volumes.contains(name) {
            problems.add(
                &at.field("name"),
                format!("the pod has no volume `{name}`; add it to `volumes` of the pod, or remove the mount"),
            );
        }
        let path = text(mount, "mountPath");
        if path.is_empty() {
            problems.add(&at.field("mountPath"), "is empty; set it");
        } else if !known.insert(path) {
            problems.add(
                &at.field("mountPath"),
                format!("another volume is mounted at `{path}` too; change or remove one"),
            );
        }
        for member in ["subPath", "subPathExpr"] {
            let path = text(mount, member);
            if path.starts_with('/') || path.split('/').any(|part| part == "..") {
                // The API server's path has no index here.
                problems.add(
                    &list_at.field(member),
                    format!("`{path}` is not a path inside of the volume; remove a leading `/` and parts `..`"),
                );
            }
        }
    }
}

fn security(problems: &mut PodProblems, at: &StackPath<'_>, container: &Value) {
    let Some(context) = get(container, "securityContext") else {
        return;
    };
    let at = at.field("securityContext");
    for member in ["runAsUser", "runAsGroup"] {
        problems.range(&at, context, member, (0, i64::from(i32::MAX)));
    }
    let is = |member: &str| get(context, member).and_then(Value::as_bool);
    if is("privileged") == Some(true) && is("allowPrivilegeEscalation") == Some(false) {
        problems.add(
            &at,
            "a privileged container cannot have `allowPrivilegeEscalation: false`; remove one of them",
        );
    }
}

/// Checks the probes of a container. Init containers have probes only as sidecars.
fn probes(problems: &mut PodProblems, at: &StackPath<'_>, container: &Value, list: &str) {
    let is_sidecar = text(container, "restartPolicy") == "Always";
    for member in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = get(container, member).filter(|probe| probe.is_object()) else {
            continue;
        };
        let at = at.field(member);
        if list == "initContainers" && !is_sidecar {
            let message = "init containers have no probes, unless their `restartPolicy` is `Always`; remove it";
            problems.add(&at, message);
            continue;
        }
        probe_of(problems, &at, probe, member);
    }
}

fn probe_of(problems: &mut PodProblems, at: &StackPath<'_>, probe: &Value, member: &str) {
    let kinds = ["exec", "httpGet", "tcpSocket", "grpc"];
    let handlers = kinds.iter().filter(|kind| probe.get(**kind).is_some());
    if handlers.count() == 0 {
        problems.add(
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
        problems.range(at, probe, member, NOT_NEGATIVE);
    }
    let successes = get(probe, "successThreshold").and_then(Value::as_i64);
    if member != "readinessProbe" && successes.is_some_and(|successes| successes > 1) {
        let message = format!("is {}, but must be 1 for this probe", json!(successes));
        problems.add(&at.field("successThreshold"), message);
    }
}
