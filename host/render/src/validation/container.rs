//! The containers of a pod.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use trainyard_api::StackPath;

use super::{
    FieldProblems, env, handlers, names, resources,
    rules::{self, ANY, PORT, Rule, Shape},
    security,
};
use crate::json::{get, get_at, items, text};

static CONTAINER: Shape = Shape {
    members: &[
        ("env", &[Rule::Items(&env::VAR)]),
        ("envFrom", &[Rule::Items(&env::FROM)]),
        (
            "imagePullPolicy",
            &[Rule::Word(&["Always", "IfNotPresent", "Never"])],
        ),
        ("lifecycle", &[Rule::Object(&handlers::LIFECYCLE)]),
        (
            "livenessProbe",
            &[
                Rule::Object(&handlers::PROBE),
                Rule::Check(handlers::one_success),
            ],
        ),
        ("name", &[Rule::Text(names::label)]),
        (
            "ports",
            &[
                Rule::Items(&CONTAINER_PORT),
                Rule::Unique(
                    "name",
                    "another port of the container is named",
                    "rename one",
                ),
            ],
        ),
        (
            "readinessProbe",
            &[
                Rule::Object(&handlers::PROBE),
                Rule::Check(handlers::no_grace_period),
            ],
        ),
        (
            "resizePolicy",
            &[
                Rule::Items(&RESIZE_POLICY),
                Rule::Unique(
                    "resourceName",
                    "another policy of the container is for",
                    "remove one",
                ),
            ],
        ),
        ("resources", &[Rule::Check(resources::check)]),
        ("securityContext", &[Rule::Object(&security::OF_CONTAINER)]),
        (
            "startupProbe",
            &[
                Rule::Object(&handlers::PROBE),
                Rule::Check(handlers::one_success),
            ],
        ),
        (
            "terminationMessagePolicy",
            &[Rule::Word(&["File", "FallbackToLogsOnError"])],
        ),
        (
            "volumeDevices",
            &[Rule::Unique(
                "devicePath",
                "another device has the path",
                "change or remove one",
            )],
        ),
        (
            "volumeMounts",
            &[
                Rule::Items(&MOUNT),
                Rule::Unique(
                    "mountPath",
                    "another volume is mounted at",
                    "change or remove one",
                ),
            ],
        ),
    ],
    ..ANY
};

static CONTAINER_PORT: Shape = Shape {
    members: &[
        ("containerPort", &[PORT]),
        ("hostPort", &[Rule::Range(0, 65_535)]),
        ("name", &[Rule::Text(names::port)]),
        ("protocol", &[Rule::Word(&["TCP", "UDP", "SCTP"])]),
    ],
    ..ANY
};

static MOUNT: Shape = Shape {
    members: &[
        (
            "mountPropagation",
            &[Rule::Word(&["Bidirectional", "HostToContainer", "None"])],
        ),
        (
            "recursiveReadOnly",
            &[
                Rule::Word(&["Disabled", "Enabled", "IfPossible"]),
                Rule::Check(read_only),
            ],
        ),
        ("subPath", &[Rule::Text(names::inner_path)]),
        (
            "subPathExpr",
            &[Rule::Text(names::inner_path), Rule::Without("subPath")],
        ),
    ],
    needs: &["mountPath"],
    ..ANY
};

static RESIZE_POLICY: Shape = Shape {
    members: &[
        ("resourceName", &[Rule::Word(&["cpu", "memory"])]),
        (
            "restartPolicy",
            &[Rule::Word(&["NotRequired", "RestartContainer"])],
        ),
    ],
    ..ANY
};

/// Checks a mount below which nothing can be written.
fn read_only(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    mode: &Value,
    mount: &Map<String, Value>,
) {
    if !matches!(mode.as_str(), Some("Enabled" | "IfPossible")) {
        return;
    }
    if mount.get("readOnly").and_then(Value::as_bool) != Some(true) {
        let message = "requires `readOnly: true`; set it, or remove this field";
        problems.add(at, message);
    }
    let propagation = mount.get("mountPropagation").and_then(Value::as_str);
    if !matches!(propagation, None | Some("" | "None")) {
        let message = "cannot be set together with `mountPropagation`; remove one";
        problems.add(at, message);
    }
}

/// The pod of a container.
struct Pod<'v> {
    spec: &'v Map<String, Value>,
    /// The source of each volume.
    volumes: BTreeMap<&'v str, &'v Value>,
    /// The ports of the host that the pod's containers have.
    host_ports: BTreeSet<(&'v str, &'v str, i64)>,
}

impl Pod<'_> {
    fn is(&self, member: &str) -> Option<bool> {
        self.spec.get(member).and_then(Value::as_bool)
    }
}

/// Checks all containers of a pod. The path is that of `containers`.
pub(super) fn check(problems: &mut FieldProblems, at: &StackPath<'_>, spec: &Value) {
    let Value::Object(members) = spec else {
        return;
    };
    let volumes = items(spec, "volumes").iter();
    let mut pod = Pod {
        spec: members,
        volumes: volumes
            .map(|volume| (text(volume, "name"), volume))
            .collect(),
        host_ports: BTreeSet::new(),
    };
    let mut known = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        let at = at.field(list);
        let containers = items(spec, list);
        if containers.is_empty() && list == "containers" {
            problems.add(&at, "the pod has no container; add one");
        }
        for (position, container) in containers.iter().enumerate() {
            let at = at.index(position);
            let name = text(container, "name");
            if !known.insert(name) {
                problems.add(
                    &at.field("name"),
                    format!("another container of the pod is named `{name}`; rename one"),
                );
            }
            if list == "initContainers" {
                // Init containers run one after the other.
                pod.host_ports.clear();
                init_container(problems, &at, container);
            }
            in_pod(problems, &at, container, &mut pod, list);
            rules::check(problems, &at, &CONTAINER, container);
        }
    }
}

