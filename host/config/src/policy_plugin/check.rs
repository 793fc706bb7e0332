//! Checks of a PolicyPlugin that a JSON Schema cannot express.

use serde_json::{Value, json};
use trainyard_api::{FieldPath, names};
use trainyard_model::{
    claims::{self, ClaimPath},
    limits::Limits,
    names::{is_dns_label, is_dns_subdomain},
    text::clean,
};

use crate::{FieldError, rendering::fact_errors, texts};

/// Returns the errors of a PolicyPlugin that its schema does not find.
pub(super) fn object(object: &Value) -> Vec<FieldError> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    let at = FieldPath::of(["spec"]);
    let mut field_errors = Vec::new();
    if let Some(name) = name.filter(|name| !is_dns_label(name)) {
        field_errors.push(FieldError {
            field: FieldPath::of(["metadata", "name"]),
            problem: format!(
                "`{}` is not the name of a plugin; write 1 to 63 of a-z, 0-9 and `-`, with no `-` at either end",
                clean(name)
            ),
        });
    }
    if let Some(spec) = object.get("spec") {
        field_errors.extend(settings(name, spec, &at));
        check_source(spec, &at, &mut field_errors);
        check_facts(name, spec, &at, &mut field_errors);
        check_exclusive(spec, &at, &mut field_errors);
        if let Some(selector) = spec.get("enabledFor") {
            check_selector(selector, &at.field("enabledFor"), &mut field_errors);
        }
    }
    field_errors
}

/// Returns the errors of the settings of the plugin `name`, at `at`, that their schema does not find.
pub(crate) fn settings(name: Option<&str>, plugin: &Value, at: &FieldPath) -> Vec<FieldError> {
    let mut field_errors = Vec::new();
    for (of, grant) in texts(plugin, "grants") {
        let problem = match grant.parse::<ClaimPath>() {
            Ok(path) => claims::scope_problem(&path.scope),
            Err(error) => Some(error.to_string()),
        };
        field_errors.extend(problem.map(|problem| FieldError {
            field: at.field("grants").index(of),
            problem: clean(&problem),
        }));
    }
    check_self_references(name, plugin, at, &mut field_errors);
    if let Some(selector) = plugin.get("disabledFor") {
        check_selector(selector, &at.field("disabledFor"), &mut field_errors);
    }
    check_limits(plugin, at, &mut field_errors);
    field_errors
}

/// Reports a source of no kind or of two, and a file that is not a name.
fn check_source(spec: &Value, at: &FieldPath, field_errors: &mut Vec<FieldError>) {
    let Some(source) = spec.get("source") else {
        return;
    };
    let at = at.field("source");
    let mut report = |field: FieldPath, problem: String| {
        field_errors.push(FieldError { field, problem });
    };
    match (source.get("oci"), source.get("file")) {
        (None, None) => report(
            at,
            "has no source; write `oci: {reference: REGISTRY/REPOSITORY@sha256:DIGEST}` or `file: {name: NAME.wasm}`, or remove it for a built-in plugin".to_owned(),
        ),
        (Some(_), Some(_)) => report(
            at,
            "has both `oci` and `file`; remove one of the two".to_owned(),
        ),
        (None, Some(file)) => {
            let name = file.get("name").and_then(Value::as_str);
            let is_path = |name: &&str| name.contains(['/', '\\']) || matches!(*name, "." | "..");
            if let Some(name) = name.filter(is_path) {
                report(
                    at.fields(["file", "name"]),
                    format!(
                        "`{}` is a path; write the name of a file of the plugin directory, such as `rdma.wasm`",
                        clean(name)
                    ),
                );
            }
        }
        (Some(oci), None) => {
            let reference = oci.get("reference").and_then(Value::as_str);
            let follow = oci.get("follow").and_then(Value::as_bool) == Some(true);
            let problem = reference.and_then(|reference| reference_problem(reference, follow));
            if let Some(problem) = problem {
                report(at.fields(["oci", "reference"]), problem);
            }
        }
    }
}

/// Returns what is wrong with a reference, as far as it can be seen without a client of registries.
fn reference_problem(reference: &str, follow: bool) -> Option<String> {
    let text = clean(reference);
    let (name, digest) = match reference.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (reference, None),
    };
    let is_digest = |digest: &str| {
        digest.strip_prefix("sha256:").is_some_and(|hex| {
            hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        })
    };
    if name.starts_with("oci:") {
        return Some(format!(
            "`{text}` is a folder, which a PolicyPlugin cannot name; copy the plugin into a registry with `trainyard plugin copy`, or use `file` in place of `oci`"
        ));
    }
    if !name.contains('/') {
        return Some(format!(
            "`{text}` has no registry; write `REGISTRY/REPOSITORY@sha256:DIGEST`"
        ));
    }
    match digest {
        Some(digest) if !is_digest(digest) => Some(format!(
            "`{text}` does not end in a digest; write `@sha256:` and 64 lowercase hexadecimal digits"
        )),
        Some(_) if follow => Some(format!(
            "`{text}` has a digest, but `follow` is true, and a digest never changes; remove the digest or `follow`"
        )),
        None if !follow => Some(format!(
            "`{text}` is a tag, which may be moved; write `{}@sha256:DIGEST` with the digest that `trainyard plugin inspect {text}` prints, or set `follow: true`",
            clean(name)
        )),
        _ => None,
    }
}

