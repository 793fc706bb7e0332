//! Claims, compared with what changed by other code than the host's.

use serde_json::Value;
use trainyard_model::{
    claims::{ClaimPath, ClaimScope, KeyPattern, NamePattern, PodSetPattern, Variable},
    object::EmittedObject,
    plugin_info::PluginInfo,
    record::{Datum, EntryScope, Field, Owner, Permission, Record},
};

/// The domains of the labels and annotations that only claims by their names allow.
const OBEYED: [&str; 3] = ["kubernetes.io", "k8s.io", "x-k8s.io"];

/// The domain below one of them whose keys only describe.
const DESCRIBED: &str = "app.kubernetes.io";

/// An entry of the record, by names.
pub(super) struct Place {
    pod_set: Option<(String, Option<String>, bool)>,
    /// The list and the name of the container, who added it, and whether it is of the runtime.
    container: Option<(Field, String, Owner)>,
    field: Field,
    key: String,
}

impl Place {
    pub(super) fn of(record: &Record, (scope, field, key): &(EntryScope, Field, String)) -> Self {
        let (mut pod_set, mut container) = (None, None);
        let set = match scope {
            EntryScope::Job => None,
            EntryScope::PodSet(at) => Some(*at),
            EntryScope::Container(id) => {
                let found = record.container(*id).unwrap();
                container = Some((found.list, found.name.to_string(), found.home));
                Some(found.pod_set)
            }
        };
        if let Some(set) = set {
            let set = record.pod_set(set).unwrap();
            let ancestor = set.ancestor.as_deref().map(str::to_owned);
            pod_set = Some((set.name.to_string(), ancestor, set.counts_nodes));
        }
        Self {
            pod_set,
            container,
            field: *field,
            key: key.clone(),
        }
    }

    /// Whether only the name of the key claims it.
    fn is_obeyed(&self) -> bool {
        let domain = self.key.split_once('/').map_or("", |(domain, _)| domain);
        let is_in = |of: &&str| domain == *of || domain.ends_with(&format!(".{of}"));
        self.field.is_metadata() && domain != DESCRIBED && OBEYED.iter().any(is_in)
    }
}

/// Whether the plugin may change the place.
pub(super) fn allow(plugin: &PluginInfo, config: &Value, rank: u16, place: &Place) -> bool {
    if let Some((_, _, home)) = &place.container
        && *home == Owner::Plugin(rank)
        && !matches!(place.field, Field::ContainerRaw | Field::Capabilities)
    {
        return true;
    }
    let claims = &plugin.manifest.claims;
    if place.field.holds_containers() {
        return claims
            .creates
            .iter()
            .any(|claim| names(claim, config, place));
    }
    claims
        .writes
        .iter()
        .any(|claim| names(claim, config, place))
}

/// Whether the plugin may emit the object.
pub(super) fn allow_object(plugin: &PluginInfo, object: &EmittedObject) -> bool {
    let mut keys = plugin.manifest.claims.writes.iter().map(|claim| &claim.key);
    keys.any(|key| {
        let Some(KeyPattern::Objects(claimed)) = key else {
            return false;
        };
        let is_named = match &claimed.names {
            NamePattern::Literal(suffix) => *object.suffix == **suffix,
            NamePattern::Prefix(prefix) => object.suffix.starts_with(&**prefix),
            NamePattern::Served | NamePattern::List => false,
        };
        let is_of_kind = *object.kind.kind() == *claimed.kind
            && *object.kind.api_version() == *claimed.api_version;
        is_named && is_of_kind
    })
}

fn names(claim: &ClaimPath, config: &Value, place: &Place) -> bool {
    let matches = |pattern: &KeyPattern, key: &str| matches(pattern, config, key);
    let of_pod_set = |pattern: &PodSetPattern| {
        let (name, ancestor, is_node) = place.pod_set.as_ref().unwrap();
        match pattern {
            PodSetPattern::Named(key) => matches(key, name),
            PodSetPattern::Ancestor(wanted) => ancestor.as_deref() == Some(&**wanted),
            PodSetPattern::Nodes => *is_node,
        }
    };
    let of_scope = match (&claim.scope, &place.pod_set, &place.container) {
        (ClaimScope::Job, None, None) => true,
        (ClaimScope::PodSet(pattern), Some(_), None) => of_pod_set(pattern),
        (
            ClaimScope::Container {
                pod_sets,
                list,
                name,
            },
            Some(_),
            Some((in_list, of, home)),
        ) => {
            let is_named = match name {
                KeyPattern::Base => !matches!(home, Owner::Plugin(_)),
                name => matches(name, of),
            };
            of_pod_set(pod_sets) && list == in_list && is_named
        }
        _ => false,
    };
    let of_key = match &claim.key {
        None => true,
        Some(KeyPattern::Literal(key)) if place.field == Field::Mounts => {
            clean(key) == clean(&place.key)
        }
        Some(KeyPattern::Literal(key)) => **key == *place.key,
        Some(_) if place.is_obeyed() => false,
        Some(key) => matches(key, &place.key),
    };
    claim.field == place.field && of_scope && of_key
}

/// A path without empty parts and a slash at its end.
fn clean(path: &str) -> String {
    let parts: Vec<_> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    parts.join("/")
}

fn matches(pattern: &KeyPattern, config: &Value, key: &str) -> bool {
    match pattern {
        KeyPattern::Any => true,
        KeyPattern::Literal(literal) => **literal == *key,
        KeyPattern::Prefix(prefix) => key.starts_with(&**prefix),
        KeyPattern::Variable(Variable::Job) => key == "llama",
        KeyPattern::Variable(Variable::Config(at)) => {
            config.pointer(at).and_then(Value::as_str) == Some(key)
        }
        KeyPattern::Variable(Variable::Port { pointer, protocol }) => config
            .pointer(pointer)
            .and_then(Value::as_u64)
            .is_some_and(|number| key == format!("{number}/{protocol}")),
        KeyPattern::Set | KeyPattern::Objects(_) | KeyPattern::Base => false,
    }
}

/// Checks a change by a plugin that was granted nothing beyond the default.
pub(super) fn check_default(place: &Place, value: Option<&Datum>) {
    let permission = place.field.permission();
    let (field, key) = (place.field, &place.key);
    assert!(
        matches!(permission, Permission::Default | Permission::OwnOnly),
        "{field}[{key}] changed without a grant"
    );
    assert!(
        !place.is_obeyed(),
        "{field}[{key}] changed without a grant by name"
    );
    let Some(value) = value.and_then(Datum::to_json) else {
        return;
    };
    let members = || {
        value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
    };
    match field {
        Field::Volumes => {
            let sources: Vec<_> = members().filter(|name| *name != "name").collect();
            let is_own = |at: &str| {
                value
                    .pointer(at)
                    .and_then(|name| name.as_str())
                    .is_some_and(|name| name.starts_with("llama"))
            };
            let is_allowed = match sources.as_slice() {
                ["emptyDir"] => true,
                ["configMap"] => is_own("/configMap/name"),
                ["secret"] => is_own("/secret/secretName"),
                _ => false,
            };
            assert!(is_allowed, "{field}[{key}]: {value}");
        }
        Field::Ports => assert!(
            !members().any(|name| name.starts_with("host")),
            "{field}[{key}]: {value}"
        ),
        _ => {}
    }
}
