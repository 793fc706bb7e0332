//! From the JSON of a schema to [`Node`]s.
//!
//! What an API server refuses in a CRD is refused here too, so a schema that compiles can be installed.

mod check;
mod defaults;
mod extensions;
mod keywords;

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use indexmap::IndexMap;
use keywords::Keywords;
use serde_json::{Map, Value};

use trainyard_text::StackPath;

use crate::{
    cel,
    error::CompileError,
    node::{Additional, Below, ListType, Node, Property},
    rules::{self, Rules},
    value_type::ValueType,
};

/// The position of a node in the schema.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Position {
    level: Level,
    /// Whether the old value of an update can be found, which it cannot in the items of an atomic list.
    correlated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Level {
    Root,
    Field,
    /// Under `allOf`, `anyOf`, `oneOf` or `not`: value validations only.
    Nested,
    /// Such a position in which a type is allowed: `anyOf: [{type: integer}, {type: string}]`.
    IntOrString,
}

/// The only member of a schema that refers to a definition.
pub const REFERENCE: &str = "$ref";

/// Schemas by name, to which other schemas refer. A CRD has none.
pub type Definitions = Map<String, Value>;

/// Compiles one schema.
struct Compiler<'d> {
    definitions: &'d Definitions,
    /// The definitions that are compiled.
    shared: RefCell<HashMap<(&'d str, Position), Arc<Node>>>,
    /// Whether patterns, rules and defaults are checked now, and not when they are first needed.
    whole: bool,
}

/// Compiles the schema of a whole object.
pub(crate) fn root(schema: &Value) -> Result<Node, CompileError> {
    compile(schema, Level::Root)
}

/// Compiles the schema of a part of an object.
pub(crate) fn part(schema: &Value) -> Result<Node, CompileError> {
    compile(schema, Level::Field)
}

/// Compiles a schema without checking its patterns, rules and defaults.
pub(crate) fn lazily(schema: &Value, definitions: &Definitions) -> Result<Node, CompileError> {
    Compiler::new(definitions, false).node(schema, Position::new(Level::Root), &StackPath::ROOT)
}

fn compile(schema: &Value, level: Level) -> Result<Node, CompileError> {
    Compiler::new(&Definitions::new(), true).node(schema, Position::new(level), &StackPath::ROOT)
}

impl<'d> Compiler<'d> {
    fn new(definitions: &'d Definitions, whole: bool) -> Self {
        Self {
            definitions,
            shared: RefCell::default(),
            whole,
        }
    }

    /// Compiles a schema below the root. All references to a definition share one node.
    fn child(
        &self,
        schema: &Value,
        position: Position,
        at: &StackPath<'_>,
    ) -> Result<Arc<Node>, CompileError> {
        let Some((name, definition)) = self.referred(schema) else {
            return Ok(Arc::new(self.node(schema, position, at)?));
        };
        let known = self.shared.borrow().get(&(name, position)).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let node = Arc::new(self.node(definition, position, at)?);
        self.shared
            .borrow_mut()
            .insert((name, position), node.clone());
        Ok(node)
    }

    /// Returns the definition to which a schema refers.
    fn referred(&self, schema: &Value) -> Option<(&'d str, &'d Value)> {
        let name = schema.as_object().filter(|schema| schema.len() == 1)?;
        let name = name.get(REFERENCE)?.as_str()?;
        let (name, definition) = self.definitions.get_key_value(name)?;
        Some((name, definition))
    }

    fn node(
        &self,
        schema: &Value,
        position: Position,
        at: &StackPath<'_>,
    ) -> Result<Node, CompileError> {
        let Some(map) = schema.as_object() else {
            return Err(wrong(at, "a schema, an object"));
        };
        let keywords = Keywords::new(map, at);
        keywords.refuse_unknown()?;
        if matches!(position.level, Level::Nested | Level::IntOrString) {
            keywords.refuse_all_but_validations(position.level == Level::IntOrString)?;
        }
        let default = map.get("default").filter(|value| !value.is_null());
        let mut node = Node {
            kind: kind(&keywords, position, at)?,
            nullable: keywords.flag("nullable")?,
            default: default.cloned().map(Box::new),
            ..Node::default()
        };
        node.properties = self.properties(&keywords, position, at)?;
        node.additional = self.additional(&keywords, position, at)?;
        extensions::read(&keywords, &mut node, at)?;
        node.items = self.items(&keywords, &node, position, at)?;
        extensions::check_keys(&node, at)?;
        node.checks = self.checks(&keywords, &node, position, at)?;
        node.rules = Rules::read(map.get(rules::KEYWORD), position.correlated, at)?;
        check_shape(&node, position, at)?;
        node.in_cel = in_cel(&node);
        node.below = below(&node);
        if self.whole {
            check_whole(&node, position, at)?;
        }
        Ok(node)
    }

    fn properties(
        &self,
        keywords: &Keywords<'_>,
        position: Position,
        at: &StackPath<'_>,
    ) -> Result<IndexMap<String, Property>, CompileError> {
        let Some(map) = keywords.object("properties")? else {
            return Ok(IndexMap::new());
        };
        let at = at.field("properties");
        let position = position.inner(position.correlated);
        map.iter()
            .map(|(name, schema)| {
                let property = Property {
                    node: self.child(schema, position, &at.key(name))?,
                    cel_name: cel::escape(name),
                };
                Ok((name.clone(), property))
            })
            .collect()
    }

