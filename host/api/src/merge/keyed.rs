//! Merging two lists whose items have a key.

use serde_json::Value;

use super::{
    error::{MergeError, Side},
    merge,
    positions::Positions,
    table::Node,
};
use crate::StackPath;

/// An item of the merged list.
struct Merged {
    value: Value,
    /// The position in the base of the first item with its key.
    in_base: Option<usize>,
    /// The position in the patch of the first item with its key.
    in_patch: Option<usize>,
}

/// Merges the items of a patch into those of the base.
pub(super) fn merge_list(
    base: &[Value],
    patch: &[Value],
    key: &'static str,
    node: &'static Node,
    path: &StackPath<'_>,
) -> Result<Value, MergeError> {
    let old_keys = keys(base, key, Side::Base, path)?;
    let new_keys = keys(patch, key, Side::Patch, path)?;
    let in_base = Positions::of_keys(old_keys.iter().copied().map(Some));
    let in_patch = Positions::of_keys(new_keys.iter().copied().map(Some));
    let mut merged = Vec::with_capacity(base.len() + patch.len());
    // The position of the first merged item for each item of the patch.
    let mut slots: Vec<Option<usize>> = vec![None; patch.len()];
    for (at, (value, key)) in base.iter().zip(&old_keys).enumerate() {
        let here = in_patch.get(Some(key));
        if let Some(slot) = here.and_then(|here| slots.get_mut(here)) {
            slot.get_or_insert(at);
        }
        merged.push(Merged {
            value: value.clone(),
            in_base: in_base.get(Some(key)),
            in_patch: here,
        });
    }
    for (at, (change, key)) in patch.iter().zip(&new_keys).enumerate() {
        let here = in_patch.get(Some(key));
        let Some(slot) = here.and_then(|here| slots.get_mut(here)) else {
            continue;
        };
        match slot.and_then(|slot| merged.get_mut(slot)) {
            Some(item) => item.value = merge(&item.value, change, node, &path.index(at))?,
            None => {
                *slot = Some(merged.len());
                merged.push(Merged {
                    value: change.clone(),
                    in_base: None,
                    in_patch: here,
                });
            }
        }
    }
    Ok(Value::Array(interleaved(merged)))
}

/// Returns the items of the patch in the patch's order. Each other item of the base is inserted before the first item of the patch
/// that follows it in the base.
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

fn keys<'v>(
    items: &'v [Value],
    key: &'static str,
    side: Side,
    path: &StackPath<'_>,
) -> Result<Vec<&'v Value>, MergeError> {
    let keyed = |(at, item): (usize, &'v Value)| {
        item.get(key).ok_or_else(|| MergeError {
            side,
            path: path.index(at).path(),
            key,
        })
    };
    items.iter().enumerate().map(keyed).collect()
}
