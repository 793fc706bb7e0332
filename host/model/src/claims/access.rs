//! The claim check of every read and write: a mask of claims per container and per field, then a comparison of keys.

use std::sync::Arc;

use trainyard_text::json;

use super::{
    ClaimPath, ClaimScope, CompiledClaims, Grant, KeyPattern, ObjectPattern, PodSetPattern,
    Variable, Verb,
};
use crate::{
    lookup::LookupKey,
    record::{Container, ContainerId, EntryScope, Field, Owner, PodSet, Record},
};

/// The values of a call's variables.
#[derive(Clone, Debug)]
pub struct Variables {
    /// The TrainJob's name.
    pub job: Arc<str>,
    /// The plugin's configuration.
    pub config: Arc<serde_json::Value>,
}

impl Variables {
    /// The value of a variable. `None` if the configuration has no string there.
    #[must_use]
    pub fn value(&self, variable: &Variable) -> Option<&str> {
        match variable {
            Variable::Job => Some(&self.job),
            Variable::Config(pointer) => json::pointer(&self.config, pointer)?.as_str(),
        }
    }

    fn of_key(&self, key: &KeyPattern) -> Option<&str> {
        match key {
            KeyPattern::Variable(variable) => self.value(variable),
            _ => None,
        }
    }

    /// Whether a claim on those pod sets matches this one.
    pub(super) fn mean_pod_set(&self, pod_sets: &PodSetPattern, set: &PodSet) -> bool {
        match pod_sets {
            PodSetPattern::Ancestor(ancestor) => set.ancestor.as_deref() == Some(ancestor),
            PodSetPattern::Named(key) => key.matches(&set.name, self.of_key(key)),
            PodSetPattern::Nodes => set.counts_nodes,
        }
    }

    /// Whether a claim on containers of that list and name matches this one, provided that it matches the pod set.
    pub(super) fn mean_container(
        &self,
        list: Field,
        name: &KeyPattern,
        container: &Container,
    ) -> bool {
        let is_added = matches!(container.home, Owner::Plugin(_));
        list == container.list
            && !(is_added && *name == KeyPattern::Base)
            && name.matches(&container.name, self.of_key(name))
    }
}

/// One plugin's claims, resolved for one TrainJob's record.
#[derive(Debug)]
pub struct Access {
    pub(super) claims: Arc<CompiledClaims>,
    pub(super) variables: Variables,
    pod_sets: Vec<u128>,
    containers: Vec<Option<u128>>,
}

impl Access {
    /// Resolves the pod sets of the claims; containers follow when they are first touched.
    #[must_use]
    pub fn new(claims: Arc<CompiledClaims>, variables: Variables, record: &Record) -> Self {
        let below_pod_sets = claims.in_pod_set | claims.in_container;
        let pod_sets = record
            .pod_sets
            .iter()
            .map(|set| {
                matching(&claims, below_pod_sets, |path| match &path.scope {
                    ClaimScope::Job => false,
                    ClaimScope::PodSet(sets) | ClaimScope::Container { pod_sets: sets, .. } => {
                        variables.mean_pod_set(sets, set)
                    }
                })
            })
            .collect();
        Self {
            claims,
            variables,
            pod_sets,
            containers: Vec::new(),
        }
    }

    /// Returns the widest grant of the claims that allow the access, or `None` if no claim does. An empty key is the value of a field
    /// without keys; `None` is the set of keys.
    pub fn find(
        &mut self,
        record: &Record,
        verb: Verb,
        scope: EntryScope,
        field: Field,
        key: Option<&str>,
    ) -> Option<Grant> {
        let claim = self.claim(record, verb, scope, field, key);
        claim.map(|(_, grant)| grant)
    }

    /// Like [`Self::find`], with the claim.
    pub fn claim(
        &mut self,
        record: &Record,
        verb: Verb,
        scope: EntryScope,
        field: Field,
        key: Option<&str>,
    ) -> Option<(&ClaimPath, Grant)> {
        let among = self.scope_mask(record, scope) & self.claims.candidates(verb, field);
        let is_named = verb == Verb::Write && key.is_some_and(|key| field.is_named_to_write(key));
        let key = key.map(|key| field.compared(key));
        let mut found = None;
        for (path, grant) in patterns(&self.claims, among) {
            let value = |pattern| self.variables.of_key(pattern).map(|v| field.compared(v));
            let meant = match (&path.key, &key) {
                (None, _) => true,
                (Some(pattern), None) => *pattern == KeyPattern::Set,
                (Some(pattern), Some(key)) if field == Field::JobSpec => {
                    covers_pointer(pattern, key, value(pattern).as_deref())
                }
                // A label or annotation of Kubernetes needs a claim by its name, which needs a grant.
                (Some(pattern), Some(key)) if is_named => {
                    matches!(pattern, KeyPattern::Literal(name) if **name == **key)
                }
                (Some(pattern), Some(key)) => pattern.matches(key, value(pattern).as_deref()),
            };
            match grant {
                Grant::Full if meant => return Some((path, Grant::Full)),
                Grant::OwnOnly if meant => found = Some((path, Grant::OwnOnly)),
                _ => {}
            }
        }
        found
    }

