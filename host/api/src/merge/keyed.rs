//! Merging two lists whose items have a key.

use serde_json::Value;

use super::{
    error::{MergeError, Side},
    merge,
    table::Node,
};
use crate::FieldPath;

/// An item of the merged list.
struct Merged {
    value: Value,
    /// Where the first item of its key stands in the base.
    in_base: Option<usize>,
    /// Where the first item of its key stands in the patch.
    in_patch: Option<usize>,
}

/// Merges the items of a patch into those of the base.
pub(super) fn merge_list(
    base: &[Value],
    patch: &[Value],
    key: &'static str,
    node: &'static Node,
    path: &FieldPath,
) -> Result<Value, MergeError> {
    let old_keys = keys(base, key, Side::Base, path)?;
    let new_keys = keys(patch, key, Side::Patch, path)?;
    let mut merged: Vec<Merged> = base
        .iter()
        .zip(&old_keys)
        .map(|(value, key)| Merged {
            value: value.clone(),
            in_base: position(&old_keys, key),
            in_patch: position(&new_keys, key),
        })
        .collect();
    for (at, change) in patch.iter().enumerate() {
        let here = new_keys.get(at).and_then(|key| position(&new_keys, key));
        match merged.iter_mut().find(|item| item.in_patch == here) {
            Some(item) => item.value = merge(&item.value, change, node, &path.index(at))?,
            None => merged.push(Merged {
                value: change.clone(),
                in_base: None,
                in_patch: here,
            }),
        }
    }
    Ok(Value::Array(interleaved(merged)))
}

/// The patch's items in the patch's order; each of the base's own before the first of the patch's that stands behind it
/// in the base.
fn interleaved(merged: Vec<Merged>) -> Vec<Value> {
    let (mut patched, kept): (Vec<_>, Vec<_>) =
        merged.into_iter().partition(|item| item.in_patch.is_some());
    patched.sort_by_key(|item| item.in_patch);
    let mut out = Vec::with_capacity(patched.len() + kept.len());
    let mut kept = kept.into_iter().peekable();
    for item in patched {
        while let Some(own) = kept.next_if(
            |own| matches!((own.in_base, item.in_base), (Some(own), Some(item)) if own < item),
        ) {
            out.push(own.value);
        }
        out.push(item.value);
    }
    out.extend(kept.map(|item| item.value));
    out
}

fn position(keys: &[&Value], key: &Value) -> Option<usize> {
    keys.iter().position(|other| *other == key)
}

fn keys<'v>(
    items: &'v [Value],
    key: &'static str,
    side: Side,
    path: &FieldPath,
) -> Result<Vec<&'v Value>, MergeError> {
    let keyed = |(at, item): (usize, &'v Value)| {
        item.get(key).ok_or_else(|| MergeError {
            side,
            path: path.index(at),
            key,
        })
    };
    items.iter().enumerate().map(keyed).collect()
}
