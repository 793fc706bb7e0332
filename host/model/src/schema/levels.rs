//! The nesting depth of schemas.

use super::{
    error::{SchemaError, SchemaProblem},
    limits::MAX_SCHEMA_LEVELS,
    node::{Id, Node, Nodes},
};

/// Fails if a schema refers to itself or is nested too deeply, because every traversal of a schema is recursive.
pub(super) fn check_levels(nodes: &Nodes) -> Result<(), SchemaError> {
    let mut levels = vec![None; nodes.len()];
    for id in 0..nodes.len() {
        levels_below(nodes, id, 1, &mut levels)?;
    }
    Ok(())
}

/// The levels from a schema downward, including itself.
fn levels_below(
    nodes: &Nodes,
    id: Id,
    above: usize,
    known: &mut [Option<usize>],
) -> Result<usize, SchemaError> {
    if let Some(levels) = known.get(id).copied().flatten() {
        return Ok(levels);
    }
    let mut levels = 1;
    for child in nodes.get(id).into_iter().flat_map(Node::children) {
        if above == MAX_SCHEMA_LEVELS {
            return Err(too_deep());
        }
        levels = levels.max(1 + levels_below(nodes, child, above + 1, known)?);
    }
    if levels > MAX_SCHEMA_LEVELS {
        return Err(too_deep());
    }
    if let Some(place) = known.get_mut(id) {
        *place = Some(levels);
    }
    Ok(levels)
}

fn too_deep() -> SchemaError {
    SchemaError {
        pointer: String::new(),
        problem: SchemaProblem::Levels,
    }
}
