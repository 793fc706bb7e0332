//! Checks of defaults.

use serde_json::Value;

use trainyard_text::StackPath;

use crate::{error::CompileError, node::Node, prune, validate};

/// Checks a default against its own schema, as an API server does for a CRD.
pub(super) fn check(node: &Node, default: &Value, at: &StackPath<'_>) -> Result<(), CompileError> {
    let problem = |problem: String| CompileError::Default {
        path: at.field("default").path(),
        problem,
    };
    let mut value = default.clone();
    let mut unknown = Vec::new();
    prune::prune_part(&mut value, node, &StackPath::ROOT, &mut unknown);
    if let Some(unknown) = unknown.first() {
        return Err(problem(unknown.to_string()));
    }
    // Other defaults are not applied to it.
    let mut wrong = Vec::new();
    validate::validate(node, &value, &StackPath::ROOT, &mut wrong);
    match wrong.first() {
        Some(wrong) => Err(problem(wrong.body())),
        None => Ok(()),
    }
}
