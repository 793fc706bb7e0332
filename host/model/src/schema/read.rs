//! Parsing of schemas: a closed subset of JSON Schema for the configurations of plugins.
//!
//! In a general implementation, a vendor's schema can be expensive: by references that multiply, patterns that backtrack, or keywords that
//! compare every pair of items. Here, every supported keyword has a known cost.

use std::collections::BTreeMap;

use regex_lite::RegexBuilder;
use serde_json::{Map, Value};

use super::{
    error::{ANNOTATIONS, SchemaError, SchemaProblem},
    levels::check_levels,
    limits::{
        MAX_COMPILED_PATTERN, MAX_FILLED, MAX_LEVELS, MAX_PATTERN, MAX_PATTERNS, MAX_SCHEMAS,
    },
    node::{DefaultValue, Id, Node, Nodes, Type},
    values,
};

/// Parses a schema; its root is the first node.
pub(super) fn read(source: &Value) -> Result<Nodes, SchemaError> {
    let mut reader = Reader::default();
    let root = reader.reserve("")?;
    for keyword in ["$defs", "definitions"] {
        for (name, _) in members(source, keyword, "")? {
            let pointer = format!("/{keyword}/{}", escaped(name));
            let id = reader.reserve(&pointer)?;
            reader.definitions.insert(format!("#{pointer}"), id);
        }
    }
    let node = reader.node(source, "")?;
    reader.put(root, node);
    for keyword in ["$defs", "definitions"] {
        for (name, schema) in members(source, keyword, "")? {
            let pointer = format!("/{keyword}/{}", escaped(name));
            let node = reader.node(schema, &pointer)?;
            if let Some(id) = reader.definitions.get(&format!("#{pointer}")) {
                reader.put(*id, node);
            }
        }
    }
    check_levels(&reader.nodes)?;
    Ok(reader.nodes)
}

#[derive(Default)]
struct Reader {
    nodes: Nodes,
    /// The definitions, by the text of a reference to them.
    definitions: BTreeMap<String, Id>,
    patterns: usize,
}

impl Reader {
    fn reserve(&mut self, pointer: &str) -> Result<Id, SchemaError> {
        if self.nodes.len() == MAX_SCHEMAS {
            return Err(too_many(pointer, "schemas", MAX_SCHEMAS as u64));
        }
        self.nodes.push(Node::default());
        Ok(self.nodes.len() - 1)
    }

    fn put(&mut self, id: Id, node: Node) {
        if let Some(place) = self.nodes.get_mut(id) {
            *place = node;
        }
    }

    fn child(&mut self, source: &Value, pointer: &str) -> Result<Id, SchemaError> {
        let id = self.reserve(pointer)?;
        let node = self.node(source, pointer)?;
        self.put(id, node);
        Ok(id)
    }

    fn node(&mut self, source: &Value, pointer: &str) -> Result<Node, SchemaError> {
        let source = match source {
            Value::Bool(any) => {
                return Ok(Node {
                    never: !any,
                    ..Node::default()
                });
            }
            Value::Object(source) => source,
            _ => return Err(error(pointer, SchemaProblem::NotASchema)),
        };
        let mut node = Node::default();
        for (keyword, value) in source {
            self.keyword(&mut node, keyword, value, pointer)?;
        }
        Ok(node)
    }