/// Checks what only sidecars among the init containers have.
fn init_container(problems: &mut FieldProblems, at: &StackPath<'_>, container: &Value) {
    let Value::Object(members) = container else {
        return;
    };
    if text(container, "restartPolicy") == "Always" {
        return;
    }
    for (member, value) in members {
        let what = match member.as_str() {
            "livenessProbe" | "readinessProbe" | "startupProbe" => "probes",
            "lifecycle" => "`lifecycle`",
            _ => continue,
        };
        // An API server drops the signal, the only other member, if its feature gate is off.
        let hooks = ["postStart", "preStop"];
        let is_set = match member.as_str() {
            "lifecycle" => hooks.iter().any(|hook| get(value, hook).is_some()),
            _ => value.is_object(),
        };
        if is_set {
            problems.add(
                &at.field(member),
                format!("an init container cannot have {what}, unless its `restartPolicy` is `Always`; remove it"),
            );
        }
    }
}

/// Checks what depends on the pod.
fn in_pod<'v>(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    container: &'v Value,
    pod: &mut Pod<'v>,
    list: &str,
) {
    let mut has_image = false;
    for (member, value) in container.as_object().into_iter().flatten() {
        let at = at.field(member);
        match (member.as_str(), value) {
            ("image", Value::String(image)) => has_image = !image.is_empty(),
            ("ports", Value::Array(ports)) => host_ports(problems, &at, ports, pod, list),
            ("volumeMounts", Value::Array(mounts)) => {
                volume_mounts(problems, &at, mounts, container, pod);
            }
            ("volumeDevices", Value::Array(devices)) => devices_of(problems, &at, devices, pod),
            ("securityContext", context)
                if text(context, "procMount") == "Unmasked"
                    && pod.is("hostUsers") != Some(false) =>
            {
                let message = "`Unmasked` requires `hostUsers: false` of the pod; set it, or remove this field";
                problems.add(&at.field("procMount"), message);
            }
            _ => {}
        }
    }
    if !has_image {
        let message = "the container has no image; set it here, or in `spec.trainer.image` of the TrainJob for its container `node`";
        problems.add(&at.field("image"), message);
    }
}

/// Checks the ports of a container in the network of its machine.
fn host_ports<'v>(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    ports: &'v [Value],
    pod: &mut Pod<'v>,
    list: &str,
) {
    let on_host = list == "containers" && pod.is("hostNetwork") == Some(true);
    for (position, port) in ports.iter().enumerate() {
        let number = |member| get(port, member).and_then(Value::as_i64);
        let Some(host_port) = number("hostPort").filter(|number| *number != 0) else {
            continue;
        };
        let at = at.index(position);
        let at = at.field("hostPort");
        if on_host && Some(host_port) != number("containerPort") {
            let message = "must equal `containerPort` if the pod has `hostNetwork: true`; remove it, or set both to the same number";
            problems.add(&at, message);
        }
        let protocol = match text(port, "protocol") {
            "" => "TCP",
            protocol => protocol,
        };
        if !pod
            .host_ports
            .insert((protocol, text(port, "hostIP"), host_port))
        {
            let message =
                format!("another port of the pod has the host port {host_port}; change one");
            problems.add(&at, message);
        }
    }
}

fn volume_mounts(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    mounts: &[Value],
    container: &Value,
    pod: &Pod<'_>,
) {
    for (position, mount) in mounts.iter().enumerate() {
        let at = at.index(position);
        let name = text(mount, "name");
        if !pod.volumes.contains_key(name) && !problems.claimed.contains(name) {
            problems.add(
                &at.field("name"),
                format!("the pod has no volume `{name}`; add it to `volumes` of the pod, or remove the mount"),
            );
        }
        let is_privileged = || get_at(container, &["securityContext", "privileged"]);
        if text(mount, "mountPropagation") == "Bidirectional"
            && is_privileged() != Some(&Value::Bool(true))
        {
            let message = "`Bidirectional` requires a privileged container; use `HostToContainer`, or remove this field";
            problems.add(&at.field("mountPropagation"), message);
        }
    }
}

/// Checks the block devices of a container.
fn devices_of(problems: &mut FieldProblems, at: &StackPath<'_>, devices: &[Value], pod: &Pod<'_>) {
    for (position, device) in devices.iter().enumerate() {
        let at = at.index(position);
        let name = text(device, "name");
        let volume = pod.volumes.get(name);
        let is_block = |source: &str| volume.is_some_and(|volume| volume.get(source).is_some());
        let claimed = problems.claimed.contains(name);
        let message = if volume.is_none() && !claimed {
            format!(
                "the pod has no volume `{name}`; add it to `volumes` of the pod, or remove the device"
            )
        } else if !claimed && !is_block("persistentVolumeClaim") && !is_block("ephemeral") {
            format!(
                "the volume `{name}` is not a PersistentVolumeClaim; mount it instead, or remove the device"
            )
        } else {
            continue;
        };
        problems.add(&at.field("name"), message);
    }
}
