//! Orders that matter to Kubernetes: env vars that reference others, and init containers with a requested position.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::json::get;
use serde_json::Value;
use trainyard_model::record::{ContainerId, Entries, EntryScope, Field, Owner, Record};

/// Moves env vars before those that reference them by `$(NAME)`, because Kubernetes expands only references to earlier ones. Two env vars of
/// the runtime keep their order, and so do env vars that reference each other.
pub(super) fn references_first(list: Vec<Value>, entries: &Entries) -> Vec<Value> {
    let is_reference = |item| references(text(item, "value")).next().is_some();
    if !list.iter().any(is_reference) {
        return list;
    }
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

/// Returns the positions in their order, but each after those that it needs. A plugin may chain thousands, so the path of the search is a list
/// instead of the call stack.
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
    get(item, key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the names in `$(NAME)`. `$$(NAME)` is an escape.
fn references(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = value;
    std::iter::from_fn(move || {
        loop {
            let (_, after) = rest.split_once('$')?;
            rest = match after.strip_prefix('$') {
                Some(escaped) => escaped,
                None => match after.strip_prefix('(') {
                    Some(inner) => {
                        // If there is no end here, there is none later.
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

/// Requested positions that contradict each other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlacementConflict {
    /// The init containers that cannot be ordered.
    pub(crate) names: Vec<String>,
}

/// Returns the order of a pod set's init containers. Those of the runtime keep their order, and additions come last or at their requested
/// positions. If the rules leave a choice, the order of the record decides: by plugin name, then in the order of writing. `None` if no position
/// is requested.
pub(crate) fn place_init_containers(
    record: &Record,
    pod_set: u32,
) -> Result<Option<Vec<ContainerId>>, PlacementConflict> {
    let containers: Vec<PlacedContainer> = record
        .containers(pod_set, Field::InitContainers)
        .filter_map(|id| placed(record, id))
        .collect();
    if containers.iter().all(|c| c.rules.is_empty()) {
        return Ok(None);
    }
    let order = Precedence::of(&containers).sorted();
    let ids = order.iter().filter_map(|at| Some(containers.get(*at)?.id));
    if order.len() == containers.len() {
        return Ok(Some(ids.collect()));
    }
    let solved: BTreeSet<usize> = order.into_iter().collect();
    let waiting = containers.iter().enumerate();
    let waiting = waiting.filter(|(at, _)| !solved.contains(at));
    Err(PlacementConflict {
        names: waiting.map(|(_, c)| c.name.to_string()).collect(),
    })
}

/// An init container with its rules.
struct PlacedContainer {
    id: ContainerId,
    name: Arc<str>,
    is_runtimes: bool,
    rules: Vec<PlacementRule>,
}

/// A requested position of an init container.
#[derive(Clone, Debug, PartialEq)]
enum PlacementRule {
    First,
    Before(Arc<str>),
    After(Arc<str>),
}

impl PlacementRule {
    /// Parses the key of a [`Field::Placement`].
    fn read(key: &str) -> Option<Self> {
        match key.split_once('/') {
            None => (key == "first").then_some(Self::First),
            Some(("before", anchor)) => Some(Self::Before(anchor.into())),
            Some(("after", anchor)) => Some(Self::After(anchor.into())),
            Some(_) => None,
        }
    }
}

fn placed(record: &Record, id: ContainerId) -> Option<PlacedContainer> {
    let container = record.container(id)?;
    let rules = record
        .fields(EntryScope::Container(id))?
        .all(Field::Placement);
    Some(PlacedContainer {
        id,
        name: container.name.clone(),
        is_runtimes: container.home == Owner::Runtime,
        rules: rules
            .iter()
            .filter_map(|w| PlacementRule::read(&w.key))
            .collect(),
    })
}

/// The order that rules require of init containers, by their positions in the record. There is one edge per rule and one per container, so
/// the number of edges is linear.
struct Precedence {
    /// The positions that come after each position. The additional last position is a line between the containers that request to be first
    /// and the others.
    behind: Vec<Vec<usize>>,
    /// The number of positions that come before each position.
    before: Vec<usize>,
}

impl Precedence {
    fn of(containers: &[PlacedContainer]) -> Self {
        let line = containers.len();
        let mut all = Self {
            behind: vec![Vec::new(); line + 1],
            before: vec![0; line + 1],
        };
        let named: BTreeMap<&str, usize> = (0..)
            .zip(containers)
            .map(|(at, container)| (&*container.name, at))
            .collect();
        let mut last_of_runtime = None;
        for (at, container) in containers.iter().enumerate() {
            if container.is_runtimes
                && let Some(last) = last_of_runtime.replace(at)
            {
                all.add(last, at);
            }
            match container.rules.contains(&PlacementRule::First) {
                true => all.add(at, line),
                false => all.add(line, at),
            }
            // A rule about an absent container, or about the container itself, has no effect.
            let other = |anchor: &str| named.get(anchor).copied().filter(|other| *other != at);
            for rule in &container.rules {
                match rule {
                    PlacementRule::First => {}
                    PlacementRule::Before(anchor) => {
                        other(anchor)
                            .into_iter()
                            .for_each(|other| all.add(at, other));
                    }
                    PlacementRule::After(anchor) => {
                        other(anchor)
                            .into_iter()
                            .for_each(|other| all.add(other, at));
                    }
                }
            }
        }
        all
    }

    fn add(&mut self, first: usize, then: usize) {
        if let (Some(behind), Some(before)) =
            (self.behind.get_mut(first), self.before.get_mut(then))
        {
            behind.push(then);
            *before += 1;
        }
    }

    /// Returns a topological order, which always continues with the first possible container of the record. Containers in or after a cycle are
    /// omitted.
    fn sorted(mut self) -> Vec<usize> {
        let line = self.behind.len().saturating_sub(1);
        let free = |(at, before): (usize, &usize)| (*before == 0).then_some(at);
        let mut ready: BTreeSet<usize> = self.before.iter().enumerate().filter_map(free).collect();
        let mut order = Vec::with_capacity(line);
        // The line has the highest position, so it comes after every container that can precede it.
        while let Some(next) = ready.pop_first() {
            if next != line {
                order.push(next);
            }
            let behind = self.behind.get_mut(next).map(std::mem::take);
            for then in behind.into_iter().flatten() {
                if let Some(before) = self.before.get_mut(then) {
                    *before -= 1;
                    if *before == 0 {
                        ready.insert(then);
                    }
                }
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::select};

    use super::*;

    #[test]
    fn references_are_found_and_escapes_skipped() {
        let found: Vec<_> = references("$(A)-$$(B)-$(C)$(unclosed").collect();
        assert_eq!(found, ["A", "C"]);
    }

    /// Returns init containers `c0`, `c1` and so on. The first ones are the runtime's.
    fn containers(runtimes: usize, rules: Vec<Vec<PlacementRule>>) -> Vec<PlacedContainer> {
        let all = (0u32..).zip(rules).enumerate();
        let placed = all.map(|(at, (id, rules))| PlacedContainer {
            id: ContainerId(id),
            name: format!("c{at}").into(),
            is_runtimes: at < runtimes,
            rules: if at < runtimes { Vec::new() } else { rules },
        });
        placed.collect()
    }

    /// Returns the order by its definition, comparing every pair for every position.
    fn by_definition(all: &[PlacedContainer]) -> Vec<usize> {
        let precedes = |one: &PlacedContainer, other: &PlacedContainer| {
            let is_first = |c: &PlacedContainer| c.rules.contains(&PlacementRule::First);
            (one.is_runtimes && other.is_runtimes && one.id < other.id)
                || (is_first(one) && !is_first(other))
                || one
                    .rules
                    .contains(&PlacementRule::Before(other.name.clone()))
                || other
                    .rules
                    .contains(&PlacementRule::After(one.name.clone()))
        };
        let mut waiting: Vec<_> = all.iter().enumerate().collect();
        let mut order = Vec::new();
        let is_ready = |waiting: &[(usize, &PlacedContainer)], one: &PlacedContainer| {
            let mut others = waiting.iter().filter(|(_, other)| other.id != one.id);
            others.all(|(_, other)| !precedes(other, one))
        };
        while let Some(next) = waiting.iter().position(|(_, one)| is_ready(&waiting, one)) {
            order.push(waiting.remove(next).0);
        }
        order
    }

    fn rule() -> impl Strategy<Value = PlacementRule> {
        let name = || {
            select(
                (0..8)
                    .map(|at| Arc::from(format!("c{at}")))
                    .collect::<Vec<Arc<str>>>(),
            )
        };
        prop_oneof![
            1 => Just(PlacementRule::First),
            2 => name().prop_map(PlacementRule::Before),
            2 => name().prop_map(PlacementRule::After),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn order_matches_its_definition(
            runtimes in 0usize..4,
            rules in prop::collection::vec(prop::collection::vec(rule(), 0..3), 0..7),
        ) {
            let all = containers(runtimes, rules);
            prop_assert_eq!(Precedence::of(&all).sorted(), by_definition(&all));
        }
    }

    /// Sorting visits each edge once, so it must not have an edge per pair.
    #[test]
    fn number_of_edges_is_linear() {
        let rules = |at: usize| {
            let other = |at: usize| Arc::from(format!("c{at}"));
            vec![
                PlacementRule::First,
                PlacementRule::Before(other(at + 1)),
                PlacementRule::After(other(at / 2)),
            ]
        };
        let all = containers(1_000, (0..5_000).map(rules).collect());
        let precedence = Precedence::of(&all);
        let edges: usize = precedence.behind.iter().map(Vec::len).sum();
        assert!(edges < 5_000 + 1_000 + 2 * 4_000, "{edges}");
    }
}
