//! The keywords of one schema, with checks of their types.

use serde_json::{Map, Value};

use trainyard_text::StackPath;

use super::{refused, wrong};
use crate::error::CompileError;

/// The value validations, which are allowed under `allOf`, `anyOf`, `oneOf` and `not`.
const VALIDATIONS: [&str; 24] = [
    "properties",
    "items",
    "required",
    "enum",
    "format",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "x-kubernetes-validations",
    "additionalProperties",
];

/// The validations that nodes have in fields of their own.
const STRUCTURAL: [&str; 4] = [
    "properties",
    "items",
    "additionalProperties",
    "x-kubernetes-validations",
];

/// The keywords for the structure of a value.
const SHAPE: [&str; 9] = [
    "type",
    "default",
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];

/// The keywords for documentation.
const WORDS: [&str; 4] = ["description", "title", "example", "externalDocs"];

/// The keywords of JSON Schema that are not allowed in a structural schema.
const FORBIDDEN: [&str; 7] = [
    "$ref",
    "$schema",
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
];

/// The keywords of one schema.
pub(super) struct Keywords<'a> {
    map: &'a Map<String, Value>,
    at: &'a StackPath<'a>,
}

impl<'a> Keywords<'a> {
    pub(super) fn new(map: &'a Map<String, Value>, at: &'a StackPath<'a>) -> Self {
        Self { map, at }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name)
    }

    pub(super) fn refuse_unknown(&self) -> Result<(), CompileError> {
        for name in self.map.keys() {
            let name = name.as_str();
            if FORBIDDEN.contains(&name) {
                let reason =
                    format!("an API server does not support {name} in a structural schema");
                return Err(refused(&self.at.field(name), reason));
            }
            if !VALIDATIONS.contains(&name) && !SHAPE.contains(&name) && !WORDS.contains(&name) {
                return Err(CompileError::UnknownKeyword {
                    path: self.at.path(),
                    keyword: name.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Refuses keywords for the structure of a value, which are not allowed under `allOf`, `anyOf`, `oneOf` and `not`.
    pub(super) fn refuse_all_but_validations(&self, type_too: bool) -> Result<(), CompileError> {
        for name in self.map.keys() {
            let allowed = VALIDATIONS.contains(&name.as_str())
                && name != "x-kubernetes-validations"
                && name != "additionalProperties";
            if !(allowed || type_too && name == "type") {
                let reason = "is not allowed under allOf, anyOf, oneOf and not".to_owned();
                return Err(refused(&self.at.field(name), reason));
            }
        }
        Ok(())
    }

    /// Whether a keyword restricts the value further than its structure does.
    pub(super) fn has_checks(&self) -> bool {
        let is_check = |name: &str| VALIDATIONS.contains(&name) && !STRUCTURAL.contains(&name);
        self.map.keys().any(|name| is_check(name))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, CompileError> {
        self.read(name, "a string", Value::as_str)
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, CompileError> {
        Ok(self
            .read(name, "true or false", Value::as_bool)?
            .unwrap_or(false))
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, CompileError> {
        self.read(name, "a number", Value::as_f64)
    }

    pub(super) fn count(&self, name: &str) -> Result<Option<u64>, CompileError> {
        self.read(name, "a whole number that is not negative", Value::as_u64)
    }

    pub(super) fn object(
        &self,
        name: &str,
    ) -> Result<Option<&'a Map<String, Value>>, CompileError> {
        self.read(name, "an object", Value::as_object)
    }

    pub(super) fn list(&self, name: &str) -> Result<&'a [Value], CompileError> {
        let list = self.read(name, "a list", Value::as_array)?;
        Ok(list.map(Vec::as_slice).unwrap_or_default())
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, CompileError> {
        let at = self.at.field(name);
        let text = |item: &Value| item.as_str().map(str::to_owned);
        self.list(name)?
            .iter()
            .map(|item| text(item).ok_or_else(|| wrong(&at, "a list of strings")))
            .collect()
    }

    fn read<T>(
        &self,
        name: &str,
        expected: &'static str,
        as_type: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, CompileError> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match as_type(value) {
                Some(value) => Ok(Some(value)),
                None => Err(wrong(&self.at.field(name), expected)),
            },
        }
    }
}
