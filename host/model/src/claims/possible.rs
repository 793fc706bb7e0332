//! Claims that can match nothing are mistakes, and are refused when the manifest is checked.

use std::num::NonZeroU16;

use super::{ClaimPath, ClaimScope, KeyPattern, NamePattern, PodSetPattern, Verb, path::PROTOCOLS};
use crate::{
    names::{is_capability, is_dns_label, is_dns_subdomain, is_env_name, is_qualified_name},
    object::{ObjectKind, ObjectKindError},
    record::{Field, Permission},
    reserved::reserved,
    text::nearest,
};

/// The values of the ancestor label, which the Kubeflow Trainer defines (`Ancestor*` in pkg/constants).
pub(super) const ANCESTORS: [&str; 3] = ["dataset-initializer", "model-initializer", "trainer"];

/// What can follow `@`.
const NAMED_BY_AT: [&str; 4] = [ANCESTORS[0], ANCESTORS[1], ANCESTORS[2], "nodes"];

/// Returns why no plugin can have the claim.
pub(super) fn problem(verb: Verb, path: &ClaimPath) -> Option<String> {
    verb_problem(verb, path)
        .or_else(|| scope_problem(&path.scope))
        .or_else(|| key_problem(path.field, path.key.as_ref()?))
}

/// What is wrong with this kind of access to a field.
fn verb_problem(verb: Verb, path: &ClaimPath) -> Option<String> {
    let is_set = path.key == Some(KeyPattern::Set);
    let problem = match (verb, path.field) {
        (Verb::Read, Field::Objects) => "objects are emitted, not read",
        (Verb::Read, Field::Placement) => "placements cannot be read",
        (Verb::Create, field) if !field.holds_containers() => {
            "only containers and init containers are created; claim other fields in `writes`"
        }
        (Verb::Write, field) if field.holds_containers() => "claim containers in `creates`",
        (Verb::Create | Verb::Write, _) if is_set => "the set of keys cannot be written",
        (Verb::Write, field) if field.permission() == Permission::Host => {
            "only the host writes this field"
        }
        (Verb::Read, field) if is_set && field.is_raw() => {
            "raw members are read one by one; claim each by its name"
        }
        (Verb::Read, Field::JobSpec) if is_set => {
            "the TrainJob's spec is read by pointer; claim `job[POINTER]`"
        }
        (Verb::Read, Field::Catalog) if is_set => NOT_LISTED,
        (Verb::Read, Field::Lookups) if is_set => {
            "to look up whether a kind is served, claim `lookups[VERSION/KIND/#]`"
        }
        _ => return None,
    };
    Some(problem.to_owned())
}

/// Returns what is wrong with the names of pod sets and containers in a claim or a grant.
#[must_use]
pub fn scope_problem(scope: &ClaimScope) -> Option<String> {
    match scope {
        ClaimScope::Job => None,
        ClaimScope::PodSet(pod_sets) => pod_sets_problem(pod_sets),
        ClaimScope::Container { pod_sets, name, .. } => {
            pod_sets_problem(pod_sets).or_else(|| Names::CONTAINER.problem(name))
        }
    }
}

fn pod_sets_problem(pod_sets: &PodSetPattern) -> Option<String> {
    match pod_sets {
        PodSetPattern::Named(key) => Names::POD_SET.problem(key),
        PodSetPattern::Nodes => None,
        PodSetPattern::Ancestor(label) if ANCESTORS.contains(&&**label) => None,
        PodSetPattern::Ancestor(label) => Some(match nearest(label, NAMED_BY_AT) {
            Some(meant) => format!("no pod set is `@{label}`; did you mean `@{meant}`?"),
            None => format!(
                "no pod set is `@{label}`; write `@nodes`, an ancestor (`@{}`), or the name of the pod set without `@`",
                ANCESTORS.join("`, `@")
            ),
        }),
    }
}

