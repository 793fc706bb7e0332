//! The keywords `x-kubernetes-*` for unknown fields, embedded resources, and types of lists and maps.

use trainyard_text::StackPath;

use super::{keywords::Keywords, refused, wrong};
use crate::{
    error::CompileError,
    node::{ListType, Node},
    value_type::ValueType,
};

/// Reads the keywords into a node whose type is known.
pub(super) fn read(
    keywords: &Keywords<'_>,
    node: &mut Node,
    at: &StackPath<'_>,
) -> Result<(), CompileError> {
    const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
    node.preserve_unknown = keywords.flag(PRESERVE)?;
    if keywords.get(PRESERVE).is_some() && !node.preserve_unknown {
        return Err(refused(&at.field(PRESERVE), "must be true or undefined"));
    }
    if node.preserve_unknown && node.kind == ValueType::IntOrString {
        let reason = "must be false if x-kubernetes-int-or-string is true";
        return Err(refused(&at.field(PRESERVE), reason));
    }
    node.embedded = keywords.flag("x-kubernetes-embedded-resource")?;
    check_map_type(keywords, node, at)?;
    node.list = list_type(keywords, node, at)?;
    Ok(())
}

fn check_map_type(
    keywords: &Keywords<'_>,
    node: &Node,
    at: &StackPath<'_>,
) -> Result<(), CompileError> {
    let at = at.field("x-kubernetes-map-type");
    match keywords.text("x-kubernetes-map-type")? {
        None => Ok(()),
        Some(_) if node.kind != ValueType::Object => {
            Err(refused(&at, "is allowed for objects only"))
        }
        // Both define the ownership of fields, which does not affect validation.
        Some("atomic" | "granular") => Ok(()),
        Some(_) => Err(wrong(&at, "atomic or granular")),
    }
}

fn list_type(
    keywords: &Keywords<'_>,
    node: &Node,
    at: &StackPath<'_>,
) -> Result<ListType, CompileError> {
    let keys = keywords.texts("x-kubernetes-list-map-keys")?;
    let keys_at = at.field("x-kubernetes-list-map-keys");
    let at = at.field("x-kubernetes-list-type");
    let list = keywords.text("x-kubernetes-list-type")?;
    if list.is_some() && node.kind != ValueType::Array {
        return Err(refused(&at, "is allowed for arrays only"));
    }
    match list {
        Some("map") if keys.is_empty() => Err(refused(
            &keys_at,
            "must not be empty if x-kubernetes-list-type is map",
        )),
        Some("map") => Ok(ListType::Map(keys)),
        _ if !keys.is_empty() => Err(refused(
            &at,
            "must be map if x-kubernetes-list-map-keys is non-empty",
        )),
        Some("set") => Ok(ListType::Set),
        Some("atomic") | None => Ok(ListType::Atomic),
        Some(_) => Err(wrong(&at, "atomic, set or map")),
    }
}

/// Checks that each key of a list is a required field of its items, or has a default.
pub(super) fn check_keys(node: &Node, at: &StackPath<'_>) -> Result<(), CompileError> {
    let (ListType::Map(keys), Some(items)) = (&node.list, &node.items) else {
        return Ok(());
    };
    let at = at.field("x-kubernetes-list-map-keys");
    for key in keys {
        let Some(property) = items.properties.get(key) else {
            let reason = format!("{key} is not a property of the items");
            return Err(refused(&at, reason));
        };
        if property.node.default.is_none() && !items.checks.required.contains(key) {
            let reason =
                format!("{key} must have a default or be a required property of the items");
            return Err(refused(&at, reason));
        }
    }
    Ok(())
}
