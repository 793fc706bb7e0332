//! Defaults must keep to the schema that they stand in.

use super::super::at::At;
use super::super::error::CompileError;
use super::super::node::{Additional, Node};
use super::super::{prune, validate};

/// Checks every default below a node against its own schema, as an API server checks a CRD.
pub(super) fn check(node: &Node, at: &At<'_>) -> Result<(), CompileError> {
    if let Some(default) = &node.default {
        check_one(node, default, at)?;
    }
    if !node.below.defaults {
        return Ok(());
    }
    let properties_at = at.field("properties");
    for (name, property) in &node.properties {
        check(&property.node, &properties_at.key(name))?;
    }
    if let Some(Additional::Schema(values)) = &node.additional {
        check(values, &at.field("additionalProperties"))?;
    }
    match &node.items {
        Some(items) => check(items, &at.field("items")),
        None => Ok(()),
    }
}

fn check_one(node: &Node, default: &serde_json::Value, at: &At<'_>) -> Result<(), CompileError> {
    let problem = |problem: String| CompileError::Default {
        path: at.field("default").path(),
        problem,
    };
    let mut value = default.clone();
    let mut unknown = Vec::new();
    prune::prune_part(&mut value, node, &At::ROOT, &mut unknown);
    if let Some(unknown) = unknown.first() {
        return Err(problem(unknown.to_string()));
    }
    // Whole as it stands: other defaults do not fill it.
    let mut wrong = Vec::new();
    validate::validate(node, &value, &At::ROOT, &mut wrong);
    match wrong.first() {
        Some(wrong) => Err(problem(wrong.body())),
        None => Ok(()),
    }
}
