//! The reader of an object's fields.

use serde_json::{Map, Value};

use super::problem::{A_STRING, FieldError, FieldProblem, cut, describe};
use crate::{StringMap, path::FieldPath};

/// Reads the fields of one object that no schema has validated, by name and type, and collects errors.
///
/// A field that is missing or wrong is read as `None` or as a default; the caller discards the result if [`Fields::errors`] returns any.
pub struct Fields<'v> {
    path: FieldPath,
    map: Option<&'v Map<String, Value>>,
    errors: Vec<FieldError>,
}

impl<'v> Fields<'v> {
    /// Creates a reader of the object `value` at `path`. A value that is not an object is an error.
    pub fn of(value: &'v Value, path: FieldPath) -> Self {
        let map = value.as_object();
        let mut fields = Self {
            path,
            map,
            errors: Vec::new(),
        };
        if map.is_none() {
            fields.wrong_type(fields.path.clone(), "an object", value);
        }
        fields
    }

    /// The path of the object.
    pub fn path(&self) -> &FieldPath {
        &self.path
    }

    /// The errors.
    pub fn errors(self) -> Vec<FieldError> {
        self.errors
    }

    /// Records an error at any path.
    pub fn fail(&mut self, path: FieldPath, problem: FieldProblem) {
        self.errors.push(FieldError { path, problem });
    }

    /// Returns the names of all fields.
    pub fn names(&self) -> impl Iterator<Item = &'v str> + use<'v> {
        self.map.into_iter().flat_map(Map::keys).map(String::as_str)
    }

    /// Returns the raw value of a field, if it is set.
    pub fn raw(&self, name: &str) -> Option<&'v Value> {
        self.map?.get(name)
    }

    /// Returns the raw value of a required field.
    pub fn required(&mut self, name: &'static str) -> Option<&'v Value> {
        let value = self.raw(name);
        if value.is_none() && self.map.is_some() {
            self.fail(self.path.field(name), FieldProblem::Required);
        }
        value
    }

    /// Reads a string.
    pub fn string(&mut self, name: &'static str) -> Option<String> {
        let value = self.raw(name)?;
        if !value.is_string() {
            self.wrong_type(self.path.field(name), A_STRING, value);
        }
        value.as_str().map(str::to_owned)
    }

    /// Reads a required string that is not empty.
    pub fn required_string(&mut self, name: &'static str) -> String {
        self.required(name);
        let text = self.string(name);
        if text.as_deref() == Some("") {
            self.fail(self.path.field(name), FieldProblem::Required);
        }
        text.unwrap_or_default()
    }

    /// Reads a map of strings, such as labels.
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

    /// Reads a list of strings.
    pub fn strings(&mut self, name: &str) -> Vec<String> {
        let Some(value) = self.raw(name) else {
            return Vec::new();
        };
        let path = self.path.field(name);
        let Some(items) = value.as_array() else {
            self.wrong_type(path, "a list", value);
            return Vec::new();
        };
        let mut strings = Vec::new();
        for (at, item) in items.iter().enumerate() {
            match item.as_str() {
                Some(text) => strings.push(text.to_owned()),
                None => self.wrong_type(path.index(at), A_STRING, item),
            }
        }
        strings
    }

    /// Reads an object without looking at its fields.
    pub fn opaque_object(&mut self, name: &str) -> Option<Value> {
        let value = self.raw(name)?;
        if !value.is_object() {
            self.wrong_type(self.path.field(name), "an object", value);
            return None;
        }
        Some(value.clone())
    }

    /// Reads a list of objects at `path` by `read`, which reads one, and adds all errors to `errors`.
    pub fn of_items<T>(
        list: &'v Value,
        path: &FieldPath,
        errors: &mut Vec<FieldError>,
        mut read: impl FnMut(&mut Self) -> T,
    ) -> Vec<T> {
        let Some(items) = list.as_array() else {
            let (expected, found) = ("a list", describe(list));
            errors.push(FieldProblem::Type { expected, found }.at(path.clone()));
            return Vec::new();
        };
        let items = items.iter().enumerate();
        let read = items.map(|(at, item)| {
            let mut fields = Self::of(item, path.index(at));
            let read = read(&mut fields);
            errors.extend(fields.errors());
            read
        });
        read.collect()
    }

    /// Refuses fields that are not known.
    pub fn only(&mut self, known: &'static [&'static str]) {
        for name in self.map.iter().flat_map(|map| map.keys()) {
            if !known.contains(&name.as_str()) {
                let path = self.path.field(cut(name));
                self.errors.push(FieldError {
                    path,
                    problem: FieldProblem::Unknown { known },
                });
            }
        }
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