/// Reports facts with a name that belongs to another plugin.
fn check_facts(
    name: Option<&str>,
    spec: &Value,
    at: &FieldPath,
    field_errors: &mut Vec<FieldError>,
) {
    let (Some(name), Some(facts)) = (name, spec.get("facts")) else {
        return;
    };
    let at = at.field("facts");
    let own = |fact: &&String| {
        fact.split_once('/')
            .is_some_and(|(domain, _)| domain == name)
    };
    let names = facts.as_object().into_iter().flat_map(|facts| facts.keys());
    field_errors.extend(names.filter(|fact| !own(fact)).map(|fact| FieldError {
        field: at.field(clean(fact)),
        problem: format!(
            "does not begin with `{}/`; rename it, or move it to `rendering.facts` of the controller's configuration, which has the facts for all plugins",
            clean(name)
        ),
    }));
    field_errors.extend(fact_errors(facts, &at));
}

/// Reports a plugin that is both disabled for some TrainJobs and enabled for some only.
fn check_exclusive(spec: &Value, at: &FieldPath, field_errors: &mut Vec<FieldError>) {
    if spec.get("disabledFor").is_some() && spec.get("enabledFor").is_some() {
        field_errors.push(FieldError {
            field: at.field("enabledFor"),
            problem: "cannot be combined with `disabledFor`; remove one of the two".to_owned(),
        });
    }
}

/// Reports a plugin in its own `after`, `before` or `excludes`.
fn check_self_references(
    name: Option<&str>,
    plugin: &Value,
    at: &FieldPath,
    field_errors: &mut Vec<FieldError>,
) {
    for (key, problem) in [
        ("after", "cannot run after itself"),
        ("before", "cannot run before itself"),
        (
            "excludes",
            "excludes itself; to disable the plugin, set `disabled: true`",
        ),
    ] {
        let itself = texts(plugin, key).filter(|(_, other)| Some(*other) == name);
        field_errors.extend(itself.map(|(of, name)| FieldError {
            field: at.field(key).index(of),
            problem: format!("`{}` {problem}", clean(name)),
        }));
    }
}

/// Reports namespaces and runtimes that cannot exist.
fn check_selector(selector: &Value, at: &FieldPath, field_errors: &mut Vec<FieldError>) {
    let no_namespace = |name: &str| {
        format!(
            "`{}` is not the name of a namespace; write 1 to 63 of a-z, 0-9 and `-`, with no `-` at either end",
            clean(name)
        )
    };
    let no_runtime = |name: &str| {
        format!(
            "`{}` is not a runtime; write `{}/NAME`, or `{}/NAMESPACE/NAME` for a runtime in a namespace",
            clean(name),
            names::CLUSTER_TRAINING_RUNTIME,
            names::TRAINING_RUNTIME
        )
    };
    let namespaces = texts(selector, "namespaces").filter(|(_, name)| !is_dns_label(name));
    let namespaces = namespaces.map(|(of, name)| ("namespaces", of, no_namespace(name)));
    let runtimes = texts(selector, "runtimes").filter(|(_, name)| !is_runtime(name));
    let runtimes = runtimes.map(|(of, name)| ("runtimes", of, no_runtime(name)));
    let problems = namespaces.chain(runtimes);
    field_errors.extend(problems.map(|(list, of, problem)| FieldError {
        field: at.field(list).index(of),
        problem,
    }));
}

/// Whether it is a kind of runtimes and the name of one, with its namespace if the kind has namespaces. A name alone would also be that of a
/// runtime that users of a namespace create.
fn is_runtime(text: &str) -> bool {
    match text.split('/').collect::<Vec<_>>().as_slice() {
        [names::CLUSTER_TRAINING_RUNTIME, name] => is_dns_subdomain(name),
        [names::TRAINING_RUNTIME, namespace, name] => {
            is_dns_label(namespace) && is_dns_subdomain(name)
        }
        _ => false,
    }
}

/// Reports numbers that the schema accepts but that are too large for a limit.
fn check_limits(plugin: &Value, at: &FieldPath, field_errors: &mut Vec<FieldError>) {
    let limits = plugin.get("limits").and_then(Value::as_object);
    let known = json!(Limits::default());
    for (limit, value) in limits.into_iter().flatten() {
        if known.get(limit).is_none() {
            continue;
        }
        if let Err(error) = serde_json::from_value::<Limits>(json!({ limit: value })) {
            field_errors.push(FieldError {
                field: at.fields(["limits", limit]),
                problem: clean(&error.to_string()),
            });
        }
    }
}
