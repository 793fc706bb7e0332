//! From the JSON of a schema to [`Node`]s.
//!
//! What an API server refuses in a CRD is refused here too, so that a schema that compiles can be installed.

mod check;
mod defaults;
mod extensions;
mod keywords;

use super::at::At;
use super::cel;
use super::error::CompileError;
use super::node::{Additional, Below, Kind, Node, Property};
use indexmap::IndexMap;
use keywords::Keywords;
use serde_json::Value;

/// Where in the schema a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    level: Level,
    /// Whether the value that was there before an update can be found again: not below the items of a plain list.
    correlated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    /// Under `allOf` and its like: value validations only.
    Nested,
    /// There, in the one place where a type may stand: `anyOf: [{type: integer}, {type: string}]`.
    IntOrString,
}

/// Compiles the schema of a whole object.
pub(crate) fn root(schema: &Value) -> Result<Node, CompileError> {
    compile(schema, Level::Root)
}

/// Compiles the schema of a part of an object.
pub(crate) fn part(schema: &Value) -> Result<Node, CompileError> {
    compile(schema, Level::Field)
}

fn compile(schema: &Value, level: Level) -> Result<Node, CompileError> {
    let place = Place {
        level,
        correlated: true,
    };
    let mut node = node(schema, place, &At::ROOT)?;
    cel::compile(&mut node, level == Level::Root, &At::ROOT)?;
    defaults::check(&node, &At::ROOT)?;
    Ok(node)
}

fn node(schema: &Value, place: Place, at: &At<'_>) -> Result<Node, CompileError> {
    let Some(map) = schema.as_object() else {
        return Err(wrong(at, "a schema, an object"));
    };
    let keywords = Keywords::new(map, at);
    keywords.refuse_unknown()?;
    if matches!(place.level, Level::Nested | Level::IntOrString) {
        keywords.refuse_all_but_validations(place.level == Level::IntOrString)?;
    }
    let mut node = Node {
        kind: kind(&keywords, place, at)?,
        nullable: keywords.flag("nullable")?,
        default: map.get("default").filter(|value| !value.is_null()).cloned(),
        ..Node::default()
    };
    node.properties = properties(&keywords, place, at)?;
    node.additional = additional(&keywords, place, at)?;
    extensions::read(&keywords, &mut node, at)?;
    node.items = items(&keywords, &node, place, at)?;
    node.checks = check::read(&keywords, &node, place, at)?;
    node.rules = cel::read_rules(map.get("x-kubernetes-validations"), place.correlated, at)?;
    check_shape(&node, place, at)?;
    node.in_cel = in_cel(&node);
    node.below = below(&node);
    Ok(node)
}

fn kind(keywords: &Keywords<'_>, place: Place, at: &At<'_>) -> Result<Kind, CompileError> {
    if keywords.flag("x-kubernetes-int-or-string")? {
        return Ok(Kind::IntOrString);
    }
    let kind = match keywords.text("type")? {
        None => Kind::Any,
        Some("object") => Kind::Object,
        Some("array") => Kind::Array,
        Some("string") => Kind::String,
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some("boolean") => Kind::Boolean,
        Some(_) => {
            return Err(wrong(
                &at.field("type"),
                "array, boolean, integer, number, object or string",
            ));
        }
    };
    let free = keywords.flag("x-kubernetes-preserve-unknown-fields")?;
    match (place.level, kind) {
        (Level::Root, kind) if kind != Kind::Object => {
            Err(refused(&at.field("type"), "must be object at the root"))
        }
        (Level::Field, Kind::Any) if !free => Err(refused(
            &at.field("type"),
            "a type is missing: only x-kubernetes-int-or-string and x-kubernetes-preserve-unknown-fields go without one",
        )),
        (_, kind) => Ok(kind),
    }
}

fn properties(
    keywords: &Keywords<'_>,
    place: Place,
    at: &At<'_>,
) -> Result<IndexMap<String, Property>, CompileError> {
    let Some(map) = keywords.object("properties")? else {
        return Ok(IndexMap::new());
    };
    let at = at.field("properties");
    let place = place.inner(place.correlated);
    map.iter()
        .map(|(name, schema)| {
            let property = Property {
                node: node(schema, place, &at.key(name))?,
                cel_name: cel::escape(name),
            };
            Ok((name.clone(), property))
        })
        .collect()
}

