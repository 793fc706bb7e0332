//! Probes and the hooks of a container's life.

use serde_json::{Map, Value};
use trainyard_api::StackPath;

use super::{
    FieldProblems, names,
    rules::{self, ANY, NOT_NEGATIVE, PORT, Rule, Shape},
};
use crate::json::get;

/// A probe.
pub(super) static PROBE: Shape = Shape {
    members: &[
        ("exec", &[Rule::Object(&EXEC)]),
        ("failureThreshold", &[NOT_NEGATIVE]),
        ("grpc", &[Rule::Object(&GRPC)]),
        ("httpGet", &[Rule::Object(&HTTP)]),
        ("initialDelaySeconds", &[NOT_NEGATIVE]),
        ("periodSeconds", &[NOT_NEGATIVE]),
        ("successThreshold", &[NOT_NEGATIVE]),
        ("tcpSocket", &[Rule::Object(&SOCKET)]),
        ("terminationGracePeriodSeconds", &[Rule::Range(1, i64::MAX)]),
        ("timeoutSeconds", &[NOT_NEGATIVE]),
    ],
    whole: Some(|problems, at, probe| {
        let handlers = ["exec", "httpGet", "tcpSocket", "grpc"];
        rules::one_of(problems, at, probe, &handlers, "handler");
    }),
    ..ANY
};

/// The hooks of a container.
pub(super) static LIFECYCLE: Shape = Shape {
    members: &[
        ("postStart", &[Rule::Object(&HOOK)]),
        ("preStop", &[Rule::Object(&HOOK)]),
    ],
    ..ANY
};

static HOOK: Shape = Shape {
    members: &[
        ("exec", &[Rule::Object(&EXEC)]),
        ("httpGet", &[Rule::Object(&HTTP)]),
        ("sleep", &[Rule::Object(&SLEEP)]),
        ("tcpSocket", &[Rule::Object(&SOCKET)]),
    ],
    whole: Some(|problems, at, hook| {
        let handlers = ["exec", "httpGet", "sleep", "tcpSocket"];
        rules::one_of(problems, at, hook, &handlers, "handler");
    }),
    ..ANY
};

static EXEC: Shape = Shape {
    needs: &["command"],
    ..ANY
};

static SLEEP: Shape = Shape {
    members: &[("seconds", &[NOT_NEGATIVE])],
    ..ANY
};

static HTTP: Shape = Shape {
    members: &[
        ("httpHeaders", &[Rule::Items(&HEADER)]),
        ("port", &[Rule::Check(port)]),
        ("scheme", &[Rule::Word(&["HTTP", "HTTPS"])]),
    ],
    ..ANY
};

static HEADER: Shape = Shape {
    members: &[("name", &[Rule::NonEmptyText(header)])],
    ..ANY
};

static SOCKET: Shape = Shape {
    members: &[("port", &[Rule::Check(port)])],
    ..ANY
};

static GRPC: Shape = Shape {
    members: &[("port", &[PORT])],
    ..ANY
};

/// Checks a port that is a number or a name.
fn port(problems: &mut FieldProblems, at: &StackPath<'_>, port: &Value, of: &Map<String, Value>) {
    match port {
        Value::String(name) => names::port(problems, at, name),
        _ => PORT.check(problems, at, port, of),
    }
}

fn header(problems: &mut FieldProblems, at: &StackPath<'_>, name: &str) {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        !name.is_empty() && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let form = "the name of an HTTP header (letters, digits and `-`)";
    problems.form(at, name, is_name, form);
}

/// Checks a probe of which a single success is enough.
pub(super) fn one_success(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    probe: &Value,
    _: &Map<String, Value>,
) {
    let successes = get(probe, "successThreshold").and_then(Value::as_i64);
    if let Some(successes) = successes.filter(|successes| *successes > 1) {
        let message = format!("is {successes}, but must be 1 for this probe");
        problems.add(&at.field("successThreshold"), message);
    }
}

/// Checks a probe that stops no container.
pub(super) fn no_grace_period(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    probe: &Value,
    _: &Map<String, Value>,
) {
    let member = "terminationGracePeriodSeconds";
    if get(probe, member).is_some_and(Value::is_number) {
        let message =
            "cannot be set for a readiness probe, because it never stops the container; remove it";
        problems.add(&at.field(member), message);
    }
}
