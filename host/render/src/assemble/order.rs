//! Orders that Kubernetes gives a meaning: env vars that name others, and init containers that asked for a place.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use trainyard_model::record::{ContainerId, Entry, Field, Owner, PlaceScope, Record};

/// Moves an env var that another one's `$(NAME)` names before it, where one of the two came after the runtime: what the
/// runtime's author ordered stays. Kubernetes expands only what stands before. Names that name each other stay.
pub(super) fn references_first(list: Vec<Value>, entries: &[Entry]) -> Vec<Value> {
    let added: BTreeSet<&str> = entries
        .iter()
        .filter(|entry| entry.home != Owner::Runtime)
        .map(|entry| &*entry.key)
        .collect();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, item) in list.iter().enumerate() {
        places.entry(text(item, "name")).or_insert(at);
    }
    let needs: Vec<Vec<usize>> = list
        .iter()
        .map(|item| {
            let is_added = added.contains(text(item, "name"));
            let referenced: BTreeSet<&str> = references(text(item, "value")).collect();
            let found = referenced
                .into_iter()
                .filter(|name| is_added || added.contains(name))
                .filter_map(|name| places.get(name).copied());
            found.collect::<BTreeSet<_>>().into_iter().collect()
        })
        .collect();
    let order = needed_first(&needs);
    let mut items: Vec<Option<Value>> = list.into_iter().map(Some).collect();
    order
        .into_iter()
        .filter_map(|at| items.get_mut(at)?.take())
        .collect()
}

/// The positions in their order, but each behind those that it needs. A plugin may chain thousands, so that the way down
/// stands in a list and not on the stack.
fn needed_first(needs: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(needs.len());
    let mut seen = vec![false; needs.len()];
    for start in 0..needs.len() {
        let mut way = vec![(start, 0)];
        while let Some((at, next)) = way.last_mut() {
            let (here, needed) = (*at, needs.get(*at).and_then(|all| all.get(*next)).copied());
            *next += 1;
            let was_seen = seen
                .get_mut(here)
                .is_none_or(|seen| std::mem::replace(seen, true));
            match needed {
                _ if was_seen && *next == 1 => drop(way.pop()),
                Some(needed) => way.push((needed, 0)),
                None => {
                    order.push(here);
                    way.pop();
                }
            }
        }
    }
    order
}

fn text<'v>(item: &'v Value, key: &str) -> &'v str {
    item.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The names in `$(NAME)`; `$$(NAME)` is an escape.
fn references(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = value;
    std::iter::from_fn(move || {
        loop {
            let (_, after) = rest.split_once('$')?;
            rest = match after.strip_prefix('$') {
                Some(escaped) => escaped,
                None => match after.strip_prefix('(') {
                    Some(inner) => {
                        // Without an end here there is none further on.
                        let (name, behind) = inner.split_once(')')?;
                        rest = behind;
                        return Some(name);
                    }
                    None => after,
                },
            };
        }
    })
}

/// Wishes for a place that can't be met together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unsolvable {
    /// The init containers that can't be ordered.
    pub(crate) names: Vec<String>,
}

/// The order of a pod set's init containers: those of the runtime as they were, additions last or where they asked to
/// be; where wishes leave a choice, as the record has them, by plugin name and then as each plugin wrote them. None where
/// nobody asked.
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
        let Some(next) = waiting.iter().filter(ready).min_by_key(|c| c.at) else {
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
    /// Its position in the record: the runtime's first.
    at: usize,
    is_runtimes: bool,
    wishes: Vec<String>,
}

impl Placed {
    /// Whether this one has to stand before the other.
    fn precedes(&self, other: &Self) -> bool {
        let wishes = |c: &Self, wish: &str| c.wishes.iter().any(|w| w == wish);
        let is_first = |c: &Self| wishes(c, "first");
        (self.is_runtimes && other.is_runtimes && self.at < other.at)
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
        at,
        is_runtimes: container.home == Owner::Runtime,
        wishes: wishes.iter().map(|wish| wish.key.to_string()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_references_and_leaves_escapes() {
        let found: Vec<_> = references("$(A)-$$(B)-$(C)$(unclosed").collect();
        assert_eq!(found, ["A", "C"]);
    }
}