fn additional(
    keywords: &Keywords<'_>,
    place: Place,
    at: &At<'_>,
) -> Result<Option<Additional>, CompileError> {
    let Some(schema) = keywords.get("additionalProperties") else {
        return Ok(None);
    };
    let at = at.field("additionalProperties");
    match schema {
        _ if place.level == Level::Root => Err(refused(&at, "must not be used at the root")),
        _ if keywords.get("properties").is_some() => Err(refused(
            &at,
            "properties stand beside it, and an API server takes only one of both",
        )),
        Value::Bool(true) => Ok(Some(Additional::Any)),
        Value::Bool(false) => Ok(Some(Additional::Nothing)),
        schema => {
            let node = node(schema, place.inner(place.correlated), &at)?;
            Ok(Some(Additional::Schema(Box::new(node))))
        }
    }
}

fn items(
    keywords: &Keywords<'_>,
    parent: &Node,
    place: Place,
    at: &At<'_>,
) -> Result<Option<Box<Node>>, CompileError> {
    let Some(schema) = keywords.get("items") else {
        return match parent.kind {
            Kind::Array => Err(refused(&at.field("items"), "must be specified")),
            _ => Ok(None),
        };
    };
    let keyed = matches!(parent.list, super::node::ListType::Map(_));
    let place = place.inner(place.correlated && keyed);
    Ok(Some(Box::new(node(schema, place, &at.field("items"))?)))
}

fn check_shape(node: &Node, place: Place, at: &At<'_>) -> Result<(), CompileError> {
    if node.embedded && node.kind != Kind::Object {
        return Err(refused(
            &at.field("type"),
            "must be object if x-kubernetes-embedded-resource is true",
        ));
    }
    if node.embedded && !node.preserve_unknown && node.properties.is_empty() {
        return Err(refused(
            &at.field("properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ));
    }
    if place.level != Level::Root {
        return Ok(());
    }
    let at = at.field("properties");
    let metadata = node
        .properties
        .get("metadata")
        .map(|property| &property.node);
    let restricts = |node: &Node| {
        node.properties
            .keys()
            .all(|name| name == "name" || name == "generateName")
            && node.additional.is_none()
            && node.rules.is_empty()
            && node.checks.required.is_empty()
    };
    match metadata {
        Some(metadata) if !restricts(metadata) => Err(refused(
            &at.key("metadata"),
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        )),
        _ => Ok(()),
    }
}

/// Whether CEL rules see values of a schema: nothing whose type is unknown, nor what consists of it.
fn in_cel(node: &Node) -> bool {
    match node.kind {
        Kind::Any => false,
        Kind::Array => node.items.as_ref().is_some_and(|items| items.in_cel),
        Kind::Object => match &node.additional {
            Some(Additional::Schema(values)) => values.in_cel,
            _ => true,
        },
        _ => true,
    }
}

fn below(node: &Node) -> Below {
    let mut below = Below {
        rules: !node.rules.is_empty(),
        keyed_lists: node.list != super::node::ListType::Atomic,
        embedded: node.embedded,
        defaults: false,
    };
    let values = match &node.additional {
        Some(Additional::Schema(values)) => Some(&**values),
        _ => None,
    };
    let properties = node.properties.values().map(|property| &property.node);
    for child in properties.chain(node.items.as_deref()).chain(values) {
        below.defaults |= child.below.defaults || child.default.is_some();
        below.rules |= child.below.rules;
        below.keyed_lists |= child.below.keyed_lists;
        below.embedded |= child.below.embedded;
    }
    below
}

impl Place {
    fn inner(self, correlated: bool) -> Self {
        let level = match self.level {
            Level::Root | Level::Field => Level::Field,
            Level::Nested | Level::IntOrString => Level::Nested,
        };
        Self { level, correlated }
    }

    fn nested(self, level: Level) -> Self {
        Self { level, ..self }
    }
}

fn wrong(at: &At<'_>, expected: &'static str) -> CompileError {
    CompileError::WrongValue {
        path: at.path(),
        expected,
    }
}

fn refused(at: &At<'_>, reason: impl Into<String>) -> CompileError {
    CompileError::Refused {
        path: at.path(),
        reason: reason.into(),
    }
}
