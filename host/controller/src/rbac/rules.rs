//! The rules of a role under construction.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::ApiResource;
use trainyard_model::{
    claims::{ClaimPath, NamePattern},
    record::Field,
};

use super::{
    Note,
    claimed::{WatchScope, objects_of, watched},
};
use crate::kubernetes::kind_of;

/// The verbs on objects that a plugin emits.
const EMIT: [&str; 3] = ["create", "get", "patch"];

/// The verbs on Secrets that a plugin emits, which are created once and never changed.
const MAKE: [&str; 2] = ["create", "get"];

/// The verbs of a watch, which begins with a list.
const WATCH: [&str; 2] = ["list", "watch"];

/// The API groups of Kubernetes with a dot in their names. Their resource names follow the rule by which other names are guessed.
pub(super) const BUILT_IN_GROUPS: [&str; 17] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// The API groups of the schedulers that built-in policies support. Their resource names follow the same rule.
const SCHEDULER_GROUPS: [&str; 2] = ["scheduling.volcano.sh", "scheduling.x-k8s.io"];

/// Why a claim gets no permissions.
pub(super) enum Refusal {
    NoKind,
    Secret,
}

/// Verbs by group and resource.
#[derive(Default)]
pub(super) struct Rules(BTreeMap<(String, String), Verbs>);

#[derive(Default)]
struct Verbs {
    /// On every object.
    all: BTreeSet<&'static str>,
    /// On objects by name.
    named: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Rules {
    fn of(&mut self, group: &str, resource: &str) -> &mut Verbs {
        let key = (group.to_owned(), resource.to_owned());
        self.0.entry(key).or_default()
    }

    pub(super) fn allow(&mut self, group: &str, resource: &str, verbs: &[&'static str]) {
        self.of(group, resource).all.extend(verbs);
    }

    pub(super) fn allow_named(
        &mut self,
        group: &str,
        resource: &str,
        name: &str,
        verbs: &[&'static str],
    ) {
        let known = self.of(group, resource);
        for verb in verbs {
            known.named.entry(verb).or_default().insert(name.to_owned());
        }
    }

    /// Adds the permissions for a claim. Returns a note if a name is guessed.
    pub(super) fn allow_claim(&mut self, path: &ClaimPath) -> Result<Option<Note>, Refusal> {
        let objects = objects_of(path).ok_or(Refusal::NoKind)?;
        let (api_version, kind) = (&*objects.api_version, &*objects.kind);
        let served = kind_of(api_version, kind);
        let group = served.group.as_str();
        let resource = ApiResource::from_gvk(&served).plural;
        let is_secret = group.is_empty() && resource == "secrets";
        if path.field == Field::Objects {
            let verbs: &[_] = if is_secret { &MAKE } else { &EMIT };
            self.allow(group, &resource, verbs);
        } else if is_secret {
            return Err(Refusal::Secret);
        } else {
            match &objects.names {
                // Discovery is open to all authenticated users.
                NamePattern::Served => return Ok(None),
                NamePattern::List => self.allow(group, &resource, &["list"]),
                NamePattern::Literal(name) => self.allow_named(group, &resource, name, &["get"]),
                NamePattern::Prefix(prefix) if prefix.is_empty() => {
                    self.allow(group, &resource, &["get", "list"]);
                }
                NamePattern::Prefix(_) => self.allow(group, &resource, &["get"]),
            }
            match watched(objects) {
                None => {}
                Some(WatchScope::Named(name)) => self.allow_named(group, &resource, &name, &WATCH),
                Some(WatchScope::Kind) => self.allow(group, &resource, &WATCH),
            }
        }
        let is_known = !group.contains('.')
            || BUILT_IN_GROUPS.contains(&group)
            || SCHEDULER_GROUPS.contains(&group);
        Ok((!is_known).then(|| Note::Guessed {
            resource,
            kind: kind.to_owned(),
            api_version: api_version.to_owned(),
        }))
    }

    /// Returns a rule for each resource and each set of names.
    pub(super) fn list(self) -> Vec<PolicyRule> {
        let mut rules = Vec::new();
        for ((group, resource), verbs) in self.0 {
            let rule = |verbs: BTreeSet<&str>, names: Option<BTreeSet<String>>| PolicyRule {
                api_groups: Some(vec![group.clone()]),
                resources: Some(vec![resource.clone()]),
                resource_names: names.map(|names| names.into_iter().collect()),
                verbs: verbs.into_iter().map(str::to_owned).collect(),
                ..PolicyRule::default()
            };
            let mut by_names: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
            for (verb, names) in verbs.named {
                if !verbs.all.contains(verb) {
                    by_names.entry(names).or_default().insert(verb);
                }
            }
            if !verbs.all.is_empty() {
                rules.push(rule(verbs.all, None));
            }
            let named = by_names.into_iter();
            rules.extend(named.map(|(names, verbs)| rule(verbs, Some(names))));
        }
        rules
    }
}