    /// Whether the plugin may make the lookup. A claim on the list of a kind, or on all its objects, includes the lookup whether the
    /// kind is served.
    #[must_use]
    pub fn may_look_up(&self, key: &LookupKey) -> bool {
        let asked = ObjectPattern::from(key);
        let may = |asked: &ObjectPattern| self.allows_objects(Verb::Read, Field::Lookups, asked);
        let is_served = matches!(key, LookupKey::Served { .. });
        may(&asked) || is_served && may(&asked.of_list())
    }

    /// Whether the plugin may emit the object.
    #[must_use]
    pub fn may_emit(&self, object: &ObjectPattern) -> bool {
        self.allows_objects(Verb::Write, Field::Objects, object)
    }

    fn allows_objects(&self, verb: Verb, field: Field, asked: &ObjectPattern) -> bool {
        let among = self.claims.in_job & self.claims.candidates(verb, field);
        patterns(&self.claims, among).any(|(path, _)| {
            let key = path.key.as_ref();
            key.is_some_and(|key| key.matches_objects(asked, self.variables.of_key(key)))
        })
    }

    /// Whether every value of a keyed field may be read.
    pub fn covers_all(&mut self, record: &Record, scope: EntryScope, field: Field) -> bool {
        let among = self.scope_mask(record, scope) & self.claims.candidates(Verb::Read, field);
        patterns(&self.claims, among).any(|(path, _)| matches!(path.key, Some(KeyPattern::Any)))
    }

    /// Whether a field of every container in one list of a pod set may be read, including containers that other plugins add.
    pub fn covers_all_in(&self, pod_set: u32, list: Field, field: Field) -> bool {
        let in_set = self.pod_sets.get(pod_set as usize).copied().unwrap_or(0);
        let among = in_set & self.claims.in_container & self.claims.candidates(Verb::Read, field);
        patterns(&self.claims, among).any(|(path, _)| {
            let of_all = matches!(&path.scope, ClaimScope::Container { list: of, name: KeyPattern::Any, .. } if *of == list);
            of_all && matches!(path.key, None | Some(KeyPattern::Any))
        })
    }

    /// Whether any claim concerns the container: the container itself, the set of keys of its list, or its fields. The plan then
    /// orders this plugin after the one that adds the container.
    pub fn knows(&mut self, record: &Record, id: ContainerId) -> bool {
        let Some((scope, list, name)) = record
            .container(id)
            .map(|c| (EntryScope::PodSet(c.pod_set), c.list, c.name.clone()))
        else {
            return false;
        };
        self.container_mask(record, id) != 0
            || self
                .find(record, Verb::Read, scope, list, Some(&name))
                .is_some()
            || self.find(record, Verb::Read, scope, list, None).is_some()
    }

    fn scope_mask(&mut self, record: &Record, scope: EntryScope) -> u128 {
        match scope {
            EntryScope::Job => self.claims.in_job,
            EntryScope::PodSet(at) => {
                self.pod_sets.get(at as usize).copied().unwrap_or(0) & self.claims.in_pod_set
            }
            EntryScope::Container(id) => self.container_mask(record, id),
        }
    }

    fn container_mask(&mut self, record: &Record, id: ContainerId) -> u128 {
        let at = id.0 as usize;
        if let Some(Some(mask)) = self.containers.get(at) {
            return *mask;
        }
        let mask = record.container(id).map_or(0, |container| {
            let in_set = self
                .pod_sets
                .get(container.pod_set as usize)
                .copied()
                .unwrap_or(0);
            matching(
                &self.claims,
                in_set & self.claims.in_container,
                |path| match &path.scope {
                    ClaimScope::Container { list, name, .. } => {
                        self.variables.mean_container(*list, name, container)
                    }
                    _ => false,
                },
            )
        });
        if at >= self.containers.len() {
            self.containers.resize(at + 1, None);
        }
        if let Some(slot) = self.containers.get_mut(at) {
            *slot = Some(mask);
        }
        mask
    }
}

/// Returns whether a claim covers a pointer. A claim of a pointer includes all pointers below it.
fn covers_pointer(pattern: &KeyPattern, pointer: &str, value: Option<&str>) -> bool {
    let claimed = match pattern {
        KeyPattern::Literal(claimed) => Some(&**claimed),
        KeyPattern::Variable(_) => value,
        other => return other.matches(pointer, None),
    };
    claimed
        .and_then(|claimed| pointer.strip_prefix(claimed))
        .is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

/// The claims in a mask.
fn patterns(claims: &CompiledClaims, among: u128) -> impl Iterator<Item = &(ClaimPath, Grant)> {
    bits(among).filter_map(|at| claims.patterns.get(at))
}

/// The mask of the claims that meet a condition.
fn matching(
    claims: &CompiledClaims,
    among: u128,
    mut wanted: impl FnMut(&ClaimPath) -> bool,
) -> u128 {
    bits(among)
        .filter(|at| {
            claims
                .patterns
                .get(*at)
                .is_some_and(|(path, _)| wanted(path))
        })
        .fold(0, |mask, at| mask | 1 << at)
}

/// The numbers of the bits that are set, from the lowest.
fn bits(mut mask: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = mask.trailing_zeros() as usize;
        let more = mask != 0;
        mask &= mask.wrapping_sub(1);
        more.then_some(at)
    })
}
