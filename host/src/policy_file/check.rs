//! Checks of a policy file that a JSON Schema cannot express.

use std::collections::{BTreeMap, btree_map::Entry};

use serde_json::{Value, json};
use trainyard_api::{FieldPath, names};
use trainyard_config::FieldError;
use trainyard_model::{
    claims::{self, ClaimPath},
    facts,
    limits::Limits,
    names::{is_dns_label, is_dns_subdomain},
    record::ObeyedDomains,
    text::clean,
};

use super::plugin_path;

/// Returns the field_errors of a policy file that its schema does not find.
pub(super) fn field_errors(policy: &Value) -> Vec<FieldError> {
    let mut field_errors = Vec::new();
    check_domain(policy, &mut field_errors);
    check_catalog(policy, &mut field_errors);
    check_accelerators(policy, &mut field_errors);
    check_obeyed_domains(policy, &mut field_errors);
    check_facts(policy, &mut field_errors);
    check_plugins(policy, &mut field_errors);
    field_errors
}

fn check_domain(policy: &Value, field_errors: &mut Vec<FieldError>) {
    let Some(domain) = policy.get("clusterDomain").and_then(Value::as_str) else {
        return;
    };
    if !is_dns_subdomain(domain) || !domain.split('.').all(is_dns_label) {
        field_errors.push(FieldError {
            field: FieldPath::of(["clusterDomain"]),
            problem: format!(
                "`{}` is not a DNS domain; write labels of 1 to 63 of a-z, 0-9 and `-`, separated by dots, with no `-` at either end",
                clean(domain)
            ),
        });
    }
}

fn check_catalog(policy: &Value, field_errors: &mut Vec<FieldError>) {
    let namespace = policy.get("catalogNamespace").and_then(Value::as_str);
    if let Some(namespace) = namespace.filter(|namespace| !is_dns_label(namespace)) {
        field_errors.push(FieldError {
            field: FieldPath::of(["catalogNamespace"]),
            problem: format!(
                "`{}` is not the name of a namespace: at most 63 of a-z, 0-9 and `-`",
                clean(namespace)
            ),
        });
    }
}

fn check_accelerators(policy: &Value, field_errors: &mut Vec<FieldError>) {
    for (at, name) in texts(policy, "accelerators") {
        // Any valid end of a name may replace the `*`.
        let whole = match name.strip_suffix('*') {
            Some(prefix) => format!("{prefix}x"),
            None => name.to_owned(),
        };
        if !is_resource_name(&whole) {
            field_errors.push(FieldError {
                field: FieldPath::of(["accelerators"]).index(at),
                problem: format!(
                    "`{}` is not the name of an extended resource, such as `example.com/gpu`, or the beginning of several, such as `example.com/mig-*`",
                    clean(name)
                ),
            });
        }
    }
}

/// The domain of keys that describe an application, which are never obeyed.
const EXEMPT: &str = "app.kubernetes.io";

/// Reports domains that no key has, and domains to remove that are not in the list.
fn check_obeyed_domains(policy: &Value, field_errors: &mut Vec<FieldError>) {
    let Some(changes) = policy.get("obeyedDomains") else {
        return;
    };
    let shipped = ObeyedDomains::default();
    let added = texts(changes, "add").filter_map(|(at, domain)| {
        let problem = match domain {
            EXEMPT => format!("no controller obeys keys of `{EXEMPT}`, so it is exempt; remove it"),
            domain if is_dns_subdomain(domain) => return None,
            _ => format!(
                "`{}` is not a DNS domain, such as `example.com`",
                clean(domain)
            ),
        };
        Some(("add", at, problem))
    });
    let removed = texts(changes, "remove");
    let removed = removed.filter(|(_, domain)| !shipped.domains().any(|of| of == *domain));
    let removed = removed.map(|(at, domain)| {
        let shipped: Vec<_> = shipped.domains().collect();
        let problem = format!(
            "`{}` is not in the shipped list, which has {}",
            clean(domain),
            shipped.join(", ")
        );
        ("remove", at, problem)
    });
    field_errors.extend(added.chain(removed).map(|(list, at, problem)| FieldError {
        field: FieldPath::of(["obeyedDomains", list]).index(at),
        problem,
    }));
}

