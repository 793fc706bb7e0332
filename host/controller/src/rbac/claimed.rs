//! How the objects of claims are watched, and which kinds plugins emit.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use trainyard_model::{
    claims::{ClaimPath, Claims, KeyPattern, NamePattern, ObjectPattern},
    object::{DataKind, ObjectKind},
    record::Field,
};

/// Returns the objects of a claim; `None` if it does not name one kind.
pub(super) const fn objects_of(path: &ClaimPath) -> Option<&ObjectPattern> {
    match &path.key {
        Some(KeyPattern::Objects(objects)) => Some(objects),
        _ => None,
    }
}

/// Whether claims on the field are claims to look up objects.
pub(super) const fn is_lookup(field: Field) -> bool {
    matches!(field, Field::Lookups | Field::Catalog)
}

/// Returns how the objects of a claim are watched; `None` if they are not.
pub(super) fn watched(objects: &ObjectPattern) -> Option<WatchScope> {
    match &objects.names {
        NamePattern::Served => None,
        _ if is_never_watched(&objects.api_version, &objects.kind) => None,
        NamePattern::Literal(name) => Some(WatchScope::Named((**name).into())),
        // RBAC cannot select names by a prefix.
        NamePattern::List | NamePattern::Prefix(_) => Some(WatchScope::Kind),
    }
}

/// Whether objects of a kind are never watched, because a watch of them shows all of their content.
fn is_never_watched(api_version: &str, kind: &str) -> bool {
    DataKind::meant(api_version, kind).is_some()
}

/// How objects of a kind are watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum WatchScope {
    /// All of them, by one watch.
    Kind,
    /// Those of one name, in every namespace, by a separate watch with a field selector. RBAC allows it by `resourceNames`.
    Named(Arc<str>),
}

/// How the objects that a set of plugins looks up are watched. The roles allow exactly that.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// Whether objects of a kind are watched one by one.
    by_name: BTreeMap<(String, String), bool>,
    /// The namespace of the catalog.
    pub(crate) catalog: Option<Arc<str>>,
}

impl Reach {
    /// Returns the reach of plugins with these claims, and a catalog in that namespace.
    pub(crate) fn of<'c>(
        claims: impl IntoIterator<Item = &'c Claims>,
        catalog: Option<&str>,
    ) -> Self {
        let mut by_name = BTreeMap::new();
        let paths = claims.into_iter().flat_map(Claims::iter);
        for (_, path) in paths.filter(|(_, path)| is_lookup(path.field)) {
            if let Some(objects) = objects_of(path)
                && let Some(watched) = watched(objects)
            {
                let kind = (objects.api_version.to_string(), objects.kind.to_string());
                *by_name.entry(kind).or_insert(true) &= matches!(watched, WatchScope::Named(_));
            }
        }
        Self {
            by_name,
            catalog: catalog.map(Into::into),
        }
    }

    /// Returns how an object is watched, or without a name, its kind; `None` if it is not watched.
    pub(crate) fn watched(
        &self,
        api_version: &str,
        kind: &str,
        name: Option<&str>,
    ) -> Option<WatchScope> {
        if is_never_watched(api_version, kind) {
            return None;
        }
        // A kind without a claim is allowed only if the operator adds it.
        let kind = (api_version.to_owned(), kind.to_owned());
        let by_name = self.by_name.get(&kind).copied().unwrap_or(false);
        Some(match name {
            Some(name) if by_name => WatchScope::Named(name.into()),
            _ => WatchScope::Kind,
        })
    }
}

/// The kinds of objects that a set of plugins may emit.
#[derive(Clone, Debug)]
pub(crate) struct EmittedKinds(BTreeSet<ObjectKind>);

impl EmittedKinds {
    /// Returns the kinds of plugins with these claims. They always include ConfigMaps, which every plugin may emit, even one that is no longer
    /// loaded.
    pub(crate) fn of<'c>(claims: impl IntoIterator<Item = &'c Claims>) -> Self {
        let paths = claims.into_iter().flat_map(Claims::iter);
        let paths = paths.filter(|(_, path)| path.field == Field::Objects);
        let claimed = paths.filter_map(|(_, path)| objects_of(path));
        let kinds = claimed.map(|objects| (&*objects.api_version, &*objects.kind));
        let kinds = kinds.chain([("v1", "ConfigMap")]);
        let kinds = kinds.filter_map(|(version, kind)| ObjectKind::new(version, kind).ok());
        Self(kinds.collect())
    }

    /// Whether a kind is one of them.
    pub(crate) fn has(&self, kind: &ObjectKind) -> bool {
        self.0.contains(kind)
    }
}
