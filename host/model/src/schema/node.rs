//! A parsed schema.

use indexmap::IndexMap;
use regex_lite::Regex;
use serde_json::{Number, Value};

/// The index of a schema in [`Nodes`].
pub(super) type Id = usize;

/// All schemas within one schema. References are resolved to indices, so a schema with several references is stored once.
pub(super) type Nodes = Vec<Node>;

/// One schema.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// No value fits the schema `false`.
    pub(super) never: bool,
    pub(super) description: Option<String>,
    pub(super) default: Option<DefaultValue>,
    pub(super) reference: Option<Id>,
    pub(super) types: Option<Vec<Type>>,
    /// The values of `enum`, and that of `const`. The value must be in each list.
    pub(super) choices: Vec<Vec<Value>>,
    pub(super) number: NumberRules,
    pub(super) text: TextRules,
    pub(super) list: ListRules,
    pub(super) object: ObjectRules,
    pub(super) all_of: Vec<Id>,
    pub(super) any_of: Vec<Id>,
    pub(super) one_of: Vec<Id>,
    pub(super) not: Option<Id>,
}

/// A default with its size.
#[derive(Debug)]
pub(super) struct DefaultValue {
    pub(super) value: Value,
    pub(super) size: u64,
}

#[derive(Debug, Default)]
pub(super) struct NumberRules {
    pub(super) minimum: Option<Number>,
    pub(super) maximum: Option<Number>,
    pub(super) above: Option<Number>,
    pub(super) below: Option<Number>,
    pub(super) multiple_of: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct TextRules {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) pattern: Option<Regex>,
}

#[derive(Debug, Default)]
pub(super) struct ListRules {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) unique: bool,
    pub(super) items: Option<Id>,
}

#[derive(Debug, Default)]
pub(super) struct ObjectRules {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) required: Vec<String>,
    pub(super) properties: IndexMap<String, Id>,
    /// The schema of the other keys.
    pub(super) others: Option<Id>,
}

impl Node {
    /// The schemas below it.
    pub(super) fn children(&self) -> impl Iterator<Item = Id> {
        let one = [
            self.reference,
            self.not,
            self.list.items,
            self.object.others,
        ];
        let several = [&self.all_of, &self.any_of, &self.one_of];
        one.into_iter()
            .flatten()
            .chain(several.into_iter().flatten().copied())
            .chain(self.object.properties.values().copied())
    }
}

/// A type of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Type {
    pub(super) const ALL: [Self; 7] = [
        Self::Null,
        Self::Boolean,
        Self::Integer,
        Self::Number,
        Self::String,
        Self::Array,
        Self::Object,
    ];

    /// The name in a schema.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    pub(super) fn has(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Integer => value.as_number().is_some_and(super::number::is_whole),
            Self::Number => value.is_number(),
            Self::String => value.is_string(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}
