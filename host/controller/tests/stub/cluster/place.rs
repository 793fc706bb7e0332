//! What the path of a call addresses.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Id;

/// The objects that a path addresses.
pub(super) struct Place {
    pub(super) plural: String,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) query: BTreeMap<String, String>,
}

impl Place {
    pub(super) fn of(uri: &http::Uri) -> Option<Self> {
        let mut parts = uri
            .path()
            .split('/')
            .filter(|part| !part.is_empty())
            .peekable();
        let versions = if parts.next()? == "api" { 1 } else { 2 };
        let mut parts = parts.skip(versions).peekable();
        let namespace = if parts.peek() == Some(&"namespaces") {
            parts.next();
            parts.next().map(str::to_owned)
        } else {
            None
        };
        let query = uri.query().unwrap_or_default().split('&');
        let query = query.filter_map(|pair| pair.split_once('='));
        Some(Self {
            plural: parts.next()?.to_owned(),
            namespace,
            name: parts.next().map(str::to_owned),
            query: query
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        })
    }

    pub(super) fn has(&self, (plural, namespace, name): &Id) -> bool {
        let selector = self.query.get("fieldSelector");
        let wanted = selector.and_then(|selector| selector.strip_prefix("metadata.name%3D"));
        *plural == self.plural
            && self
                .namespace
                .as_ref()
                .is_none_or(|wanted| wanted == namespace)
            && wanted.is_none_or(|wanted| wanted == name)
    }

    /// Whether an Event is about the object that the selector names.
    pub(super) fn is_about(&self, event: &Value) -> bool {
        let selector = self.query.get("fieldSelector").map(String::as_str);
        let uid = selector.and_then(|it| it.strip_prefix("involvedObject.uid%3D"));
        let uid = uid.and_then(|uid| uid.split("%2C").next());
        uid.is_none_or(|uid| event["involvedObject"]["uid"] == uid)
    }

    pub(super) fn id(&self, name: &str) -> Id {
        let namespace = self.namespace.clone().unwrap_or_default();
        (self.plural.clone(), namespace, name.to_owned())
    }
}
