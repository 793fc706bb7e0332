//! Claims and grants as bit masks, made once when a plugin is loaded.

use std::collections::BTreeMap;

use thiserror::Error;

use super::{ClaimPath, Claims, Key, Scope, Touch};
use crate::{
    object::{DataKind, ObjectKind, ObjectKindError},
    record::{Field, Permission},
    reserved::reserved,
};

/// The most claims that a plugin may declare: one bit each.
pub const MAX_CLAIMS: usize = 128;

/// What the operator allows a plugin to write beyond the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grants {
    /// All that it claims: built-in plugins ship so.
    AsClaimed,
    /// These paths.
    Paths(Vec<ClaimPath>),
}

impl Grants {
    /// Whether the operator allows the path by name.
    #[must_use]
    pub fn allow(&self, path: &ClaimPath) -> bool {
        match self {
            Self::AsClaimed => true,
            Self::Paths(paths) => paths.iter().any(|grant| grant.covers(path)),
        }
    }
}

impl Default for Grants {
    fn default() -> Self {
        Self::Paths(Vec::new())
    }
}

/// How far a claim is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Whatever is written.
    Full,
    /// For what stands on the plugin's own objects and volumes, or on none.
    OwnOnly,
}

/// Why the claims of a plugin are refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ClaimError {
    /// More than [`MAX_CLAIMS`].
    #[error("it declares {0} claims; {MAX_CLAIMS} are allowed: join some by a prefix or `*`")]
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
        "it claims to {touch} `{path}`, which is not granted; the operator allows it by `grants: [{}]` in the policy file",
        in_yaml(path)
    )]
    NotGranted {
        /// How it would touch.
        touch: Touch,
        /// The claim.
        path: String,
    },
    /// A pod set of `nodeSets` that is not granted.
    #[error(
        "its `nodeSets` let `numNodes` set `{path}`, which is not granted; the operator allows it by `grants: [{}]` in the policy file",
        in_yaml(path)
    )]
    NodeSetNotGranted {
        /// The count of the pod set.
        path: String,
    },
}

/// The claims of one plugin, checked and ready for [`super::Access`].
#[derive(Debug)]
pub struct Compiled {
    pub(super) patterns: Vec<(ClaimPath, Grant)>,
    pub(super) by_field: BTreeMap<Field, u128>,
    pub(super) in_job: u128,
    pub(super) in_pod_set: u128,
    pub(super) in_container: u128,
    reads: u128,
    creates: u128,
    writes: u128,
}

impl Compiled {
    /// Checks claims against each other's rules and the grants.
    ///
    /// # Errors
    /// Every claim that is impossible or beyond the grants.
    pub fn new(claims: &Claims, grants: &Grants) -> Result<Self, Vec<ClaimError>> {
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
        };
        let mut errors = Vec::new();
        for (at, (touch, path)) in claims.iter().enumerate() {
            let grant = possible(touch, path).and_then(|()| granted(touch, path, grants));
            match grant {
                Ok(grant) => out.add(1 << at, touch, path.clone(), grant),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Ok(out)
        } else {
            Err(errors)
        }
    }

    fn add(&mut self, bit: u128, touch: Touch, path: ClaimPath, grant: Grant) {
        *self.by_field.entry(path.field).or_default() |= bit;
        *match path.scope {
            Scope::Job => &mut self.in_job,
            Scope::PodSet(_) => &mut self.in_pod_set,
            Scope::Container { .. } => &mut self.in_container,
        } |= bit;
        *match touch {
            Touch::Read => &mut self.reads,
            Touch::Create => &mut self.creates,
            Touch::Write => &mut self.writes,
        } |= bit;
        self.patterns.push((path, grant));
    }

    /// The bits of the claims that allow a touch of a field.
    pub(super) fn candidates(&self, touch: Touch, field: Field) -> u128 {
        let by_touch = match touch {
            Touch::Read => self.reads | self.creates | self.writes,
            Touch::Create => self.creates,
            Touch::Write => self.writes,
        };
        self.by_field.get(&field).copied().unwrap_or(0) & by_touch
    }
}

/// Whether any plugin could have the claim.
fn possible(touch: Touch, path: &ClaimPath) -> Result<(), ClaimError> {
    let refuse = |problem: String| {
        Err(ClaimError::Impossible {
            path: path.to_string(),
            list: touch.list(),
            problem,
        })
    };
    let key_set = path.key == Some(Key::Set);
    match touch {
        Touch::Read if path.field == Field::Objects => refuse("objects are emitted, not read".to_owned()),
        Touch::Read if path.field == Field::Placement => refuse("wishes for a place are not read".to_owned()),
        Touch::Create if !path.field.holds_containers() => {
            refuse("only containers and init containers are created; volumes and the rest stand in `writes`".to_owned())
        }
        Touch::Write if path.field.holds_containers() => refuse("containers stand in `creates`".to_owned()),
        Touch::Create | Touch::Write if key_set => refuse("the set of keys can't be written".to_owned()),
        Touch::Write if path.field.permission() == Permission::Host => {
            refuse("it is the host's; no plugin writes it".to_owned())
        }
        Touch::Write if path.field == Field::Objects => possible_object(path).or_else(refuse),
        Touch::Read | Touch::Write if path.field.is_raw() => possible_member(path).map_or(Ok(()), refuse),
        _ => Ok(()),
    }
}

