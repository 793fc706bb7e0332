//! How the objects that claims mean are watched, and which of them plugins emit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trainyard_model::claims::{ClaimPath, Claims, KeyPattern, NamePattern, ObjectPattern};
use trainyard_model::object::{DataKind, ObjectKind};
use trainyard_model::record::Field;

/// The objects that a claim means. `None` if it does not name one kind.
pub(super) const fn objects_of(path: &ClaimPath) -> Option<&ObjectPattern> {
    match &path.key {
        Some(KeyPattern::Objects(objects)) => Some(objects),
        _ => None,
    }
}

/// How the objects that a claim means are watched. `None` if they are not.
pub(super) fn watched(objects: &ObjectPattern) -> Option<Watched> {
    match &objects.names {
        NamePattern::Served => None,
        _ if is_never_watched(&objects.api_version, &objects.kind) => None,
        NamePattern::Literal(name) => Some(Watched::Named((**name).into())),
        // RBAC has no words for names that begin alike.
        NamePattern::List | NamePattern::Prefix(_) => Some(Watched::Kind),
    }
}

/// Whether objects of a kind are never watched, because a watch of them shows all of their content.
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
            if let Some(objects) = objects_of(path)
                && let Some(watched) = watched(objects)
            {
                let kind = (objects.api_version.to_string(), objects.kind.to_string());
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
        let claimed = paths.filter_map(|(_, path)| objects_of(path));
        let kinds = claimed.map(|objects| (&*objects.api_version, &*objects.kind));
        let kinds = kinds.chain([("v1", "ConfigMap")]);
        let kinds = kinds.filter_map(|(version, kind)| ObjectKind::new(version, kind).ok());
        Self(kinds.collect())
    }

    /// Whether it is one of them.
    pub(crate) fn has(&self, kind: &ObjectKind) -> bool {
        self.0.contains(kind)
    }
}
