//! The security contexts of pods and containers.

use serde_json::{Map, Value};
use trainyard_api::StackPath;

use super::{
    FieldProblems, names,
    rules::{ANY, ID, Rule, Shape},
};
use crate::json::{get, items, text};

const PROFILES: Rule = Rule::Word(&["Localhost", "RuntimeDefault", "Unconfined"]);

/// The security context of a pod.
pub(super) static OF_POD: Shape = Shape {
    members: &[
        ("appArmorProfile", &[Rule::Object(&APP_ARMOR)]),
        ("fsGroup", &[ID]),
        (
            "fsGroupChangePolicy",
            &[Rule::Word(&["Always", "OnRootMismatch"])],
        ),
        ("runAsGroup", &[ID]),
        ("runAsUser", &[ID]),
        ("seccompProfile", &[Rule::Object(&SECCOMP)]),
        ("supplementalGroups", &[Rule::Each(&ID)]),
        (
            "supplementalGroupsPolicy",
            &[Rule::Word(&["Merge", "Strict"])],
        ),
        (
            "sysctls",
            &[
                Rule::Items(&SYSCTL),
                Rule::Unique("name", "another sysctl of the pod is named", "remove one"),
            ],
        ),
    ],
    ..ANY
};

/// The security context of a container.
pub(super) static OF_CONTAINER: Shape = Shape {
    members: &[
        ("appArmorProfile", &[Rule::Object(&APP_ARMOR)]),
        ("procMount", &[Rule::Word(&["Default", "Unmasked"])]),
        ("runAsGroup", &[ID]),
        ("runAsUser", &[ID]),
        ("seccompProfile", &[Rule::Object(&SECCOMP)]),
    ],
    whole: Some(escalation),
    ..ANY
};

static APP_ARMOR: Shape = Shape {
    members: &[("type", &[PROFILES])],
    needs: &["type"],
    whole: Some(localhost),
};

static SECCOMP: Shape = Shape {
    members: &[
        ("localhostProfile", &[Rule::Text(names::profile_path)]),
        ("type", &[PROFILES]),
    ],
    needs: &["type"],
    whole: Some(localhost),
};

static SYSCTL: Shape = Shape {
    members: &[("name", &[Rule::Text(sysctl)])],
    needs: &["name"],
    ..ANY
};

/// Checks that a profile has a file if it is one of the node, and none otherwise.
fn localhost(problems: &mut FieldProblems, at: &StackPath<'_>, profile: &Value) {
    let file = profile
        .get("localhostProfile")
        .is_some_and(Value::is_string);
    let at = at.field("localhostProfile");
    match text(profile, "type") {
        "Localhost" if !file => problems.add(
            &at,
            "must be set if `type` is `Localhost`; set it, or use another type",
        ),
        "RuntimeDefault" | "Unconfined" if file => {
            let message = "requires `type: Localhost`; set it, or remove this field";
            problems.add(&at, message);
        }
        _ => {}
    }
}

/// Checks that a container that must not gain privileges does not have them.
fn escalation(problems: &mut FieldProblems, at: &StackPath<'_>, context: &Value) {
    let is = |member: &str| get(context, member).and_then(Value::as_bool);
    if is("allowPrivilegeEscalation") != Some(false) {
        return;
    }
    if is("privileged") == Some(true) {
        problems.add(
            at,
            "a privileged container cannot have `allowPrivilegeEscalation: false`; remove one of them",
        );
    }
    let capabilities = get(context, "capabilities").unwrap_or(&Value::Null);
    let mut added = items(capabilities, "add").iter();
    if added.any(|capability| capability == "CAP_SYS_ADMIN") {
        problems.add(
            at,
            "a container with the capability `CAP_SYS_ADMIN` cannot have `allowPrivilegeEscalation: false`; remove one of them",
        );
    }
}

fn sysctl(problems: &mut FieldProblems, at: &StackPath<'_>, name: &str) {
    let is_part = |part: &str| {
        let is_outer = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let is_inner = |b: u8| is_outer(b) || matches!(b, b'-' | b'_');
        part.bytes().all(is_inner)
            && part.bytes().next().is_some_and(is_outer)
            && part.bytes().last().is_some_and(is_outer)
    };
    if name.len() > 253 || !name.split(['.', '/']).all(is_part) {
        problems.add(
            at,
            format!(
                "`{name}` is not the name of a sysctl, such as `net.core.somaxconn`; correct it"
            ),
        );
    }
}

/// Checks that a pod sets no sysctls of a namespace that it shares with the host.
pub(super) fn host_sysctls(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    context: &Value,
    pod: &Map<String, Value>,
) {
    let at = at.field("sysctls");
    for (position, sysctl) in items(context, "sysctls").iter().enumerate() {
        let name = text(sysctl, "name").replace('/', ".");
        let of_ipc = ["kernel.shm", "kernel.msg", "fs.mqueue."];
        let member = if name.starts_with("net.") {
            "hostNetwork"
        } else if name == "kernel.sem" || of_ipc.iter().any(|ipc| name.starts_with(ipc)) {
            "hostIPC"
        } else {
            continue;
        };
        if pod.get(member) == Some(&Value::Bool(true)) {
            let at = at.index(position);
            let message =
                format!("`{name}` cannot be set together with `{member}: true`; remove one");
            problems.add(&at.field("name"), message);
        }
    }
}