    fn keyword(
        &mut self,
        node: &mut Node,
        keyword: &str,
        value: &Value,
        at: &str,
    ) -> Result<(), SchemaError> {
        let form = Form { value, at };
        match keyword {
            "$defs" | "definitions" if at.is_empty() => {}
            "description" => node.description = Some(form.text("description")?.to_owned()),
            "default" => node.default = Some(default(value, at)?),
            "type" => node.types = Some(types(&form)?),
            "enum" => node.choices.push(form.list("enum")?.clone()),
            "const" => node.choices.push(vec![value.clone()]),
            "$ref" => node.reference = Some(self.reference(&form)?),
            "minimum" => node.number.minimum = Some(form.number("minimum")?),
            "maximum" => node.number.maximum = Some(form.number("maximum")?),
            "exclusiveMinimum" => node.number.above = Some(form.number("exclusiveMinimum")?),
            "exclusiveMaximum" => node.number.below = Some(form.number("exclusiveMaximum")?),
            "multipleOf" => node.number.multiple_of = Some(factor(&form)?),
            "minLength" => node.text.min = Some(form.count("minLength")?),
            "maxLength" => node.text.max = Some(form.count("maxLength")?),
            "pattern" => node.text.pattern = Some(self.pattern(&form)?),
            "minItems" => node.list.min = Some(form.count("minItems")?),
            "maxItems" => node.list.max = Some(form.count("maxItems")?),
            "uniqueItems" => node.list.unique = form.boolean("uniqueItems")?,
            "items" => node.list.items = Some(self.child(value, &format!("{at}/items"))?),
            "minProperties" => node.object.min = Some(form.count("minProperties")?),
            "maxProperties" => node.object.max = Some(form.count("maxProperties")?),
            "required" => node.object.required = form.texts("required")?,
            "properties" => self.properties(node, &form)?,
            "additionalProperties" => {
                let pointer = format!("{at}/additionalProperties");
                node.object.others = Some(self.child(value, &pointer)?);
            }
            "allOf" => node.all_of = self.branches("allOf", &form)?,
            "anyOf" => node.any_of = self.branches("anyOf", &form)?,
            "oneOf" => node.one_of = self.branches("oneOf", &form)?,
            "not" => node.not = Some(self.child(value, &format!("{at}/not"))?),
            annotation if ANNOTATIONS.contains(&annotation) => {}
            unknown => {
                return Err(error(
                    at,
                    SchemaProblem::Keyword {
                        keyword: unknown.to_owned(),
                    },
                ));
            }
        }
        Ok(())
    }

    fn reference(&self, form: &Form<'_>) -> Result<Id, SchemaError> {
        let text = form.text("$ref")?;
        let definition = self.definitions.get(text).copied();
        definition.ok_or_else(|| error(form.at, SchemaProblem::Reference(text.to_owned())))
    }

    fn pattern(&mut self, form: &Form<'_>) -> Result<regex_lite::Regex, SchemaError> {
        let text = form.text("pattern")?;
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            return Err(too_many(form.at, "patterns", MAX_PATTERNS as u64));
        }
        if text.len() > MAX_PATTERN {
            return Err(too_many(form.at, "bytes in a pattern", MAX_PATTERN as u64));
        }
        let compiled = RegexBuilder::new(text)
            .size_limit(MAX_COMPILED_PATTERN)
            .build();
        compiled.map_err(|problem| error(form.at, SchemaProblem::Pattern(problem.to_string())))
    }

    fn properties(&mut self, node: &mut Node, form: &Form<'_>) -> Result<(), SchemaError> {
        for (name, schema) in form.object("properties")? {
            let pointer = format!("{}/properties/{}", form.at, escaped(name));
            let id = self.child(schema, &pointer)?;
            node.object.properties.insert(name.clone(), id);
        }
        Ok(())
    }

    fn branches(&mut self, keyword: &'static str, form: &Form<'_>) -> Result<Vec<Id>, SchemaError> {
        let branches = form.list(keyword)?;
        if branches.is_empty() {
            return Err(form.must(keyword, "a list of at least one schema"));
        }
        let branches = branches.iter().enumerate();
        branches
            .map(|(n, schema)| self.child(schema, &format!("{}/{keyword}/{n}", form.at)))
            .collect()
    }
}

/// The keywords of a schema, with accessors that check the type.
struct Form<'v> {
    value: &'v Value,
    at: &'v str,
}

