//! The reader of an object's fields.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::problem::{A_STRING, FieldError, FieldProblem, cut, describe, nearest};
use crate::StringMap;
use crate::path::FieldPath;

/// Reads the fields of one object, each by its name and type, and collects what is wrong.
///
/// A field that is missing or wrong reads as None or as a default; the caller throws the result away where [`Fields::finish`]
/// gives errors. A field that nobody asked for is unknown, and an error.
pub struct Fields<'v> {
    path: FieldPath,
    map: Option<&'v Map<String, Value>>,
    asked: Vec<&'static str>,
    errors: Vec<FieldError>,
}

impl<'v> Fields<'v> {
    /// The fields of `value`, which stands at `path`. A value that is no object is an error.
    pub fn of(value: &'v Value, path: FieldPath) -> Self {
        let map = value.as_object();
        let mut fields = Self {
            path,
            map,
            asked: Vec::new(),
            errors: Vec::new(),
        };
        if map.is_none() {
            fields.wrong_type(fields.path.clone(), "an object", value);
        }
        fields
    }

    /// Where the object stands.
    pub fn path(&self) -> &FieldPath {
        &self.path
    }

    /// The errors, with one for each field that nobody asked for.
    pub fn finish(mut self) -> Vec<FieldError> {
        let known = std::mem::take(&mut self.asked);
        for name in self.map.iter().flat_map(|map| map.keys()) {
            if !known.contains(&name.as_str()) {
                let problem = FieldProblem::Unknown {
                    suggestion: nearest(name, &known),
                    known: known.clone(),
                };
                self.errors.push(FieldError {
                    path: self.path.field(cut(name)),
                    problem,
                });
            }
        }
        self.errors
    }

    /// The errors, with fields that nobody asked for let through.
    pub fn errors(self) -> Vec<FieldError> {
        self.errors
    }

    /// Records an error at any path.
    pub fn fail(&mut self, path: FieldPath, problem: FieldProblem) {
        self.errors.push(FieldError { path, problem });
    }

    /// Takes over errors that were found elsewhere.
    pub fn absorb(&mut self, errors: Vec<FieldError>) {
        self.errors.extend(errors);
    }

    /// The raw value of a field, if it is there. It counts as known from here on.
    pub fn raw(&mut self, name: &'static str) -> Option<&'v Value> {
        if !self.asked.contains(&name) {
            self.asked.push(name);
        }
        self.map?.get(name)
    }

    /// A raw field that must be there.
    pub fn required(&mut self, name: &'static str) -> Option<&'v Value> {
        let value = self.raw(name);
        if value.is_none() && self.map.is_some() {
            self.fail(self.path.field(name), FieldProblem::Required);
        }
        value
    }

    /// A field that Trainyard knows and does not read yet. Empty lists and objects say nothing, and are let through.
    pub fn not_supported(&mut self, name: &'static str) {
        let empty = match self.raw(name) {
            None => true,
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Object(map)) => map.is_empty(),
            Some(_) => false,
        };
        if !empty {
            self.fail(self.path.field(name), FieldProblem::NotSupported);
        }
    }

    /// Text.
    pub fn string(&mut self, name: &'static str) -> Option<String> {
        let value = self.raw(name)?;
        if !value.is_string() {
            self.wrong_type(self.path.field(name), A_STRING, value);
        }
        value.as_str().map(str::to_owned)
    }

    /// Text of at most `most` characters.
    pub fn short_string(&mut self, name: &'static str, most: usize) -> Option<String> {
        let text = self.string(name)?;
        self.check_length(self.path.field(name), &text, most);
        Some(text)
    }

    /// Text that must be there and not be empty.
    pub fn required_string(&mut self, name: &'static str) -> String {
        self.required(name);
        let text = self.string(name);
        if text.as_deref() == Some("") {
            self.fail(self.path.field(name), FieldProblem::Required);
        }
        text.unwrap_or_default()
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, name: &'static str) -> Option<bool> {
        let value = self.raw(name)?;
        if !value.is_boolean() {
            self.wrong_type(self.path.field(name), "true or false", value);
        }
        value.as_bool()
    }

    /// An integer from `least` to `most`; `i64::MAX` is no bound.
    pub fn integer(&mut self, name: &'static str, least: i64, most: i64) -> Option<i64> {
        let value = self.raw(name)?;
        let path = self.path.field(name);
        match value.as_i64() {
            Some(found) if (least..=most).contains(&found) => return Some(found),
            Some(found) => self.fail(path, FieldProblem::Range { least, most, found }),
            None => self.wrong_type(path, "an integer", value),
        }
        None
    }

    /// A count: an integer from 1, of 32 bits as Kubernetes' counts are.
    pub fn count(&mut self, name: &'static str) -> Option<u32> {
        self.integer(name, 1, i64::from(i32::MAX))
            .and_then(|count| u32::try_from(count).ok())
    }

    /// A list of at most `most` texts.
    pub fn strings(&mut self, name: &'static str, most: usize) -> Option<Vec<String>> {
        let value = self.raw(name)?;
        let path = self.path.field(name);
        let items = self.items(value, &path, most)?;
        let mut strings = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            match item.as_str() {
                Some(text) => strings.push(text.to_owned()),
                None => self.wrong_type(path.index(at), A_STRING, item),
            }
        }
        Some(strings)
    }

