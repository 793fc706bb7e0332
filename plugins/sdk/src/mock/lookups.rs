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
    /// The kinds that are not served, by API version and kind.
    pub(super) not_served: Vec<(String, String)>,
}

impl Cluster {
    /// Returns the answer to a lookup. `None` for an object that the test did not add, which a host would have to fetch first.
    pub(super) fn answer(&self, key: &LookupKey, asker: Requester<'_>) -> Option<LookupAnswer> {
        match key {
            LookupKey::Object(of) | LookupKey::Optional(of) | LookupKey::Catalog(of) => {
                if !self.serves(&of.api_version, &of.kind) {
                    return Some(LookupAnswer::NotServed);
                }
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
            LookupKey::Served { api_version, kind } => {
                Some(LookupAnswer::Served(self.serves(api_version, kind)))
            }
        }
    }

    fn serves(&self, api_version: &str, kind: &str) -> bool {
        let is = |(version, name): &(String, String)| version == api_version && name == kind;
        !self.not_served.iter().any(is)
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
