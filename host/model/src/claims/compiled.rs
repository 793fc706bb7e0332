//! Claims and grants as bit masks, computed when a plugin is loaded.

use std::collections::BTreeMap;

use thiserror::Error;

use super::{
    ClaimPath, ClaimScope, Claims, KeyPattern, NamePattern, ObjectPattern, Verb, possible,
};
use crate::{
    object::DataKind,
    record::{Field, ObeyedDomains, Permission},
    text::quoted,
};

/// The most claims that a plugin may declare: one bit each.
pub const MAX_CLAIMS: usize = 128;

/// What the operator allows a plugin to write beyond the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grants {
    /// Everything that it claims, as for built-in plugins.
    AsClaimed,
    /// These paths.
    Paths(Vec<ClaimPath>),
}

impl Grants {
    /// Whether the grants cover the path. A key that other controllers obey has to be granted by its name.
    #[must_use]
    pub fn allow(&self, path: &ClaimPath, obeyed: &ObeyedDomains) -> bool {
        let is_named = |grant: &ClaimPath| !names_obeyed_key(path, obeyed) || grant.key == path.key;
        match self {
            Self::AsClaimed => true,
            Self::Paths(paths) => {
                let mut grants = paths.iter();
                grants.any(|grant| grant.covers(path) && is_named(grant))
            }
        }
    }
}

impl Default for Grants {
    fn default() -> Self {
        Self::Paths(Vec::new())
    }
}

/// The extent of a claim's permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Every value.
    Full,
    /// Only values that refer to the plugin's own objects and volumes, or to none.
    OwnOnly,
}

/// Why the claims of a plugin are refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ClaimError {
    /// More than [`MAX_CLAIMS`].
    #[error(
        "declares {0} claims, but at most {MAX_CLAIMS} are allowed; combine some with a prefix or `*`"
    )]
    TooMany(usize),
    /// A claim that no plugin can have.
    #[error("the claim `{path}` in `claims.{list}`: {problem}")]
    Impossible {
        /// The claim.
        path: String,
        /// The manifest's list.
        list: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A claim that is not granted.
    #[error(
        "claims to {verb} `{path}`, which is not granted; add `grants: [{}]` to its PolicyPlugin",
        quoted(path)
    )]
    NotGranted {
        /// The access.
        verb: Verb,
        /// The claim.
        path: String,
    },
    /// A pod set of `nodeSets` that is not granted.
    #[error(
        "its `nodeSets` let `numNodes` set `{path}`, which is not granted; add `grants: [{}]` to its PolicyPlugin",
        quoted(path)
    )]
    NodeSetNotGranted {
        /// The count of the pod set.
        path: String,
    },
}

/// The claims of one plugin, checked and ready for [`super::Access`].
#[derive(Debug)]
pub struct CompiledClaims {
    pub(super) patterns: Vec<(ClaimPath, Grant)>,
    pub(super) by_field: BTreeMap<Field, u128>,
    pub(super) in_job: u128,
    pub(super) in_pod_set: u128,
    pub(super) in_container: u128,
    reads: u128,
    creates: u128,
    writes: u128,
    /// The labels and annotations that have to be claimed by name.
    pub(super) obeyed: ObeyedDomains,
}

