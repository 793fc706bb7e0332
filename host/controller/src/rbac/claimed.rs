//! What a claim on objects of the cluster means, and how these are watched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trainyard_model::claims::{Claims, KeyPattern};
use trainyard_model::object::{DataKind, ObjectKind};
use trainyard_model::record::Field;

/// Which objects of the cluster a claim means.
pub(super) struct Claimed<'c> {
    /// As `v1` or `apps/v1`.
    pub(super) api_version: &'c str,
    pub(super) kind: &'c str,
    pub(super) names: Names<'c>,
}

pub(super) enum Names<'c> {
    /// None: whether the kind is served.
    Served,
    /// The list of all.
    List,
    One(&'c str),
    /// All that begin alike, for which RBAC has no words.
    Some,
    Every,
}

impl<'c> Claimed<'c> {
    /// None where it does not name one kind.
    pub(super) fn of(key: Option<&'c KeyPattern>) -> Option<Self> {
        let (text, is_prefix) = match key? {
            KeyPattern::Literal(text) => (text, false),
            KeyPattern::Prefix(text) => (text, true),
            KeyPattern::Any | KeyPattern::Set | KeyPattern::Variable(_) | KeyPattern::Base => {
                return None;
            }
        };
        let (version_and_kind, name) = text.rsplit_once('/')?;
        let (api_version, kind) = version_and_kind.rsplit_once('/')?;
        let is_kind = kind.starts_with(|c: char| c.is_ascii_uppercase())
            && kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_part = |part: &str| {
            let is_plain =
                |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b".-".contains(&b);
            !part.is_empty() && part.bytes().all(is_plain)
        };
        let is_version = match api_version.split_once('/') {
            Some((group, version)) => is_part(group) && is_part(version),
            None => is_part(api_version),
        };
        let names = match (name, is_prefix) {
            ("#", false) => Names::Served,
            ("*", false) => Names::List,
            (name, false) => Names::One(name),
            ("", true) => Names::Every,
            (_, true) => Names::Some,
        };
        (is_kind && is_version).then_some(Self {
            api_version,
            kind,
            names,
        })
    }

    /// How these objects are watched; none where they are not.
    pub(super) fn watched(&self) -> Option<Watched> {
        match self.names {
            Names::Served => None,
            _ if is_never_watched(self.api_version, self.kind) => None,
            Names::One(name) => Some(Watched::Named(name.into())),
            Names::List | Names::Some | Names::Every => Some(Watched::Kind),
        }
    }
}

/// Whoever may watch these may read all of them, so nobody does.
fn is_never_watched(api_version: &str, kind: &str) -> bool {
    DataKind::meant(api_version, kind).is_some()
}

/// How objects of a kind are watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Watched {
    /// All of them, by one watch.
    Kind,
    /// Those of one name, in every namespace, by a watch of their own with a field selector: RBAC allows it by
    /// `resourceNames`.
    Named(Arc<str>),
}

/// How the objects that a set of plugins looks up are watched. The roles allow just that.
#[derive(Debug, Default)]
pub(crate) struct Reach(BTreeMap<(String, String), bool>);

impl Reach {
    /// That of plugins with these claims.
    pub(crate) fn of<'c>(claims: impl IntoIterator<Item = &'c Claims>) -> Self {
        let mut by_name = BTreeMap::new();
        let paths = claims.into_iter().flat_map(Claims::iter);
        for (_, path) in paths.filter(|(_, path)| path.field == Field::Lookups) {
            if let Some(claimed) = Claimed::of(path.key.as_ref())
                && let Some(watched) = claimed.watched()
            {
                let kind = (claimed.api_version.to_owned(), claimed.kind.to_owned());
                *by_name.entry(kind).or_insert(true) &= matches!(watched, Watched::Named(_));
            }
        }
        Self(by_name)
    }

    /// How an object is watched, or, without a name, all of its kind; none where they are not.
    pub(crate) fn watched(
        &self,
        api_version: &str,
        kind: &str,
        name: Option<&str>,
    ) -> Option<Watched> {
        if is_never_watched(api_version, kind) {
            return None;
        }
        // A kind that no claim names is allowed by nothing but what the operator adds.
        let kind = (api_version.to_owned(), kind.to_owned());
        let by_name = self.0.get(&kind).copied().unwrap_or(false);
        Some(match name {
            Some(name) if by_name => Watched::Named(name.into()),
            _ => Watched::Kind,
        })
    }
}

/// The kinds of objects that a set of plugins may emit.
#[derive(Debug)]
pub(crate) struct Emitted(BTreeSet<ObjectKind>);

impl Emitted {
    /// Those of plugins with these claims. ConfigMaps are always among them: each plugin may emit them, and one that is not loaded any
    /// more may have.
    pub(crate) fn of<'c>(claims: impl IntoIterator<Item = &'c Claims>) -> Self {
        let paths = claims.into_iter().flat_map(Claims::iter);
        let paths = paths.filter(|(_, path)| path.field == Field::Objects);
        let claimed = paths.filter_map(|(_, path)| Claimed::of(path.key.as_ref()));
        let kinds = claimed.map(|it| (it.api_version, it.kind));
        let kinds = kinds.chain([("v1", "ConfigMap")]);
        let kinds = kinds.filter_map(|(version, kind)| ObjectKind::new(version, kind).ok());
        Self(kinds.collect())
    }

    /// Whether it is one of them.
    pub(crate) fn has(&self, kind: &ObjectKind) -> bool {
        self.0.contains(kind)
    }
}