/// What is wrong with a claim on raw members: it can mean none.
fn possible_member(path: &ClaimPath) -> Option<String> {
    match path.key.as_ref()? {
        Key::Literal(member) => path.field.raw_member_problem(member),
        Key::Prefix(prefix) => path.field.raw_prefix_problem(prefix),
        Key::Set => Some("raw members are read one by one".to_owned()),
        Key::Any | Key::Variable(_) | Key::Base => None,
    }
}

/// What a claim on objects has to say.
const NO_OBJECT: &str = "name version, kind and suffix, as `objects[v1/ConfigMap/-scripts]`";

/// Whether any plugin could emit the objects.
fn possible_object(path: &ClaimPath) -> Result<(), String> {
    let text = match &path.key {
        Some(Key::Literal(text) | Key::Prefix(text)) => &**text,
        _ => {
            return Err(NO_OBJECT.to_owned());
        }
    };
    let Some((version_and_kind, suffix)) = text.rsplit_once('/') else {
        return Err(NO_OBJECT.to_owned());
    };
    let (api_version, kind) = version_and_kind
        .rsplit_once('/')
        .unwrap_or(("", version_and_kind));
    match ObjectKind::new(api_version, kind) {
        Ok(_) => {}
        Err(ObjectKindError::Powerful) => {
            return Err(format!("no plugin emits a {kind}, whatever is granted"));
        }
        Err(ObjectKindError::ClusterScoped) => {
            return Err(format!(
                "a {kind} lives in no namespace, and a plugin emits objects in the TrainJob's"
            ));
        }
        Err(ObjectKindError::Malformed) => return Err(NO_OBJECT.to_owned()),
    }
    if !suffix.is_empty() && !suffix.starts_with('-') {
        return Err("the suffix after the TrainJob's name begins with `-`".to_owned());
    }
    // A prefix may end so and still mean names that do not: those that do are refused when they are emitted.
    if let (Some(Key::Literal(_)), Some(reserved)) = (&path.key, reserved(suffix)) {
        return Err(format!("{reserved}; choose another suffix"));
    }
    Ok(())
}

/// How far the grants allow a claim.
fn granted(touch: Touch, path: &ClaimPath, grants: &Grants) -> Result<Grant, ClaimError> {
    let permission = match touch {
        Touch::Read => permission_to_read(path),
        Touch::Write if path.field == Field::Objects => permission_to_emit(path),
        Touch::Write if is_security_annotation(path) => Permission::Grant,
        Touch::Create | Touch::Write => path.field.permission(),
    };
    match permission {
        _ if grants.allow(path) => Ok(Grant::Full),
        Permission::Default => Ok(Grant::Full),
        Permission::OwnOnly => Ok(Grant::OwnOnly),
        Permission::Grant | Permission::Host => Err(ClaimError::NotGranted {
            touch,
            path: path.to_string(),
        }),
    }
}

/// What a plugin needs to read: the TrainJob and its record are open to it, the rest of the cluster is not. A ConfigMap by its
/// name is: the claim shows which one.
fn permission_to_read(path: &ClaimPath) -> Permission {
    let is_named = |key: &str| {
        let name = key.strip_prefix("v1/ConfigMap/");
        name.is_some_and(|name| !matches!(name, "" | "*" | "#"))
    };
    match (&path.field, &path.key) {
        (Field::Lookups, Some(Key::Literal(key))) if is_named(key) => Permission::Default,
        (Field::Lookups, _) => Permission::Grant,
        _ => Permission::Default,
    }
}

/// What a plugin needs to emit: nothing for ConfigMaps, which do nothing by themselves.
fn permission_to_emit(path: &ClaimPath) -> Permission {
    let kind = match &path.key {
        Some(Key::Literal(key) | Key::Prefix(key)) => key.rsplit_once('/'),
        _ => None,
    };
    let kind = kind.and_then(|(version_and_kind, _)| version_and_kind.split_once('/'));
    let kind = kind.and_then(|(version, kind)| DataKind::of(version, kind));
    if kind == Some(DataKind::ConfigMap) {
        path.field.permission()
    } else {
        Permission::Grant
    }
}

/// Whether the claim names an annotation of pods that Kubernetes reads as a part of their security context.
fn is_security_annotation(path: &ClaimPath) -> bool {
    matches!(&path.key, Some(Key::Literal(key)) if path.field.is_named_to_write(key))
}

/// A path as an item of a list in YAML.
fn in_yaml(path: &str) -> String {
    if path.contains(['"', '\\']) {
        format!("'{path}'")
    } else {
        format!("\"{path}\"")
    }
}
