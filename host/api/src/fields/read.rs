//! The reader of an object's fields.

use serde_json::{Map, Value};

use super::problem::{A_STRING, FieldError, FieldProblem, cut, describe};
use crate::{StringMap, path::FieldPath};

/// Reads the fields of one object by name and type, and collects errors.
///
/// A reader does not repeat the checks of a schema, because objects are read after an API server, or the same step offline, has admitted
/// them. A field that is missing or wrong is read as `None` or as a default; the caller discards the result if [`Fields::errors`]
/// returns any.
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

    /// Refuses a field that is not supported yet, unless it is an empty list or object.
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

    /// Reads a boolean.
    pub fn boolean(&mut self, name: &'static str) -> Option<bool> {
        let value = self.raw(name)?;
        if !value.is_boolean() {
            self.wrong_type(self.path.field(name), "true or false", value);
        }
        value.as_bool()
    }

    /// Reads an integer.
    pub fn integer(&mut self, name: &'static str) -> Option<i64> {
        let value = self.raw(name)?;
        let integer = value.as_i64();
        if integer.is_none() {
            self.wrong_type(self.path.field(name), "an integer", value);
        }
        integer
    }

    /// Reads a count: an integer from 1 with 32 bits, as in Kubernetes. The reference's schemas allow any integer.
    pub fn count(&mut self, name: &'static str) -> Option<u32> {
        let value = self.raw(name)?;
        let path = self.path.field(name);
        match value.as_i64().map(i32::try_from) {
            Some(Ok(count)) if count > 0 => return u32::try_from(count).ok(),
            Some(Ok(count)) => self.fail(path, FieldProblem::NoCount(count.into())),
            Some(Err(_)) | None => self.wrong_type(path, "an integer of 32 bits", value),
        }
        None
    }

    /// Reads a list of strings.
    pub fn strings(&mut self, name: &'static str) -> Option<Vec<String>> {
        let value = self.raw(name)?;
        let path = self.path.field(name);
        let items = self.items(value, &path)?;
        let mut strings = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            match item.as_str() {
                Some(text) => strings.push(text.to_owned()),
                None => self.wrong_type(path.index(at), A_STRING, item),
            }
        }
        Some(strings)
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

    /// Reads an object without looking at its fields.
    pub fn opaque_object(&mut self, name: &str) -> Option<Value> {
        let value = self.raw(name)?;
        if !value.is_object() {
            self.wrong_type(self.path.field(name), "an object", value);
            return None;
        }
        Some(value.clone())
    }

    /// Reads an object by `read`.
    pub fn object<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Fields<'v>) -> T,
    ) -> Option<T> {
        let value = self.raw(name)?;
        Some(self.child(value, self.path.field(name), read))
    }

    /// Reads a list of objects by `read`.
    pub fn objects<T>(
        &mut self,
        name: &'static str,
        read: impl FnMut(&mut Fields<'v>) -> T,
    ) -> Option<Vec<T>> {
        let value = self.raw(name)?;
        self.objects_at(value, &self.path.field(name), read)
    }

    /// Reads a list of objects at `path`, which need not be below these fields.
    pub fn objects_at<T>(
        &mut self,
        value: &'v Value,
        path: &FieldPath,
        mut read: impl FnMut(&mut Fields<'v>) -> T,
    ) -> Option<Vec<T>> {
        let items = self.items(value, path)?;
        let child = |(at, item)| self.child(item, path.index(at), &mut read);
        Some(items.iter().enumerate().map(child).collect())
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

    fn items(&mut self, value: &'v Value, path: &FieldPath) -> Option<&'v [Value]> {
        let Some(items) = value.as_array() else {
            self.wrong_type(path.clone(), "a list", value);
            return None;
        };
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
        self.errors.extend(fields.errors());
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
