//! The cluster of a test.

use std::sync::Arc;

use serde_json::Value;
use trainyard_model::lookup::{LookupAnswer, LookupKey, Requester};

/// The objects of a test, and the kinds that are not served.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    pub(super) objects: Vec<Value>,
    /// The objects of the catalog.
    pub(super) catalog: Vec<Value>,
    pub(super) not_served: NotServed,
}

/// The kinds that are not served, by API version and kind.
#[derive(Debug, Default)]
pub(super) struct NotServed(Vec<(String, String)>);

impl NotServed {
    pub(super) fn add(&mut self, api_version: &str, kind: &str) {
        self.0.push((api_version.to_owned(), kind.to_owned()));
    }

    /// Returns the answer to a lookup of one of these kinds.
    pub(super) fn answer(&self, key: &LookupKey) -> Option<LookupAnswer> {
        match key {
            LookupKey::Object(of) | LookupKey::Optional(of) | LookupKey::Catalog(of) => self
                .contains(&of.api_version, &of.kind)
                .then_some(LookupAnswer::NotServed),
            LookupKey::Served { api_version, kind } => self
                .contains(api_version, kind)
                .then_some(LookupAnswer::Served(false)),
            LookupKey::All { .. } => None,
        }
    }

    fn contains(&self, api_version: &str, kind: &str) -> bool {
        let is = |(version, name): &(String, String)| version == api_version && name == kind;
        self.0.iter().any(is)
    }
}

impl Cluster {
    /// Returns the answer to a lookup. `None` for an object that the test did not add, which a host would have to fetch first.
    pub(super) fn answer(&self, key: &LookupKey, asker: Requester<'_>) -> Option<LookupAnswer> {
        if let Some(answer) = self.not_served.answer(key) {
            return Some(answer);
        }
        match key {
            LookupKey::Object(of) | LookupKey::Optional(of) | LookupKey::Catalog(of) => {
                of_kind(self.objects_of(key), &of.api_version, &of.kind)
                    .find(|object| text(object, "/metadata/name") == of.name)
                    .map(|object| LookupAnswer::Object(Arc::new(object.clone())))
                    .or_else(|| key.answer_without_object())
            }
            LookupKey::All { api_version, kind } => {
                let found = of_kind(&self.objects, api_version, kind);
                let found = found.map(|object| Arc::new(object.clone()));
                Some(LookupAnswer::all(found.collect(), asker))
            }
            LookupKey::Served { .. } => Some(LookupAnswer::Served(true)),
        }
    }

    /// The objects among which a lookup finds its own.
    fn objects_of(&self, key: &LookupKey) -> &[Value] {
        match key {
            LookupKey::Catalog(_) => &self.catalog,
            _ => &self.objects,
        }
    }
}

fn of_kind<'a>(
    objects: &'a [Value],
    api_version: &'a str,
    kind: &'a str,
) -> impl Iterator<Item = &'a Value> {
    objects.iter().filter(move |object| {
        text(object, "/apiVersion") == api_version && text(object, "/kind") == kind
    })
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let value = object.pointer(pointer).and_then(Value::as_str);
    value.unwrap_or_default()
}
