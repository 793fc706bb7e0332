//! A schema in memory: what is asked of one value, and of the values in it.

use crate::cel::Rules;
use crate::format::Format;
use crate::pattern::Pattern;
use crate::value_type::ValueType;
use indexmap::IndexMap;
use serde_json::Value;
use std::sync::Arc;

/// What is asked of one value. Values of one type share its node.
///
/// The nested value validations of `allOf` and its like are nodes too, of kind [`ValueType::Any`].
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) kind: ValueType,
    pub(crate) nullable: bool,
    pub(crate) default: Option<Value>,
    pub(crate) properties: IndexMap<String, Property>,
    pub(crate) additional: Option<Additional>,
    pub(crate) items: Option<Arc<Node>>,
    pub(crate) preserve_unknown: bool,
    pub(crate) embedded: bool,
    pub(crate) list: ListType,
    pub(crate) checks: Checks,
    pub(crate) rules: Rules,
    pub(crate) below: Below,
    /// Whether CEL rules may see values of this schema.
    pub(crate) in_cel: bool,
}

/// A declared field of an object.
#[derive(Debug)]
pub(crate) struct Property {
    pub(crate) node: Arc<Node>,
    /// The name by which CEL rules know the field; nothing for names that CEL cannot spell.
    pub(crate) cel_name: Option<String>,
}

/// What the keys that no property declares may hold.
#[derive(Debug)]
pub(crate) enum Additional {
    /// `additionalProperties: true`: anything by its key, but nothing that has fields of its own survives in it.
    Any,
    /// `additionalProperties: false`: nothing; a key is not dropped, but refused.
    Nothing,
    /// Values of one schema: the object is a map.
    Schema(Arc<Node>),
}

/// What a node or the nodes below it have, so that walks can leave out whole subtrees.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Below {
    pub(crate) defaults: bool,
    pub(crate) rules: bool,
    pub(crate) keyed_lists: bool,
    pub(crate) embedded: bool,
}

/// How the items of a list are told apart (`x-kubernetes-list-type`).
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

/// A limit of a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) limit: f64,
    pub(crate) exclusive: bool,
}

/// What a node says of the value of a key.
pub(crate) enum Child<'a> {
    /// A declared field.
    Property(&'a Property),
    /// An entry of a map; without a node where any value may stand.
    Entry(Option<&'a Node>),
}

impl<'a> Child<'a> {
    /// The schema of the value, if there is one.
    pub(crate) fn node(&self) -> Option<&'a Node> {
        match self {
            Self::Property(property) => Some(&property.node),
            Self::Entry(node) => *node,
        }
    }
}

impl Node {
    /// What is said of the value of `key`; nothing if the key is unknown.
    pub(crate) fn child(&self, key: &str) -> Option<Child<'_>> {
        match (self.properties.get(key), &self.additional) {
            (Some(property), _) => Some(Child::Property(property)),
            (None, Some(Additional::Any | Additional::Nothing)) => Some(Child::Entry(None)),
            (None, Some(Additional::Schema(node))) => Some(Child::Entry(Some(node))),
            (None, None) => None,
        }
    }

    /// The schema of the values, where the object is a map.
    pub(crate) fn map_values(&self) -> Option<&Node> {
        match &self.additional {
            Some(Additional::Schema(node)) if self.properties.is_empty() => Some(node),
            _ => None,
        }
    }
}
