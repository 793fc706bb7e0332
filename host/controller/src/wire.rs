//! JSON as the API server sends it, split as text before any of it is decoded.
//!
//! A tenant can store an object that cannot be decoded: serde_json stops at 128 levels of nesting, and jiff does not support some times of
//! the year 9999 in `metadata.managedFields`. The API server sends such an object in one body with those of all other tenants. So the body
//! is first split into raw values, which serde_json finds without recursion, and each object is decoded separately.

use std::borrow::Cow;

use indexmap::IndexMap;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};
use thiserror::Error;

/// Text that is not JSON, or not an answer of an API server. Holds no part of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Error)]
#[error("the API server's answer is malformed at byte {0}")]
pub struct Malformed(usize);

/// Why an object cannot be decoded. Holds no value of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Undecodable {
    /// The text is not JSON.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The object is nested more deeply than serde_json supports.
    #[error("{0}: nested deeper than the 127 levels that are supported; flatten it")]
    TooDeep(String),
    /// A field is missing or has the wrong type.
    #[error("{0}: the value cannot be decoded; correct it")]
    Field(String),
}

/// A page of a list.
#[derive(Debug)]
pub struct Page<'t> {
    /// The text of each object.
    pub items: Vec<&'t str>,
    /// The list's version.
    pub version: Option<String>,
    /// The token of the next page; `None` on the last page.
    pub next: Option<String>,
}

/// One line of a watch.
#[derive(Debug, Deserialize)]
pub struct WatchLine<'t> {
    /// Such as `ADDED`.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(borrow)]
    object: &'t RawValue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct List<'t> {
    metadata: ListMetadata,
    /// Go serializes an empty list as `null`.
    #[serde(borrow)]
    items: Option<Vec<&'t RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMetadata {
    resource_version: Option<String>,
    r#continue: Option<String>,
}

/// The name and version of an object. Decodes even if the rest of the object does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Identity {
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
}

#[derive(Deserialize)]
struct Identified {
    metadata: Identity,
}

impl Identity {
    pub fn of(object: &str) -> Option<Self> {
        // Other members are skipped without recursion.
        let identified: Identified = serde_json::from_str(object).ok()?;
        Some(identified.metadata)
    }
}

impl<'t> Page<'t> {
    pub fn split(text: &'t str) -> Result<Self, Malformed> {
        let List { metadata, items } = read(text)?;
        Ok(Self {
            items: items.into_iter().flatten().map(RawValue::get).collect(),
            version: metadata.resource_version,
            next: metadata.r#continue.filter(|next| !next.is_empty()),
        })
    }
}

impl<'t> WatchLine<'t> {
    pub fn split(text: &'t str) -> Result<Self, Malformed> {
        read(text)
    }

    /// Returns the object's text.
    pub fn object(&self) -> &'t str {
        self.object.get()
    }
}

fn read<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, Malformed> {
    // serde_json would read the members from an array, too.
    if !text.trim_start().starts_with('{') {
        return Err(Malformed(0));
    }
    serde_json::from_str(text).map_err(|error| Malformed::at(&error, text))
}

/// Returns the object without `metadata.managedFields`. The controller does not use them, they are half of many objects, and they are the
/// only part of the metadata in which a tenant can store values that do not decode.
pub fn without_managed_fields(object: &str) -> Cow<'_, str> {
    let cut = || {
        let mut of_object = members(object).ok()?;
        let mut metadata = members(of_object.get("metadata")?.get()).ok()?;
        *metadata.get_mut("managedFields")? = RawValue::NULL;
        let metadata = to_raw_value(&metadata).ok()?;
        of_object.insert("metadata".to_owned(), &metadata);
        serde_json::to_string(&of_object).ok()
    };
    cut().map_or(Cow::Borrowed(object), Cow::Owned)
}

/// Decodes an object, or returns the field that does not decode.
pub fn decode<T: DeserializeOwned>(object: &str) -> Result<T, Undecodable> {
    let mut text = serde_json::Deserializer::from_str(object);
    serde_path_to_error::deserialize(&mut text).map_err(|error| {
        let (path, error) = (error.path().to_string(), error.inner());
        match error.classify() {
            serde_json::error::Category::Data => Undecodable::Field(shown(&path)),
            // The text is valid JSON, so the error is the nesting limit.
            _ => Undecodable::TooDeep(shown(&path)),
        }
    })
}

/// Returns a path for an error: without control characters, and cut if it is long.
pub fn shown(path: &str) -> String {
    const LONGEST: usize = 120;
    let path = trainyard_model::text::clean(path);
    match path.get(..path.floor_char_boundary(LONGEST)) {
        Some(start) if start.len() < path.len() => format!("{start}..."),
        _ => path,
    }
}

/// Returns the text of the members of an object; `null` has none.
pub fn members(object: &str) -> Result<IndexMap<String, &RawValue>, Malformed> {
    let members: Result<Option<_>, _> = serde_json::from_str(object);
    let members = members.map_err(|error| Malformed::at(&error, object))?;
    Ok(members.unwrap_or_default())
}