/// What is wrong with the key of a field.
fn key_problem(field: Field, key: &KeyPattern) -> Option<String> {
    match field {
        Field::Containers | Field::InitContainers if matches!(key, KeyPattern::Literal(name) if **name == *"@base") => {
            Some("`@base` must be followed by a field of the containers, such as `containers[@base].image`".to_owned())
        }
        Field::Objects => object_problem(key),
        Field::Lookups => lookup_problem(key),
        Field::Catalog => catalog_problem(key),
        Field::JobSpec => pointer_problem(key),
        Field::Ports => port_problem(key),
        Field::PodRaw | Field::ContainerRaw => match key {
            KeyPattern::Literal(member) => field.raw_member_problem(member),
            KeyPattern::Prefix(prefix) => field.raw_prefix_problem(prefix),
            _ => None,
        },
        _ => Names::of(field)?.problem(key),
    }
}

/// The form of the names that are keys of a field.
struct Names {
    /// The kind of thing that is named.
    of: &'static str,
    /// What the name must be.
    form: &'static str,
    is_name: fn(&str) -> bool,
}

impl Names {
    const POD_SET: Self = Self::labels("pod set");
    const CONTAINER: Self = Self::labels("container");

    const fn labels(of: &'static str) -> Self {
        Self {
            of,
            form: "a DNS label: at most 63 of a-z, 0-9 and `-`",
            is_name: is_dns_label,
        }
    }

    const fn of(field: Field) -> Option<Self> {
        Some(match field {
            Field::Containers | Field::InitContainers => Self::CONTAINER,
            Field::Volumes => Self::labels("volume"),
            Field::Tolerations => Self::labels("toleration"),
            Field::AffinityTerms => Self::labels("affinity term"),
            Field::ResourceClaims | Field::ResourceClaimUses => Self::labels("resource claim"),
            Field::SchedulingGates => Self {
                of: "scheduling gate",
                form: "a qualified name, such as `example.com/quota`",
                is_name: is_qualified_name,
            },
            Field::DnsSearches => Self {
                of: "search domain",
                form: "a DNS name, such as `team.svc.cluster.local`",
                is_name: |name| is_dns_subdomain(name.strip_suffix('.').unwrap_or(name)),
            },
            Field::Capabilities => Self {
                of: "capability",
                form: "a Linux capability without `CAP_`, such as `IPC_LOCK`",
                is_name: is_capability,
            },
            Field::Env => Self {
                of: "env var",
                form: "at most 253 printable ASCII characters without `=`",
                is_name: is_env_name,
            },
            _ => return None,
        })
    }

    fn problem(&self, key: &KeyPattern) -> Option<String> {
        let Self { of, form, is_name } = self;
        match key {
            KeyPattern::Literal(name) if !is_name(name) => Some(format!(
                "`{name}` is not a valid {of} name; it must be {form}"
            )),
            // A prefix may be a whole name, or lack one character of it.
            KeyPattern::Prefix(prefix) if !is_name(prefix) && !is_name(&format!("{prefix}0")) => {
                Some(format!(
                    "no {of} name begins with `{prefix}`; it must be {form}"
                ))
            }
            _ => None,
        }
    }
}

/// What is wrong with a pointer into the TrainJob's spec.
fn pointer_problem(key: &KeyPattern) -> Option<String> {
    let (text, is_whole) = match key {
        KeyPattern::Literal(text) => (text, true),
        KeyPattern::Prefix(text) => (text, false),
        _ => return None,
    };
    let is_escape = |after: &str| match after.chars().next() {
        Some(c) => matches!(c, '0' | '1'),
        None => !is_whole,
    };
    let is_pointer =
        (text.is_empty() || text.starts_with('/')) && text.split('~').skip(1).all(is_escape);
    (!is_pointer).then(|| {
        format!("`{text}` is not a JSON pointer (RFC 6901) into the TrainJob's spec, such as `/trainer/args`")
    })
}