    /// A map of texts, such as labels.
    pub fn string_map(&mut self, name: &'static str) -> StringMap {
        let Some(value) = self.raw(name) else {
            return StringMap::new();
        };
        let path = self.path.field(name);
        let Some(map) = value.as_object() else {
            self.wrong_type(path, "an object", value);
            return StringMap::new();
        };
        let mut strings = StringMap::new();
        for (key, value) in map {
            match value.as_str() {
                Some(text) => _ = strings.insert(key.clone(), text.to_owned()),
                None => self.wrong_type(path.key(cut(key)), A_STRING, value),
            }
        }
        strings
    }

    /// An object that is kept as it is.
    pub fn opaque_object(&mut self, name: &'static str) -> Option<Value> {
        let value = self.raw(name)?;
        if !value.is_object() {
            self.wrong_type(self.path.field(name), "an object", value);
            return None;
        }
        Some(value.clone())
    }

    /// An object whose fields `read` reads.
    pub fn object<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Fields<'v>) -> T,
    ) -> Option<T> {
        let value = self.raw(name)?;
        Some(self.child(value, self.path.field(name), read))
    }

    /// A list of at most `most` objects whose fields `read` reads.
    pub fn objects<T>(
        &mut self,
        name: &'static str,
        most: usize,
        mut read: impl FnMut(&mut Fields<'v>) -> T,
    ) -> Option<Vec<T>> {
        let value = self.raw(name)?;
        let path = self.path.field(name);
        let items = self.items(value, &path, most)?;
        let mut child = |(at, item)| self.child(item, path.index(at), &mut read);
        Some(items.iter().enumerate().map(&mut child).collect())
    }

    /// A list of at most `most` objects that stands at `path` outside of any fields, with its errors.
    pub fn list_at<T>(
        value: &'v Value,
        path: FieldPath,
        most: usize,
        mut read: impl FnMut(&mut Fields<'v>) -> T,
    ) -> (Vec<T>, Vec<FieldError>) {
        let mut fields = Self {
            path,
            map: None,
            asked: Vec::new(),
            errors: Vec::new(),
        };
        let path = fields.path.clone();
        let items = fields.items(value, &path, most).unwrap_or_default();
        let list = items
            .iter()
            .enumerate()
            .map(|(at, item)| fields.child(item, path.index(at), &mut read))
            .collect();
        (list, fields.errors)
    }

    /// Refuses a second item of one name in the list `name`.
    pub fn unique<'n>(&mut self, name: &'static str, names: impl IntoIterator<Item = &'n str>) {
        self.unique_at(&self.path.field(name), names);
    }

    /// Refuses a second item of one name in the list at `path`.
    pub fn unique_at<'n>(&mut self, path: &FieldPath, names: impl IntoIterator<Item = &'n str>) {
        let mut seen = HashSet::new();
        for (at, item) in names.into_iter().enumerate() {
            if !item.is_empty() && !seen.insert(item) {
                self.fail(path.index(at), FieldProblem::Duplicate(cut(item)));
            }
        }
    }

    /// Refuses text that is longer than `most` characters.
    pub fn check_length(&mut self, path: FieldPath, text: &str, most: usize) {
        let found = text.chars().count();
        if found > most {
            self.fail(path, FieldProblem::TooLong { most, found });
        }
    }

    fn items(&mut self, value: &'v Value, path: &FieldPath, most: usize) -> Option<&'v [Value]> {
        let Some(items) = value.as_array() else {
            self.wrong_type(path.clone(), "a list", value);
            return None;
        };
        if items.len() > most {
            self.fail(
                path.clone(),
                FieldProblem::TooMany {
                    most,
                    found: items.len(),
                },
            );
        }
        Some(items)
    }

    fn child<T>(
        &mut self,
        value: &'v Value,
        path: FieldPath,
        read: impl FnOnce(&mut Fields<'v>) -> T,
    ) -> T {
        let mut fields = Fields::of(value, path);
        let result = read(&mut fields);
        self.errors.extend(fields.finish());
        result
    }

    fn wrong_type(&mut self, path: FieldPath, expected: &'static str, value: &Value) {
        self.fail(
            path,
            FieldProblem::Type {
                expected,
                found: describe(value),
            },
        );
    }
}
