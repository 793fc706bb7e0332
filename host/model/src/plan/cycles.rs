//! Cycles among plugins that can be active together.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use super::{Edge, EdgeReason, Generation, PlanError, WaysOut, pair};
use crate::{manifest::Union, plugin_info::PluginInfo};

type Names<'a> = BTreeSet<&'a str>;

/// The most selections that are searched. If exclusions lead to more, some exclusions are ignored: a cycle that cannot occur may then be
/// reported, but none is missed.
const MAX_SELECTIONS: usize = 256;

/// The edges by their first plugin.
type EdgesFrom<'a> = BTreeMap<&'a str, Vec<&'a Edge>>;

/// Finds a shortest cycle through each plugin that is in one, without duplicates. Every selection is searched separately, so the work is
/// bounded by the number of plugins, not of paths.
pub(super) fn find(
    generation: &Generation,
    plugins: &[(&Arc<str>, &Arc<PluginInfo>)],
) -> Vec<PlanError> {
    let mut from = EdgesFrom::new();
    for edge in &generation.edges {
        from.entry(&edge.first).or_default().push(edge);
    }
    let mut found: BTreeMap<BTreeSet<Arc<str>>, Vec<Edge>> = BTreeMap::new();
    for names in selections(plugins) {
        for start in &names {
            if let Some(cycle) = shortest_cycle(start, &names, &from) {
                found
                    .entry(cycle.iter().map(|edge| edge.first.clone()).collect())
                    .or_insert(cycle);
            }
        }
    }
    found
        .into_values()
        .map(|cycle| PlanError::Cycle {
            ways: ways_out(generation, &cycle),
            cycle,
        })
        .collect()
}

/// How the operator can break a cycle: by the opposite of an order that both plugins leave open, or without one of the plugins.
fn ways_out(generation: &Generation, cycle: &[Edge]) -> WaysOut {
    let pairs = cycle.iter().filter_map(|edge| {
        let (first, then) = (
            generation.plugin(&edge.first)?,
            generation.plugin(&edge.then)?,
        );
        Some((edge, generation.pair(first, then)?))
    });
    let mut ways = WaysOut::disabling(cycle.iter().map(|edge| &edge.first));
    for (edge, pair) in pairs {
        if edge.because != EdgeReason::Declared && !pair.is_forced(pair.a, pair.b) {
            ways.orders.push((edge.first.clone(), edge.then.clone()));
        }
        ways.exclusions.extend(pair.exclusion());
    }
    ways.exclusions.sort();
    ways.exclusions.dedup();
    ways
}

/// The largest sets of plugins that can be active together.
fn selections<'a>(plugins: &'a [(&'a Arc<str>, &'a Arc<PluginInfo>)]) -> Vec<Names<'a>> {
    let mut unions: BTreeMap<Union, Vec<&str>> = BTreeMap::new();
    let mut out = vec![Names::new()];
    for (name, plugin) in plugins {
        match plugin.manifest.active_when.union() {
            Some(union) => unions.entry(union).or_default().push(name.as_ref()),
            None => out.iter_mut().for_each(|names| names.extend([&***name])),
        }
    }
    for members in unions.values() {
        let before = std::mem::take(&mut out);
        for member in members {
            out.extend(before.iter().map(|names| {
                let with_member = names.iter().copied().chain([*member]);
                with_member.collect::<Names<'_>>()
            }));
        }
    }
    for (at, (a, plugin)) in plugins.iter().enumerate() {
        let excluded = plugins.iter().skip(at + 1);
        for (b, _) in excluded.filter(|(_, other)| pair::are_excluded(plugin, other)) {
            if out.len() > MAX_SELECTIONS {
                return out;
            }
            out = apart(out, a, b);
        }
    }
    out
}

/// Splits each selection with both plugins into one without the first and one without the second. Subsets of other selections are
/// dropped.
fn apart<'a>(selections: Vec<Names<'a>>, a: &str, b: &str) -> Vec<Names<'a>> {
    let (both, mut out): (Vec<_>, Vec<_>) = selections
        .into_iter()
        .partition(|names| names.contains(a) && names.contains(b));
    for names in both {
        for left_out in [a, b] {
            let rest: Names<'_> = names
                .iter()
                .copied()
                .filter(|name| **name != *left_out)
                .collect();
            if !out.iter().any(|other| rest.is_subset(other)) {
                out.push(rest);
            }
        }
    }
    out
}

/// The shortest path from a plugin back to itself, by breadth-first search.
fn shortest_cycle(start: &str, names: &Names<'_>, from: &EdgesFrom<'_>) -> Option<Vec<Edge>> {
    let mut by: BTreeMap<&str, &Edge> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(name) = queue.pop_front() {
        for edge in from.get(name).into_iter().flatten() {
            if !names.contains(&*edge.then) || by.contains_key(&*edge.then) {
                continue;
            }
            by.insert(&edge.then, edge);
            if *edge.then == *start {
                return Some(way_back(start, &by));
            }
            queue.push_back(&edge.then);
        }
    }
    None
}

/// The edges of the path that led back to `start`, in order.
fn way_back(start: &str, by: &BTreeMap<&str, &Edge>) -> Vec<Edge> {
    let mut cycle = Vec::new();
    let mut at = start;
    while let Some(edge) = by.get(at) {
        cycle.push((*edge).clone());
        at = &edge.first;
        if at == start {
            break;
        }
    }
    cycle.reverse();
    cycle
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::{manifest::Manifest, plugin_info::Settings};

    fn plugin(name: &str, excludes: Option<String>) -> Arc<PluginInfo> {
        let manifest = json!({
            "name": name, "version": "1.0.0", "contract": "1.0.0", "activeWhen": "plugins", "phases": ["transform"],
        });
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        let settings = Settings {
            excludes: excludes.into_iter().collect(),
            ..Settings::built_in()
        };
        Arc::new(PluginInfo::new(manifest, "digest", settings).unwrap())
    }

    #[test]
    fn selections_are_as_large_as_exclusions_allow() {
        let names = |selections: &[&'static str]| -> Vec<Names<'static>> {
            let names = selections.iter().map(|names| names.split(' ').collect());
            names.collect()
        };
        for (before, after) in [
            (&["a b c"][..], &["b c", "a c"][..]),
            (&["a c", "b c"], &["a c", "b c"]),
            (&["a b c", "a d"], &["a d", "b c", "a c"]),
            (&["a b", "b c"], &["b c", "a"]),
        ] {
            assert_eq!(apart(names(before), "a", "b"), names(after), "{before:?}");
        }
    }

    #[test]
    fn selections_are_at_most_twice_the_limit() {
        for (pairs, selections) in [
            (8, MAX_SELECTIONS),
            (9, 2 * MAX_SELECTIONS),
            (16, 2 * MAX_SELECTIONS),
        ] {
            let plugins = (0..pairs).flat_map(|pair| {
                let (a, b) = (format!("a{pair}"), format!("b{pair}"));
                [plugin(&a, Some(b.clone())), plugin(&b, None)]
            });
            let plugins: Vec<_> = plugins.collect();
            let named: Vec<_> = plugins
                .iter()
                .map(|plugin| (&plugin.id.name, plugin))
                .collect();
            assert_eq!(super::selections(&named).len(), selections, "{pairs}");
        }
    }
}
