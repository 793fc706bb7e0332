//! The claim check of every read and write: a mask of claims per container and per field, then a comparison of keys.

use std::{borrow::Cow, sync::Arc};

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
    /// The value of a variable. `None` if the configuration has no string there, or no number for a port.
    #[must_use]
    pub fn value(&self, variable: &Variable) -> Option<Cow<'_, str>> {
        let config = |pointer| json::pointer(&self.config, pointer);
        match variable {
            Variable::Job => Some((&*self.job).into()),
            Variable::Config(pointer) => config(pointer)?.as_str().map(Cow::from),
            Variable::Port { pointer, protocol } => {
                let number = config(pointer)?.as_u64()?;
                Some(format!("{number}/{protocol}").into())
            }
        }
    }

    fn of_key(&self, key: &KeyPattern) -> Option<Cow<'_, str>> {
        match key {
            KeyPattern::Variable(variable) => self.value(variable),
            _ => None,
        }
    }

    /// Whether a claim on those pod sets matches this one.
    pub(super) fn mean_pod_set(&self, pod_sets: &PodSetPattern, set: &PodSet) -> bool {
        match pod_sets {
            PodSetPattern::Ancestor(ancestor) => set.ancestor.as_deref() == Some(ancestor),
            PodSetPattern::Named(key) => key.matches(&set.name, self.of_key(key).as_deref()),
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
            && name.matches(&container.name, self.of_key(name).as_deref())
    }
}

/// One plugin's claims, resolved for one TrainJob's record.
#[derive(Debug)]
pub struct Access {
    pub(super) claims: Arc<CompiledClaims>,
    pub(super) variables: Variables,
    pod_sets: Vec<u128>,
    containers: Vec<Option<u128>>,
    used: u128,
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
            used: 0,
        }
    }

    /// Returns the claims that allowed an access so far: bit `n` for the claim at position `n` of [`super::Claims::iter`]. Of several claims
    /// that allow an access, one is used.
    #[must_use]
    pub const fn used(&self) -> u128 {
        self.used
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
        let is_named =
            verb == Verb::Write && key.is_some_and(|key| self.claims.obeyed.contain(field, key));
        let key = key.map(|key| field.compared(key));
        let mut found = None;
        for (bit, path, grant) in patterns(&self.claims, among) {
            let value = |pattern| {
                let value = self.variables.of_key(pattern)?;
                Some(field.compared(&value).into_owned())
            };
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
                _ if !meant => {}
                Grant::Full => {
                    found = Some((bit, path, Grant::Full));
                    break;
                }
                Grant::OwnOnly => found = Some((bit, path, Grant::OwnOnly)),
            }
        }
        found.map(|(bit, path, grant)| {
            self.used |= bit;
            (path, grant)
        })
    }

    /// Whether the plugin may make the lookup. A claim on the list of a kind, or on all its objects, includes the lookup whether the
    /// kind is served.
    #[must_use]
    pub fn may_look_up(&mut self, key: &LookupKey) -> bool {
        let asked = ObjectPattern::from(key);
        let mut may = |asked: &ObjectPattern| self.allows_objects(Verb::Read, key.field(), asked);
        let is_served = matches!(key, LookupKey::Served { .. });
        may(&asked) || is_served && may(&asked.of_list())
    }

    /// Whether the plugin may emit the object.
    #[must_use]
    pub fn may_emit(&mut self, object: &ObjectPattern) -> bool {
        self.allows_objects(Verb::Write, Field::Objects, object)
    }

    fn allows_objects(&mut self, verb: Verb, field: Field, asked: &ObjectPattern) -> bool {
        let among = self.claims.in_job & self.claims.candidates(verb, field);
        let variables = &self.variables;
        let bit = first(&self.claims, among, |path| {
            let key = path.key.as_ref();
            key.is_some_and(|key| key.matches_objects(asked, variables.of_key(key).as_deref()))
        });
        self.use_claim(bit)
    }

    /// Whether every value of a keyed field may be read.
    pub fn covers_all(&mut self, record: &Record, scope: EntryScope, field: Field) -> bool {
        let among = self.scope_mask(record, scope) & self.claims.candidates(Verb::Read, field);
        let bit = first(&self.claims, among, |path| {
            matches!(path.key, Some(KeyPattern::Any))
        });
        self.use_claim(bit)
    }

    /// Whether a field of every container in one list of a pod set may be read, including containers that other plugins add.
    pub fn covers_all_in(&mut self, pod_set: u32, list: Field, field: Field) -> bool {
        let in_set = self.pod_sets.get(pod_set as usize).copied().unwrap_or(0);
        let among = in_set & self.claims.in_container & self.claims.candidates(Verb::Read, field);
        let bit = first(&self.claims, among, |path| {
            let of_all = matches!(&path.scope, ClaimScope::Container { list: of, name: KeyPattern::Any, .. } if *of == list);
            of_all && matches!(path.key, None | Some(KeyPattern::Any))
        });
        self.use_claim(bit)
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
        let mask = self.container_mask(record, id);
        // Any of them suffices.
        self.use_claim(lowest(mask))
            || self
                .find(record, Verb::Read, scope, list, Some(&name))
                .is_some()
            || self.find(record, Verb::Read, scope, list, None).is_some()
    }

    /// Records that a claim allows an access. Returns whether there is one.
    fn use_claim(&mut self, bit: Option<u128>) -> bool {
        self.used |= bit.unwrap_or(0);
        bit.is_some()
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

/// The claims in a mask, each with its bit.
fn patterns(
    claims: &CompiledClaims,
    among: u128,
) -> impl Iterator<Item = (u128, &ClaimPath, Grant)> {
    bits(among).filter_map(|at| {
        let (path, grant) = claims.patterns.get(at)?;
        Some((1 << at, path, *grant))
    })
}

/// The bit of the first claim in a mask that meets a condition.
fn first(
    claims: &CompiledClaims,
    among: u128,
    wanted: impl Fn(&ClaimPath) -> bool,
) -> Option<u128> {
    let mut claims = patterns(claims, among);
    claims.find_map(|(bit, path, _)| wanted(path).then_some(bit))
}

/// The lowest bit of a mask.
fn lowest(mask: u128) -> Option<u128> {
    (mask != 0).then_some(mask & mask.wrapping_neg())
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
