//! Orders that Kubernetes gives a meaning: env vars that name others, and init containers that asked for a place.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use trainyard_model::record::{ContainerId, Entries, EntryScope, Field, Owner, Record};

/// Moves an env var that another one's `$(NAME)` names before it, where one of the two came after the runtime: what the
/// runtime's author ordered stays. Kubernetes expands only what stands before. Names that name each other stay.
pub(super) fn references_first(list: Vec<Value>, entries: &Entries) -> Vec<Value> {
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
pub(crate) struct PlacementConflict {
    /// The init containers that can't be ordered.
    pub(crate) names: Vec<String>,
}

/// The order of a pod set's init containers: those of the runtime as they were, additions last or where they asked to
/// be; where rules leave a choice, as the record has them, by plugin name and then as each plugin wrote them. None where
/// nobody asked.
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

/// A place that an init container asked for.
#[derive(Clone, Debug, PartialEq)]
enum PlacementRule {
    First,
    Before(Arc<str>),
    After(Arc<str>),
}

impl PlacementRule {
    /// Reads the key of a [`Field::Placement`].
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

/// Which init containers stand before which, by their positions in the record. One edge for each rule, and one for each
/// container where a rule is about many of them: the number of edges follows what was written.
struct Precedence {
    /// The positions that stand behind each position. The one behind all containers stands for the line between those
    /// that asked to be first and the others.
    behind: Vec<Vec<usize>>,
    /// How many stand before each position.
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
            // A rule about what is not there, or about itself, is met by every order.
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

    /// A topological order: of those that may come next, always the first one of the record. What stands in a cycle, or
    /// behind one, is left out.
    fn sorted(mut self) -> Vec<usize> {
        let line = self.behind.len().saturating_sub(1);
        let free = |(at, before): (usize, &usize)| (*before == 0).then_some(at);
        let mut ready: BTreeSet<usize> = self.before.iter().enumerate().filter_map(free).collect();
        let mut order = Vec::with_capacity(line);
        // The line is behind all containers, so that it is drawn once nothing else is left before it.
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
    fn finds_references_and_leaves_escapes() {
        let found: Vec<_> = references("$(A)-$$(B)-$(C)$(unclosed").collect();
        assert_eq!(found, ["A", "C"]);
    }

    /// Init containers `c0`, `c1` and so on, of which the first ones are the runtime's.
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

    /// What the order is by its definition: every pair is looked at for every place.
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
        fn the_order_is_the_one_of_its_definition(
            runtimes in 0usize..4,
            rules in prop::collection::vec(prop::collection::vec(rule(), 0..3), 0..7),
        ) {
            let all = containers(runtimes, rules);
            prop_assert_eq!(Precedence::of(&all).sorted(), by_definition(&all));
        }
    }

    /// The order looks at each edge once: there are as many as containers and rules, and not as many as pairs.
    #[test]
    fn edges_follow_what_was_written() {
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
