//! JSON as the API server sends it, split as text before any of it is decoded.
//!
//! A tenant can store an object that cannot be decoded: serde_json stops at 128 levels of nesting, and jiff does not support some times of
//! the year 9999 in `metadata.managedFields`. The API server sends such an object in one body with those of all other tenants. So a scan
//! without recursion splits the body first, and each object is decoded separately.

use std::borrow::Cow;

use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use thiserror::Error;

/// Text that is not JSON, or not an answer of an API server. Holds no part of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Error)]
#[error("malformed at byte {0} of the answer")]
pub(crate) struct Malformed(usize);

/// Why an object cannot be decoded. Holds no value of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Undecodable {
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
pub(crate) struct Page<'t> {
    /// The text of each object.
    pub(crate) items: Vec<&'t str>,
    /// The list's version.
    pub(crate) version: Option<String>,
    /// The token of the next page; `None` on the last page.
    pub(crate) next: Option<String>,
}

/// One line of a watch.
#[derive(Debug)]
pub(crate) struct WatchLine<'t> {
    /// Such as `ADDED`.
    pub(crate) kind: String,
    /// The object's text.
    pub(crate) object: &'t str,
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
pub(crate) struct Identity {
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

#[derive(Deserialize)]
struct Identified {
    metadata: Identity,
}

impl Identity {
    pub(crate) fn of(object: &str) -> Option<Self> {
        // Other members are skipped without recursion.
        let identified: Identified = serde_json::from_str(object).ok()?;
        Some(identified.metadata)
    }
}

impl<'t> Page<'t> {
    pub(crate) fn split(text: &'t str) -> Result<Self, Malformed> {
        let mut page = Self {
            items: Vec::new(),
            version: None,
            next: None,
        };
        for member in members(text)? {
            match member.key {
                "items" => page.items = elements(member.value)?,
                "metadata" => {
                    let metadata: ListMetadata =
                        serde_json::from_str(member.value).map_err(|_| Malformed(member.start))?;
                    page.version = metadata.resource_version;
                    page.next = metadata.r#continue.filter(|next| !next.is_empty());
                }
                _ => {}
            }
        }
        Ok(page)
    }
}

impl<'t> WatchLine<'t> {
    pub(crate) fn split(text: &'t str) -> Result<Self, Malformed> {
        let (mut kind, mut object) = (None, None);
        for member in members(text)? {
            match member.key {
                "type" => kind = serde_json::from_str(member.value).ok(),
                "object" => object = Some(member.value),
                _ => {}
            }
        }
        let line = kind.zip(object).map(|(kind, object)| Self { kind, object });
        line.ok_or(Malformed(0))
    }
}

/// Returns the object without `metadata.managedFields`. The controller does not use them, they are half of many objects, and they are the
/// only part of the metadata in which a tenant can store values that do not decode.
pub(crate) fn without_managed_fields(object: &str) -> Cow<'_, str> {
    let find = |text, key| {
        let members = members(text).unwrap_or_default().into_iter();
        members.into_iter().find(|member| member.key == key)
    };
    let cut = find(object, "metadata").and_then(|metadata| {
        let fields = find(metadata.value, "managedFields")?;
        let start = metadata.start + fields.start;
        let (before, rest) = object.split_at_checked(start)?;
        let after = rest.get(fields.value.len()..)?;
        Some(Cow::Owned([before, "null", after].concat()))
    });
    cut.unwrap_or(Cow::Borrowed(object))
}

/// Decodes an object, or returns the field that does not decode.
pub(crate) fn decode<T: DeserializeOwned>(object: &str) -> Result<T, Undecodable> {
    let mut text = serde_json::Deserializer::from_str(object);
    serde_path_to_error::deserialize(&mut text).map_err(|error| {
        let (path, error) = (error.path().to_string(), error.inner());
        match error.classify() {
            serde_json::error::Category::Data => Undecodable::Field(place(&path)),
            // The text is valid JSON, so the error is the nesting limit.
            _ => Undecodable::TooDeep(place(&path)),
        }
    })
}

/// Returns a path for an error: without control characters, and cut if it is long.
pub(crate) fn place(path: &str) -> String {
    const LONGEST: usize = 120;
    let path = trainyard_model::text::clean(path);
    match path.get(..path.floor_char_boundary(LONGEST)) {
        Some(start) if start.len() < path.len() => format!("{start}..."),
        _ => path,
    }
}

/// A member of an object, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member<'t> {
    /// The text between the quotes.
    pub(crate) key: &'t str,
    /// The value's text.
    pub(crate) value: &'t str,
    /// The offset of the value in the object's text.
    start: usize,
}

/// Returns the members of an object; `null` has none.
pub(crate) fn members(object: &str) -> Result<Vec<Member<'_>>, Malformed> {
    let mut scan = Scan::new(object);
    let mut members = Vec::new();
    scan.all(b'{', b'}', |scan| {
        let key = scan.value()?;
        let key = key.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
        let key = key.ok_or(Malformed(scan.at))?;
        scan.expect(b':')?;
        let value = scan.value()?;
        let start = scan.at - value.len();
        members.push(Member { key, value, start });
        Ok(())
    })?;
    Ok(members)
}

/// Returns the elements of an array; `null`, as which Go serializes an empty list, has none.
fn elements(array: &str) -> Result<Vec<&str>, Malformed> {
    let mut scan = Scan::new(array);
    let mut elements = Vec::new();
    scan.all(b'[', b']', |scan| {
        elements.push(scan.value()?);
        Ok(())
    })?;
    Ok(elements)
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the text of a value, and skips it without recursion.
    fn value(&mut self) -> Result<&'t str, Malformed> {
        let wrong = Malformed(self.at);
        let rest = self.text.get(self.at..).ok_or(wrong)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        let Some(Ok(_)) = values.next() else {
            return Err(wrong);
        };
        let end = values.byte_offset();
        self.at += end;
        rest.get(..end).map(str::trim_start).ok_or(wrong)
    }

    /// Returns the next byte that is not blank.
    fn next(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
        self.at += blanks.count();
        self.text.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.next() != Some(byte) {
            return Err(Malformed(self.at));
        }
        self.at += 1;
        Ok(())
    }

    /// Parses all parts between two brackets; the text ends with the second one.
    fn all(
        &mut self,
        open: u8,
        close: u8,
        mut part: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        if self.text.trim() == "null" {
            return Ok(());
        }
        self.expect(open)?;
        if self.next() != Some(close) {
            loop {
                part(self)?;
                if self.next() != Some(b',') {
                    break;
                }
                self.at += 1;
            }
        }
        self.expect(close)?;
        match self.next() {
            None => Ok(()),
            Some(_) => Err(Malformed(self.at)),
        }
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
            assert_eq!((&*line.kind, line.object), ("ADDED", items[1]));
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
            assert!(!error.contains("secret"), "{error}");
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