impl CompiledClaims {
    /// Checks claims against the rules for claims and against the grants. Claims on keys of `obeyed` domains have to be granted by name.
    ///
    /// # Errors
    /// Every claim that is impossible or beyond the grants.
    pub fn new(
        claims: &Claims,
        grants: &Grants,
        obeyed: &ObeyedDomains,
    ) -> Result<Self, Vec<ClaimError>> {
        let count = claims.iter().count();
        if count > MAX_CLAIMS {
            return Err(vec![ClaimError::TooMany(count)]);
        }
        let mut out = Self {
            patterns: Vec::with_capacity(count),
            by_field: BTreeMap::new(),
            in_job: 0,
            in_pod_set: 0,
            in_container: 0,
            reads: 0,
            creates: 0,
            writes: 0,
            obeyed: obeyed.clone(),
        };
        let mut errors = Vec::new();
        for (at, (verb, path)) in claims.iter().enumerate() {
            let grant =
                check_possible(verb, path).and_then(|()| granted(verb, path, grants, obeyed));
            match grant {
                Ok(grant) => out.add(1 << at, verb, path.clone(), grant),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Ok(out)
        } else {
            Err(errors)
        }
    }

    fn add(&mut self, bit: u128, verb: Verb, path: ClaimPath, grant: Grant) {
        *self.by_field.entry(path.field).or_default() |= bit;
        *match path.scope {
            ClaimScope::Job => &mut self.in_job,
            ClaimScope::PodSet(_) => &mut self.in_pod_set,
            ClaimScope::Container { .. } => &mut self.in_container,
        } |= bit;
        *match verb {
            Verb::Read => &mut self.reads,
            Verb::Create => &mut self.creates,
            Verb::Write => &mut self.writes,
        } |= bit;
        self.patterns.push((path, grant));
    }

    /// The bits of the claims that allow an access to a field.
    pub(super) fn candidates(&self, verb: Verb, field: Field) -> u128 {
        let by_verb = match verb {
            Verb::Read => self.reads | self.creates | self.writes,
            Verb::Create => self.creates,
            Verb::Write => self.writes,
        };
        self.by_field.get(&field).copied().unwrap_or(0) & by_verb
    }
}

/// Returns the permission that a claim needs.
#[must_use]
pub fn permission(verb: Verb, path: &ClaimPath, obeyed: &ObeyedDomains) -> Permission {
    match verb {
        Verb::Read => permission_to_read(path),
        Verb::Write if path.field == Field::Objects => permission_to_emit(path),
        Verb::Write if names_obeyed_key(path, obeyed) => Permission::Grant,
        Verb::Create | Verb::Write => path.field.permission(),
    }
}

fn check_possible(verb: Verb, path: &ClaimPath) -> Result<(), ClaimError> {
    match possible::problem(verb, path) {
        None => Ok(()),
        Some(problem) => Err(ClaimError::Impossible {
            path: path.to_string(),
            list: verb.list(),
            problem,
        }),
    }
}

/// Returns the extent to which the grants allow a claim.
fn granted(
    verb: Verb,
    path: &ClaimPath,
    grants: &Grants,
    obeyed: &ObeyedDomains,
) -> Result<Grant, ClaimError> {
    match permission(verb, path, obeyed) {
        _ if grants.allow(path, obeyed) => Ok(Grant::Full),
        Permission::Default => Ok(Grant::Full),
        Permission::OwnOnly => Ok(Grant::OwnOnly),
        Permission::Grant | Permission::Host => Err(ClaimError::NotGranted {
            verb,
            path: path.to_string(),
        }),
    }
}

/// The permission to read: none for the TrainJob and its record, and none for a ConfigMap with a fixed name, because the claim names it.
/// Other objects of the cluster need a grant.
fn permission_to_read(path: &ClaimPath) -> Permission {
    let is_named = |objects: &ObjectPattern| matches!(&objects.names, NamePattern::Literal(name) if !name.is_empty());
    match (path.field, &path.key) {
        (Field::Lookups | Field::Catalog, Some(KeyPattern::Objects(objects)))
            if objects.data_kind() == Some(DataKind::ConfigMap) && is_named(objects) =>
        {
            Permission::Default
        }
        (Field::Lookups | Field::Catalog, _) => Permission::Grant,
        _ => Permission::Default,
    }
}

/// The permission to emit: none for ConfigMaps, which have no effect by themselves.
fn permission_to_emit(path: &ClaimPath) -> Permission {
    match &path.key {
        Some(KeyPattern::Objects(objects)) if objects.data_kind() == Some(DataKind::ConfigMap) => {
            path.field.permission()
        }
        _ => Permission::Grant,
    }
}

/// Whether the claim names a label or an annotation that other controllers obey.
fn names_obeyed_key(path: &ClaimPath, obeyed: &ObeyedDomains) -> bool {
    matches!(&path.key, Some(KeyPattern::Literal(key)) if obeyed.contain(path.field, key))
}
