//! The env vars of a container, and the fields of the pod that they and volumes read.

use serde_json::{Map, Value};
use trainyard_api::StackPath;
use trainyard_model::quantity::Quantity;

use super::{
    FieldProblems, names,
    rules::{self, ANY, Rule, Shape},
};

/// An env var.
pub(super) static VAR: Shape = Shape {
    members: &[
        ("name", &[Rule::Text(var_name)]),
        (
            "valueFrom",
            &[Rule::Check(one_value), Rule::Object(&SOURCE)],
        ),
    ],
    needs: &["name"],
    ..ANY
};

static SOURCE: Shape = Shape {
    members: &[
        ("configMapKeyRef", &[Rule::Object(&KEY)]),
        ("fieldRef", &[Rule::Object(&VAR_FIELD)]),
        ("resourceFieldRef", &[Rule::Object(&RESOURCE)]),
        ("secretKeyRef", &[Rule::Object(&KEY)]),
    ],
    ..ANY
};

static KEY: Shape = Shape {
    members: &[
        ("key", &[Rule::Text(names::config_key)]),
        ("name", &[Rule::Text(names::object)]),
    ],
    needs: &["key", "name"],
    ..ANY
};

static VAR_FIELD: Shape = Shape {
    members: &[("fieldPath", &[Rule::Text(field_of_var)])],
    needs: &["fieldPath"],
    ..ANY
};

/// A field of the pod in a file.
pub(super) static FILE_FIELD: Shape = Shape {
    members: &[("fieldPath", &[Rule::Text(field_of_file)])],
    needs: &["fieldPath"],
    ..ANY
};

static RESOURCE: Shape = Shape {
    needs: &["resource"],
    ..RESOURCE_MEMBERS
};

/// A resource of a container in a file.
pub(super) static FILE_RESOURCE: Shape = Shape {
    needs: &["containerName", "resource"],
    ..RESOURCE_MEMBERS
};

const RESOURCE_MEMBERS: Shape = Shape {
    members: &[
        ("divisor", &[Rule::Check(divisor)]),
        ("resource", &[Rule::Text(resource)]),
    ],
    ..ANY
};

/// A ConfigMap or Secret whose keys become env vars.
pub(super) static FROM: Shape = Shape {
    members: &[
        ("configMapRef", &[Rule::Object(&NAMED)]),
        ("prefix", &[Rule::Text(var_name)]),
        ("secretRef", &[Rule::Object(&NAMED)]),
    ],
    whole: Some(|problems, at, from| {
        rules::one_of(problems, at, from, &["configMapRef", "secretRef"], "source");
    }),
    ..ANY
};

static NAMED: Shape = Shape {
    members: &[("name", &[Rule::Text(names::object)])],
    needs: &["name"],
    ..ANY
};

/// Checks the name of an env var. A space is allowed, and the length is not limited.
fn var_name(problems: &mut FieldProblems, at: &StackPath<'_>, name: &str) {
    if !name.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'=') {
        problems.add(
            at,
            format!("`{name}` is not the name of an env var (printable ASCII characters without `=`); correct it"),
        );
    }
}

/// Checks that an env var has one source and no value beside it.
fn one_value(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    from: &Value,
    var: &Map<String, Value>,
) {
    let sources = from.as_object().map_or(0, |sources| {
        sources.values().filter(|source| source.is_object()).count()
    });
    let value = var.get("value").and_then(Value::as_str);
    if sources != 1 {
        problems.add(at, format!("has {sources} sources; set exactly one"));
    } else if value.is_some_and(|value| !value.is_empty()) {
        problems.add(at, "the env var has a `value` too; remove one of them");
    }
}

fn field_of_var(problems: &mut FieldProblems, at: &StackPath<'_>, path: &str) {
    let known = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    // An older name of `spec.nodeName`.
    if path != "spec.host" {
        field(problems, at, path, &known);
    }
}

fn field_of_file(problems: &mut FieldProblems, at: &StackPath<'_>, path: &str) {
    let known = [
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
    ];
    field(problems, at, path, &known);
}

/// Checks a field of the pod that a container reads: one of those, a label or an annotation.
fn field(problems: &mut FieldProblems, at: &StackPath<'_>, path: &str, known: &[&str]) {
    let of_map = |map: &str| {
        path.strip_prefix(map)
            .is_some_and(|key| key.starts_with('['))
    };
    if !known.contains(&path) && !of_map("metadata.labels") && !of_map("metadata.annotations") {
        let known = known.join(", ");
        problems.add(
            at,
            format!("is `{path}`, but must be one of {known}, metadata.labels['KEY'] and metadata.annotations['KEY']"),
        );
    }
}

fn resource(problems: &mut FieldProblems, at: &StackPath<'_>, name: &str) {
    let (list, resource) = name.split_once('.').unwrap_or(("", name));
    let is_known = matches!(resource, "cpu" | "memory" | "ephemeral-storage");
    if !matches!(list, "limits" | "requests") || !is_known && !resource.starts_with("hugepages-") {
        problems.add(
            at,
            format!("is `{name}`, but must be `limits.` or `requests.` followed by cpu, memory, ephemeral-storage or hugepages-SIZE"),
        );
    }
}

/// Checks the unit in which a container reads one of its resources.
fn divisor(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    divisor: &Value,
    of: &Map<String, Value>,
) {
    const CPU: &[&str] = &["1m", "1"];
    const BYTES: &[&str] = &[
        "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
    ];
    let resource = of.get("resource").and_then(Value::as_str);
    let known = match resource.and_then(|name| name.split_once('.')) {
        Some((_, "cpu")) => CPU,
        _ => BYTES,
    };
    let Some(unit) = Quantity::read(divisor).filter(|unit| unit.compare(Quantity::ZERO).is_ne())
    else {
        return;
    };
    if !known.contains(&unit.to_string().as_str()) {
        let known = known.join(", ");
        problems.add(at, format!("is {unit}, but must be one of {known}"));
    }
}