    fn additional(
        &self,
        keywords: &Keywords<'_>,
        position: Position,
        at: &StackPath<'_>,
    ) -> Result<Option<Additional>, CompileError> {
        let Some(schema) = keywords.get("additionalProperties") else {
            return Ok(None);
        };
        let at = at.field("additionalProperties");
        match schema {
            _ if position.level == Level::Root => Err(refused(&at, "must not be used at the root")),
            _ if keywords.get("properties").is_some() => {
                Err(refused(&at, "must not be used together with properties"))
            }
            Value::Bool(true) => Ok(Some(Additional::Any)),
            Value::Bool(false) => Ok(Some(Additional::Nothing)),
            schema => {
                let node = self.child(schema, position.inner(position.correlated), &at)?;
                Ok(Some(Additional::Schema(node)))
            }
        }
    }

    fn items(
        &self,
        keywords: &Keywords<'_>,
        parent: &Node,
        position: Position,
        at: &StackPath<'_>,
    ) -> Result<Option<Arc<Node>>, CompileError> {
        let Some(schema) = keywords.get("items") else {
            return match parent.kind {
                ValueType::Array => Err(refused(&at.field("items"), "must be specified")),
                _ => Ok(None),
            };
        };
        let keyed = matches!(parent.list, ListType::Map(_));
        let position = position.inner(position.correlated && keyed);
        Ok(Some(self.child(schema, position, &at.field("items"))?))
    }
}

/// Checks what is otherwise compiled when it is first needed: the node's pattern, rules and default.
fn check_whole(node: &Node, position: Position, at: &StackPath<'_>) -> Result<(), CompileError> {
    if let Some(pattern) = &node.checks.pattern {
        pattern.regex().map_err(|source| CompileError::Pattern {
            path: at.field("pattern").path(),
            pattern: pattern.written.clone(),
            source: Box::new(source.clone()),
        })?;
    }
    let is_object = position.level == Level::Root || node.embedded;
    if let Err(problem) = cel::compiled(node, is_object, at) {
        return Err(problem.clone());
    }
    match &node.default {
        Some(default) => defaults::check(node, default, at),
        None => Ok(()),
    }
}

fn kind(
    keywords: &Keywords<'_>,
    position: Position,
    at: &StackPath<'_>,
) -> Result<ValueType, CompileError> {
    if keywords.flag("x-kubernetes-int-or-string")? {
        return Ok(ValueType::IntOrString);
    }
    let kind = match keywords.text("type")? {
        None => ValueType::Any,
        Some("object") => ValueType::Object,
        Some("array") => ValueType::Array,
        Some("string") => ValueType::String,
        Some("integer") => ValueType::Integer,
        Some("number") => ValueType::Number,
        Some("boolean") => ValueType::Boolean,
        Some(_) => {
            return Err(wrong(
                &at.field("type"),
                "array, boolean, integer, number, object or string",
            ));
        }
    };
    let free = keywords.flag("x-kubernetes-preserve-unknown-fields")?;
    match (position.level, kind) {
        (Level::Root, kind) if kind != ValueType::Object => {
            Err(refused(&at.field("type"), "must be object at the root"))
        }
        (Level::Field, ValueType::Any) if !free => Err(refused(
            &at.field("type"),
            "is missing; it is optional only with x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields",
        )),
        (_, kind) => Ok(kind),
    }
}

fn check_shape(node: &Node, position: Position, at: &StackPath<'_>) -> Result<(), CompileError> {
    if node.embedded && node.kind != ValueType::Object {
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
    if position.level != Level::Root {
        return Ok(());
    }
    let at = at.field("properties");
    let metadata = node
        .properties
        .get("metadata")
        .map(|property| &*property.node);
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

/// Returns whether CEL rules can read values of a schema, which they cannot if the type of the value, or of its items, is unknown.
fn in_cel(node: &Node) -> bool {
    match node.kind {
        ValueType::Any => false,
        ValueType::Array => node.items.as_ref().is_some_and(|items| items.in_cel),
        ValueType::Object => match &node.additional {
            Some(Additional::Schema(values)) => values.in_cel,
            _ => true,
        },
        _ => true,
    }
}

fn below(node: &Node) -> Below {
    let mut below = Below {
        rules: !node.rules.is_empty(),
        keyed_lists: node.list != ListType::Atomic,
        embedded: node.embedded,
        defaults: false,
    };
    let values = match &node.additional {
        Some(Additional::Schema(values)) => Some(&**values),
        _ => None,
    };
    let properties = node.properties.values().map(|property| &*property.node);
    for child in properties.chain(node.items.as_deref()).chain(values) {
        below.defaults |= child.below.defaults || child.default.is_some();
        below.rules |= child.below.rules;
        below.keyed_lists |= child.below.keyed_lists;
        below.embedded |= child.below.embedded;
    }
    below
}

impl Position {
    const fn new(level: Level) -> Self {
        Self {
            level,
            correlated: true,
        }
    }

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

fn wrong(at: &StackPath<'_>, expected: &'static str) -> CompileError {
    CompileError::WrongValue {
        path: at.path(),
        expected,
    }
}

fn refused(at: &StackPath<'_>, reason: impl Into<String>) -> CompileError {
    CompileError::Refused {
        path: at.path(),
        reason: reason.into(),
    }
}