impl Form<'_> {
    fn must(&self, keyword: &'static str, expected: &'static str) -> SchemaError {
        error(self.at, SchemaProblem::Form { keyword, expected })
    }

    fn text(&self, keyword: &'static str) -> Result<&str, SchemaError> {
        let text = self.value.as_str();
        text.ok_or_else(|| self.must(keyword, "a string"))
    }

    fn boolean(&self, keyword: &'static str) -> Result<bool, SchemaError> {
        let boolean = self.value.as_bool();
        boolean.ok_or_else(|| self.must(keyword, "true or false"))
    }

    fn number(&self, keyword: &'static str) -> Result<serde_json::Number, SchemaError> {
        let number = self.value.as_number().cloned();
        number.ok_or_else(|| self.must(keyword, "a number"))
    }

    fn count(&self, keyword: &'static str) -> Result<u64, SchemaError> {
        let count = self.value.as_u64();
        count.ok_or_else(|| self.must(keyword, "a whole number of at least 0"))
    }

    fn list(&self, keyword: &'static str) -> Result<&Vec<Value>, SchemaError> {
        let list = self.value.as_array();
        list.ok_or_else(|| self.must(keyword, "a list"))
    }

    fn object(&self, keyword: &'static str) -> Result<&Map<String, Value>, SchemaError> {
        let object = self.value.as_object();
        object.ok_or_else(|| self.must(keyword, "an object"))
    }

    fn texts(&self, keyword: &'static str) -> Result<Vec<String>, SchemaError> {
        let text = |item: &Value| {
            let text = item.as_str().map(str::to_owned);
            text.ok_or_else(|| self.must(keyword, "a list of strings"))
        };
        self.list(keyword)?.iter().map(text).collect()
    }
}

fn types(form: &Form<'_>) -> Result<Vec<Type>, SchemaError> {
    let wrong = || {
        form.must(
            "type",
            "null, boolean, integer, number, string, array or object, or a list of some of them",
        )
    };
    let names = match form.value {
        Value::Array(names) if !names.is_empty() => &**names,
        Value::Array(_) => return Err(wrong()),
        name => std::slice::from_ref(name),
    };
    let mut types = Vec::new();
    for name in names {
        let known = Type::ALL.into_iter().find(|known| *name == known.name());
        let known = known.ok_or_else(wrong)?;
        if !types.contains(&known) {
            types.push(known);
        }
    }
    Ok(types)
}

fn factor(form: &Form<'_>) -> Result<u64, SchemaError> {
    let factor = form.value.as_u64().filter(|factor| *factor > 0);
    factor.ok_or_else(|| form.must("multipleOf", "a whole number of at least 1"))
}

fn default(value: &Value, at: &str) -> Result<DefaultValue, SchemaError> {
    if values::is_deeper_than(value, MAX_LEVELS) {
        return Err(error(at, SchemaProblem::DeepDefault));
    }
    let size = values::size(value);
    if size > MAX_FILLED {
        return Err(too_many(at, "bytes in a default", MAX_FILLED));
    }
    Ok(DefaultValue {
        value: value.clone(),
        size,
    })
}

fn members<'s>(
    source: &'s Value,
    keyword: &'static str,
    at: &str,
) -> Result<impl Iterator<Item = (&'s String, &'s Value)>, SchemaError> {
    let members = match source.get(keyword) {
        None => None,
        Some(value) => Some(value.as_object().ok_or_else(|| {
            let expected = "an object";
            error(at, SchemaProblem::Form { keyword, expected })
        })?),
    };
    Ok(members.into_iter().flatten())
}

fn error(pointer: &str, problem: SchemaProblem) -> SchemaError {
    SchemaError {
        pointer: pointer.to_owned(),
        problem,
    }
}

fn too_many(pointer: &str, what: &'static str, allowed: u64) -> SchemaError {
    error(pointer, SchemaProblem::TooMany { what, allowed })
}

/// A key, escaped for a pointer.
pub(super) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
