//! A compiled schema.

use std::sync::{Arc, LazyLock};

use indexmap::IndexMap;
use serde_json::Value;

use crate::{
    format::Format,
    pattern::Pattern,
    rules::Rules,
    sparse::{Absent, Sparse},
    value_type::ValueType,
};

/// The schema of a value and of the values in it. All uses of a definition share one node.
///
/// The schemas under `allOf`, `anyOf`, `oneOf` and `not` are nodes of [`ValueType::Any`].
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) kind: ValueType,
    pub(crate) nullable: bool,
    pub(crate) default: Option<Box<Value>>,
    pub(crate) properties: IndexMap<String, Property>,
    pub(crate) additional: Option<Additional>,
    pub(crate) items: Option<Arc<Node>>,
    pub(crate) preserve_unknown: bool,
    pub(crate) embedded: bool,
    pub(crate) list: ListType,
    pub(crate) checks: Sparse<Checks>,
    pub(crate) rules: Sparse<Rules>,
    pub(crate) below: Below,
    /// Whether CEL rules can read values of this schema.
    pub(crate) in_cel: bool,
}

/// A declared field of an object.
#[derive(Debug)]
pub(crate) struct Property {
    pub(crate) node: Arc<Node>,
    /// The name of the field in CEL rules; `None` if it cannot be escaped.
    pub(crate) cel_name: Option<String>,
}

/// The values of keys that are not declared as properties.
#[derive(Debug)]
pub(crate) enum Additional {
    /// `additionalProperties: true`: any value is kept, but fields of objects in it are pruned.
    Any,
    /// `additionalProperties: false`: an undeclared key is refused, and not pruned.
    Nothing,
    /// The values of a map.
    Schema(Arc<Node>),
}

/// What a node, or a node below it, has. Walks skip subtrees without it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Below {
    pub(crate) defaults: bool,
    pub(crate) rules: bool,
    pub(crate) keyed_lists: bool,
    pub(crate) embedded: bool,
}

/// How the items of a list are identified (`x-kubernetes-list-type`).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// The value validations of a node.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) format: Option<Format>,
    pub(crate) choices: Vec<Value>,
    pub(crate) minimum: Option<Bound>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) required: Vec<String>,
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Box<Node>>,
}

impl Absent for Checks {
    fn absent() -> &'static Self {
        static NONE: LazyLock<Checks> = LazyLock::new(Checks::default);
        &NONE
    }
}

/// A minimum or maximum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) limit: f64,
    pub(crate) exclusive: bool,
}

/// The schema of the value of a key.
pub(crate) enum Child<'a> {
    /// A declared field.
    Property(&'a Property),
    /// An entry of a map; without a node if any value is allowed.
    Entry(Option<&'a Node>),
}

impl<'a> Child<'a> {
    /// Returns the schema of the value, if it has one.
    pub(crate) fn node(&self) -> Option<&'a Node> {
        match self {
            Self::Property(property) => Some(&property.node),
            Self::Entry(node) => *node,
        }
    }
}

impl Node {
    /// Returns the schema of the value of `key`; `None` if the key is unknown.
    pub(crate) fn child(&self, key: &str) -> Option<Child<'_>> {
        match (self.properties.get(key), &self.additional) {
            (Some(property), _) => Some(Child::Property(property)),
            (None, Some(Additional::Any | Additional::Nothing)) => Some(Child::Entry(None)),
            (None, Some(Additional::Schema(node))) => Some(Child::Entry(Some(node))),
            (None, None) => None,
        }
    }

    /// Returns the schema of the values if the object is a map.
    pub(crate) fn map_values(&self) -> Option<&Node> {
        match &self.additional {
            Some(Additional::Schema(node)) if self.properties.is_empty() => Some(node),
            _ => None,
        }
    }
}