/// What is wrong with the number and protocol of a port.
fn port_problem(key: &KeyPattern) -> Option<String> {
    // Parsing alone accepts `+80` and `080`, which no port is compared with.
    let is_number = |text: &str| {
        let number = text.parse::<NonZeroU16>();
        number.is_ok_and(|number| number.to_string() == text)
    };
    let (text, is_port) = match key {
        KeyPattern::Literal(text) => {
            let parts = text.split_once('/');
            let is_port = parts.is_some_and(|(number, protocol)| {
                is_number(number) && PROTOCOLS.contains(&protocol)
            });
            (text, is_port)
        }
        KeyPattern::Prefix(text) => {
            let is_begun = |part: &str| PROTOCOLS.iter().any(|it| it.starts_with(part));
            let is_port = match text.split_once('/') {
                Some((number, protocol)) => is_number(number) && is_begun(protocol),
                None => is_number(text),
            };
            (text, is_port)
        }
        _ => return None,
    };
    (!is_port).then(|| {
        format!("`{text}` is not a port; give its number and protocol, such as `29500/TCP`")
    })
}

/// What is wrong with a claim on objects of the cluster.
fn lookup_problem(key: &KeyPattern) -> Option<String> {
    const NO_LOOKUP: &str = "it must name an API version, a kind and an object, such as `lookups[v1/ConfigMap/tracing]`";
    let problem = match key {
        KeyPattern::Objects(objects) => objects.example().problem(),
        KeyPattern::Literal(_) => Some(NO_LOOKUP),
        // The kind is still incomplete.
        KeyPattern::Prefix(text) => (text.matches('/').count() > 2).then_some(NO_LOOKUP),
        _ => None,
    };
    problem.map(str::to_owned)
}

/// Objects of the catalog are looked up by name only.
const NOT_LISTED: &str = "objects in the catalog are looked up one by one; name an object or the beginning of names, such as `catalog[v1/ConfigMap/sites]`";

/// What is wrong with a claim on objects of the catalog.
fn catalog_problem(key: &KeyPattern) -> Option<String> {
    match key {
        KeyPattern::Objects(objects)
            if matches!(objects.names, NamePattern::Served | NamePattern::List) =>
        {
            Some(NOT_LISTED.to_owned())
        }
        key => lookup_problem(key),
    }
}

/// What is wrong with a claim on objects that the plugin emits.
fn object_problem(key: &KeyPattern) -> Option<String> {
    const NO_OBJECT: &str = "it must name an API version, a kind and a suffix, such as `objects[v1/ConfigMap/-scripts]`";
    let KeyPattern::Objects(objects) = key else {
        return Some(NO_OBJECT.to_owned());
    };
    let kind = &objects.kind;
    match ObjectKind::new(&objects.api_version, kind) {
        Ok(kind) => suffix_problem(&kind, &objects.names),
        Err(ObjectKindError::Powerful) => {
            Some(format!("no plugin may emit a {kind}, even with a grant"))
        }
        Err(ObjectKindError::ClusterScoped) => Some(format!(
            "a {kind} is cluster-scoped, and a plugin emits objects in the TrainJob's namespace only"
        )),
        Err(ObjectKindError::Malformed) => Some(NO_OBJECT.to_owned()),
    }
}

/// What is wrong with what follows the TrainJob's name in the name of an object.
fn suffix_problem(kind: &ObjectKind, names: &NamePattern) -> Option<String> {
    let (suffix, is_whole) = match names {
        NamePattern::Served => ("#", true),
        NamePattern::List => ("*", true),
        NamePattern::Literal(suffix) => (&**suffix, true),
        NamePattern::Prefix(suffix) => (&**suffix, false),
    };
    let is_start = !is_whole && suffix.is_empty();
    if !is_start && !kind.allows_suffix(suffix) {
        let rule = "the suffix that follows the TrainJob's name must begin with `-`";
        return Some(match suffix.is_empty() {
            true => format!("{rule}; only an object outside the core group may have no suffix"),
            false => rule.to_owned(),
        });
    }
    // A name can continue: with a hash of the content, or after a prefix.
    let is_part = [suffix, &format!("{suffix}0"), &format!("{suffix}-0")]
        .iter()
        .any(|suffix| is_dns_subdomain(&format!("a{suffix}")));
    if !is_part {
        return Some(format!(
            "with the suffix `{suffix}`, the object's name would not be a DNS subdomain"
        ));
    }
    // A prefix may end like a reserved name and still match names that do not; reserved ones are refused when they are emitted.
    let reserved = is_whole.then(|| reserved(suffix)).flatten()?;
    Some(format!("{reserved}; choose another suffix"))
}
