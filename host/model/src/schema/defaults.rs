//! Defaulting in the order of the API server: parents first, so a default object gets the defaults of its properties.

use serde_json::Value;

use super::{
    limits::{Budget, Exhausted},
    node::{DefaultValue, Id, Nodes},
};

/// Sets the default of each absent property, below `properties`, `additionalProperties`, `items` and `$ref`.
pub(super) fn fill(
    nodes: &Nodes,
    id: Id,
    value: &mut Value,
    budget: &mut Budget,
) -> Result<(), Exhausted> {
    budget.steps(1)?;
    let Some(node) = nodes.get(id) else {
        return Ok(());
    };
    if let Some(reference) = node.reference {
        fill(nodes, reference, value, budget)?;
    }
    match value {
        Value::Object(object) => {
            for (name, property) in &node.object.properties {
                budget.steps(1)?;
                if !object.contains_key(name)
                    && let Some(default) = default(nodes, *property)
                {
                    budget.fill(default.size + name.len() as u64)?;
                    object.insert(name.clone(), default.value.clone());
                }
                if let Some(child) = object.get_mut(name) {
                    fill(nodes, *property, child, budget)?;
                }
            }
            let Some(others) = node.object.others else {
                return Ok(());
            };
            for (name, child) in object {
                budget.steps(1)?;
                if !node.object.properties.contains_key(name) {
                    fill(nodes, others, child, budget)?;
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                if let Some(schema) = node.list.items {
                    fill(nodes, schema, item, budget)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// The default of a schema, or of the schema that it refers to.
fn default(nodes: &Nodes, id: Id) -> Option<&DefaultValue> {
    let node = nodes.get(id)?;
    match (&node.default, node.reference) {
        (Some(default), _) => Some(default),
        (None, Some(reference)) => default(nodes, reference),
        (None, None) => None,
    }
}