impl Malformed {
    /// Returns the place of an error in a text.
    fn at(error: &serde_json::Error, text: &str) -> Self {
        let lines = text.split_inclusive('\n').map(str::len);
        let before: usize = lines.take(error.line().saturating_sub(1)).sum();
        Self(before + error.column())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use serde_json::{Value, json};

    use super::*;

    fn deep(levels: usize) -> String {
        format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn deep_objects_leave_the_others_of_a_list_whole() {
        for levels in [127, 128, 300, 100_000] {
            let items = [
                "{\"a\": \"}]\\\"\"}",
                &format!("{{\"a\":{}}}", deep(levels)),
                "{}",
            ];
            let text = format!(
                " {{\"kind\":\"L\", \"metadata\" : {{\"resourceVersion\":\"7\",\"continue\":\"n\"}},\n\"items\": [ {} ]}}\n",
                items.join(" , ")
            );
            assert!(serde_json::from_str::<Value>(&text).is_err() || levels < 127);
            let page = Page::split(&text).unwrap();
            assert_eq!(page.items, items);
            assert_eq!(
                (page.version.as_deref(), page.next.as_deref()),
                (Some("7"), Some("n"))
            );
            let line = format!("{{\"type\":\"ADDED\",\"object\":{}}}", items[1]);
            let line = WatchLine::split(&line).unwrap();
            assert_eq!((&*line.kind, line.object()), ("ADDED", items[1]));
        }
    }

    #[test]
    fn an_empty_list_is_empty_however_it_is_written() {
        for items in ["[]", " [ ] ", "null"] {
            let text = format!("{{\"items\":{items},\"metadata\":{{\"continue\":\"\"}}}}");
            let page = Page::split(&text).unwrap();
            assert!(page.items.is_empty() && page.next.is_none(), "{items}");
        }
    }

    #[test]
    fn errors_about_malformed_answers_quote_nothing() {
        for text in [
            "",
            "[]",
            "{",
            "{\"secret\"",
            "{\"secret\":1",
            "{\"items\":[1,]}",
            "{\"items\":[1}",
            "{\"secret\" 1}",
            "{}secret",
            "{secret:1}",
            "{\"metadata\":\"secret\",\"items\":[]}",
            "{\"items\":{\"secret\":1}}",
        ] {
            let error = Page::split(text).unwrap_err().to_string();
            let at = error.strip_prefix("the API server's answer is malformed at byte ");
            assert!(
                at.unwrap().parse::<usize>().unwrap() <= text.len(),
                "{error}"
            );
            assert!(WatchLine::split(text).is_err(), "{text}");
        }
    }

    #[test]
    fn managed_fields_are_cut_and_nothing_else() {
        let object = json!({
            "kind": "A",
            "metadata": {
                "annotations": {"managedFields": "stay"},
                "managedFields": [{"time": "9999-12-31T23:59:59Z", "fieldsV1": {"f:a": {}}}],
                "name": "a",
            },
            "spec": {"metadata": {"managedFields": [1]}},
        });
        let cut: Value =
            serde_json::from_str(&without_managed_fields(&object.to_string())).unwrap();
        let mut wanted = object;
        wanted["metadata"]["managedFields"] = Value::Null;
        assert_eq!(cut, wanted);
        for same in [
            "{\"metadata\":{}}",
            "{\"a\":1}",
            "{\"metadata\":1}",
            "no JSON",
            "1",
        ] {
            assert!(matches!(without_managed_fields(same), Cow::Borrowed(text) if text == same));
        }
        let hidden = format!("{{\"metadata\":{{\"managedFields\":{}}}}}", deep(300));
        assert_eq!(
            without_managed_fields(&hidden),
            "{\"metadata\":{\"managedFields\":null}}"
        );
    }

    #[test]
    fn undecodable_objects_keep_their_name_and_report_the_path() {
        #[derive(Debug, Deserialize)]
        #[allow(dead_code)]
        struct Object {
            spec: Value,
            #[serde(default)]
            count: u8,
        }
        let deep = format!(
            "{{\"metadata\":{{\"name\":\"a\",\"resourceVersion\":\"5\"}},\"spec\":{{\"x\":{}}}}}",
            deep(200)
        );
        let error = decode::<Object>(&deep).unwrap_err();
        assert!(
            matches!(&error, Undecodable::TooDeep(path) if path.starts_with("spec")),
            "{error}"
        );
        let error = decode::<Object>("{\"spec\":1,\"count\":\"secret\"}").unwrap_err();
        assert_eq!(error, Undecodable::Field("count".to_owned()));
        let identity = Identity::of(&deep).unwrap();
        assert_eq!(identity.name.as_deref(), Some("a"));
        assert_eq!(identity.resource_version.as_deref(), Some("5"));
    }
}
