//! Orders that Kubernetes gives a meaning: env vars that name others, and init containers that asked for a place.

use std::collections::BTreeSet;

use serde_json::Value;
use trainyard_model::record::{ContainerId, Entry, Field, Owner, PlaceScope, Record};

/// Moves an env var that another one's `$(NAME)` names before it, where one of the two came after the runtime: what the
/// runtime's author ordered stays. Kubernetes expands only what stands before. Names that name each other stay.
pub(super) fn references_first(list: Vec<Value>, entries: &[Entry]) -> Vec<Value> {
    let names: Vec<String> = list
        .iter()
        .map(|item| text(item, "name").to_owned())
        .collect();
    let added = |name: &str| {
        entries
            .iter()
            .any(|e| *e.key == *name && e.home != Owner::Runtime)
    };
    let needs: Vec<Vec<usize>> = list
        .iter()
        .zip(&names)
        .map(|(item, name)| {
            let referenced = references(text(item, "value"));
            let found = |n: &&str| names.iter().position(|other| other == n);
            referenced
                .iter()
                .filter(|n| added(n) || added(name))
                .filter_map(found)
                .collect()
        })
        .collect();
    let mut order = Vec::with_capacity(list.len());
    let mut seen = BTreeSet::new();
    for at in 0..list.len() {
        visit(at, &needs, &mut seen, &mut order);
    }
    let mut items: Vec<Option<Value>> = list.into_iter().map(Some).collect();
    order
        .into_iter()
        .filter_map(|at| items.get_mut(at)?.take())
        .collect()
}

fn visit(at: usize, needs: &[Vec<usize>], seen: &mut BTreeSet<usize>, order: &mut Vec<usize>) {
    if seen.insert(at) {
        for needed in needs.get(at).into_iter().flatten() {
            visit(*needed, needs, seen, order);
        }
        order.push(at);
    }
}

fn text<'v>(item: &'v Value, key: &str) -> &'v str {
    item.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The names in `$(NAME)`; `$$(NAME)` is an escape.
fn references(value: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = value;
    while let Some((_, after)) = rest.split_once('$') {
        rest = match after.strip_prefix('$') {
            Some(escaped) => escaped,
            None => match after
                .strip_prefix('(')
                .and_then(|inner| inner.split_once(')'))
            {
                Some((name, after)) => {
                    out.push(name);
                    after
                }
                None => after,
            },
        };
    }
    out
}

/// Wishes for a place that can't be met together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unsolvable {
    /// The init containers that can't be ordered.
    pub(crate) names: Vec<String>,
}

/// The order of a pod set's init containers: those of the runtime as they were, additions last or where they asked to
/// be, ties by name. None where nobody asked.
pub(crate) fn place_init_containers(
    record: &Record,
    pod_set: u32,
) -> Result<Option<Vec<ContainerId>>, Unsolvable> {
    let all: Vec<ContainerId> = record.containers(pod_set, Field::InitContainers).collect();
    let containers: Vec<Placed> = all
        .iter()
        .enumerate()
        .filter_map(|(at, id)| placed(record, *id, at))
        .collect();
    if containers.iter().all(|c| c.wishes.is_empty()) {
        return Ok(None);
    }
    let mut waiting: Vec<&Placed> = containers.iter().collect();
    let mut order = Vec::with_capacity(all.len());
    while !waiting.is_empty() {
        let ready = |c: &&&Placed| {
            !waiting
                .iter()
                .any(|other| other.id != c.id && other.precedes(c))
        };
        let Some(next) = waiting
            .iter()
            .filter(ready)
            .min_by_key(|c| (c.runtime.unwrap_or(usize::MAX), &c.name))
        else {
            return Err(Unsolvable {
                names: waiting.iter().map(|c| c.name.clone()).collect(),
            });
        };
        let id = next.id;
        order.push(id);
        waiting.retain(|c| c.id != id);
    }
    Ok(Some(order))
}

/// An init container with its wishes.
struct Placed {
    id: ContainerId,
    name: String,
    /// Its position, where the runtime has it.
    runtime: Option<usize>,
    wishes: Vec<String>,
}

impl Placed {
    /// Whether this one has to stand before the other.
    fn precedes(&self, other: &Self) -> bool {
        let wishes = |c: &Self, wish: &str| c.wishes.iter().any(|w| w == wish);
        let is_first = |c: &Self| wishes(c, "first");
        let in_runtime_order = matches!((self.runtime, other.runtime), (Some(a), Some(b)) if a < b);
        in_runtime_order
            || (is_first(self) && !is_first(other))
            || wishes(self, &format!("before/{}", other.name))
            || wishes(other, &format!("after/{}", self.name))
    }
}

fn placed(record: &Record, id: ContainerId, at: usize) -> Option<Placed> {
    let container = record.container(id)?;
    let wishes = record
        .fields(PlaceScope::Container(id))?
        .all(Field::Placement);
    Some(Placed {
        id,
        name: container.name.to_string(),
        runtime: (container.home == Owner::Runtime).then_some(at),
        wishes: wishes.iter().map(|wish| wish.key.to_string()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_references_and_leaves_escapes() {
        assert_eq!(references("$(A)-$$(B)-$(C)$(unclosed"), ["A", "C"]);
    }
}
