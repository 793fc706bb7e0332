//! Defaults must keep to the schema that they stand in.

use super::super::at::At;
use super::super::error::CompileError;
use super::super::node::Node;
use super::super::{prune, validate};
use serde_json::Value;

/// Checks a default against the schema that it stands in, as an API server checks a CRD.
pub(super) fn check(node: &Node, default: &Value, at: &At<'_>) -> Result<(), CompileError> {
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