fn check_facts(policy: &Value, field_errors: &mut Vec<FieldError>) {
    let facts = policy.get("facts").and_then(Value::as_object);
    let facts: Vec<_> = facts.into_iter().flatten().collect();
    let problems = facts.iter().filter_map(|(name, _)| {
        Some(FieldError {
            field: FieldPath::of(["facts"]).field(clean(name)),
            problem: facts::name_problem(name)?,
        })
    });
    field_errors.extend(problems);
    let text = |value: &Value| value.as_str().map_or(0, str::len);
    let bytes: usize = facts
        .iter()
        .map(|(name, value)| name.len() + text(value))
        .sum();
    if bytes > facts::MAX_BYTES {
        field_errors.push(FieldError {
            field: FieldPath::of(["facts"]),
            problem: format!(
                "the facts have {bytes} bytes of names and values, but at most {} are allowed; remove some",
                facts::MAX_BYTES
            ),
        });
    }
}

/// Whether it is a valid name of an extended resource: a domain and a name with the syntax of a label.
fn is_resource_name(text: &str) -> bool {
    let Some((domain, name)) = text.split_once('/') else {
        return false;
    };
    let (first, last) = (name.chars().next(), name.chars().next_back());
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    is_dns_subdomain(domain)
        && name.len() <= 63
        && name.chars().all(is_inner)
        && [first, last]
            .iter()
            .all(|end| end.is_some_and(|c| c.is_ascii_alphanumeric()))
}

fn check_plugins(policy: &Value, field_errors: &mut Vec<FieldError>) {
    let mut first = BTreeMap::new();
    let plugins = policy.get("plugins").and_then(Value::as_array);
    for (at, plugin) in plugins.into_iter().flatten().enumerate() {
        if let Some(name) = plugin.get("name").and_then(Value::as_str) {
            match first.entry(name) {
                Entry::Vacant(entry) => _ = entry.insert(at),
                Entry::Occupied(first) => field_errors.push(FieldError {
                    field: plugin_path(at).field("name"),
                    problem: format!(
                        "`{}` is already listed in plugins[{}]; merge the two entries",
                        clean(name),
                        first.get()
                    ),
                }),
            }
        }
        for (of, grant) in texts(plugin, "grants") {
            let problem = match grant.parse::<ClaimPath>() {
                Ok(path) => claims::scope_problem(&path.scope),
                Err(error) => Some(error.to_string()),
            };
            field_errors.extend(problem.map(|problem| FieldError {
                field: plugin_path(at).field("grants").index(of),
                problem: clean(&problem),
            }));
        }
        check_self_references(plugin, at, field_errors);
        check_disabled_for(plugin, at, field_errors);
        check_limits(plugin, at, field_errors);
    }
}

/// Reports a plugin in its own `after`, `before` or `excludes`.
fn check_self_references(plugin: &Value, at: usize, field_errors: &mut Vec<FieldError>) {
    let name = plugin.get("name").and_then(Value::as_str);
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
            field: plugin_path(at).field(key).index(of),
            problem: format!("`{}` {problem}", clean(name)),
        }));
    }
}

/// Reports namespaces and runtimes that cannot exist.
fn check_disabled_for(plugin: &Value, at: usize, field_errors: &mut Vec<FieldError>) {
    let Some(disabled_for) = plugin.get("disabledFor") else {
        return;
    };
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
    let namespaces = texts(disabled_for, "namespaces").filter(|(_, name)| !is_dns_label(name));
    let namespaces = namespaces.map(|(of, name)| ("namespaces", of, no_namespace(name)));
    let runtimes = texts(disabled_for, "runtimes").filter(|(_, name)| !is_runtime(name));
    let runtimes = runtimes.map(|(of, name)| ("runtimes", of, no_runtime(name)));
    field_errors.extend(
        namespaces
            .chain(runtimes)
            .map(|(list, of, problem)| FieldError {
                field: plugin_path(at).fields(["disabledFor", list]).index(of),
                problem,
            }),
    );
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
fn check_limits(plugin: &Value, at: usize, field_errors: &mut Vec<FieldError>) {
    let limits = plugin.get("limits").and_then(Value::as_object);
    let known = json!(Limits::default());
    for (limit, value) in limits.into_iter().flatten() {
        if known.get(limit).is_none() {
            continue;
        }
        if let Err(error) = serde_json::from_value::<Limits>(json!({ limit: value })) {
            field_errors.push(FieldError {
                field: plugin_path(at).fields(["limits", limit]),
                problem: clean(&error.to_string()),
            });
        }
    }
}

/// Returns the strings of a list, with their positions.
fn texts<'v>(value: &'v Value, list: &str) -> impl Iterator<Item = (usize, &'v str)> {
    let items = value.get(list).and_then(Value::as_array);
    let items = items.into_iter().flatten().enumerate();
    items.filter_map(|(at, item)| Some((at, item.as_str()?)))
}
