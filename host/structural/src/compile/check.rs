//! The value validations of a schema.

use serde_json::Value;

use trainyard_text::StackPath;

use super::{Compiler, Level, Position, keywords::Keywords, refused};
use crate::{
    error::CompileError,
    format::Format,
    node::{Bound, Checks, Node},
    pattern::Pattern,
    sparse::Sparse,
    value_type::ValueType,
};

impl Compiler<'_> {
    /// Compiles the value validations of a schema whose type is known.
    pub(super) fn checks(
        &self,
        keywords: &Keywords<'_>,
        parent: &Node,
        position: Position,
        at: &StackPath<'_>,
    ) -> Result<Sparse<Checks>, CompileError> {
        if !keywords.has_checks() {
            return Ok(Sparse::default());
        }
        if keywords.flag("uniqueItems")? {
            let reason = "is not supported by an API server; write x-kubernetes-list-type: set";
            return Err(refused(&at.field("uniqueItems"), reason));
        }
        let pattern = keywords.text("pattern")?.filter(|text| !text.is_empty());
        Ok(Sparse::new(Checks {
            format: format(keywords, parent.kind, at)?,
            choices: keywords.list("enum")?.to_vec(),
            minimum: bound(keywords, "minimum", "exclusiveMinimum")?,
            maximum: bound(keywords, "maximum", "exclusiveMaximum")?,
            multiple_of: keywords.number("multipleOf")?,
            min_length: keywords.count("minLength")?,
            max_length: keywords.count("maxLength")?,
            pattern: pattern.map(Pattern::new),
            min_items: keywords.count("minItems")?,
            max_items: keywords.count("maxItems")?,
            min_properties: keywords.count("minProperties")?,
            max_properties: keywords.count("maxProperties")?,
            required: keywords.texts("required")?,
            all_of: self.branches(keywords, "allOf", parent.kind, position, at)?,
            any_of: self.branches(keywords, "anyOf", parent.kind, position, at)?,
            one_of: self.branches(keywords, "oneOf", parent.kind, position, at)?,
            not: match keywords.get("not") {
                Some(schema) => {
                    let node =
                        self.node(schema, position.nested(Level::Nested), &at.field("not"))?;
                    Some(Box::new(node))
                }
                None => None,
            },
        }))
    }

    fn branches(
        &self,
        keywords: &Keywords<'_>,
        name: &str,
        parent: ValueType,
        position: Position,
        at: &StackPath<'_>,
    ) -> Result<Vec<Node>, CompileError> {
        let schemas = keywords.list(name)?;
        let at = at.field(name);
        // The one exception: an int-or-string can repeat its types.
        let level = match name {
            "anyOf"
                if is_int_or_string(schemas)
                    && (parent == ValueType::IntOrString
                        || position.level == Level::IntOrString) =>
            {
                Level::IntOrString
            }
            "allOf" if parent == ValueType::IntOrString => Level::IntOrString,
            _ => Level::Nested,
        };
        schemas
            .iter()
            .enumerate()
            .map(|(index, schema)| self.node(schema, position.nested(level), &at.index(index)))
            .collect()
    }
}

fn format(
    keywords: &Keywords<'_>,
    kind: ValueType,
    at: &StackPath<'_>,
) -> Result<Option<Format>, CompileError> {
    let Some(name) = keywords.text("format")? else {
        return Ok(None);
    };
    Format::find(name, kind).map_err(|_| {
        let reason = format!(
            "the format {name} is not supported here, but an API server checks it; write a pattern"
        );
        refused(&at.field("format"), reason)
    })
}

fn bound(
    keywords: &Keywords<'_>,
    limit: &str,
    exclusive: &str,
) -> Result<Option<Bound>, CompileError> {
    let exclusive = keywords.flag(exclusive)?;
    Ok(keywords
        .number(limit)?
        .map(|limit| Bound { limit, exclusive }))
}

fn is_int_or_string(schemas: &[Value]) -> bool {
    let types: Vec<_> = schemas
        .iter()
        .filter_map(|schema| schema.get("type")?.as_str())
        .collect();
    types == ["integer", "string"] && schemas.len() == 2
}
