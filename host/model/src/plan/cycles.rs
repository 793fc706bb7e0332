//! Cycles that can come up: among plugins of which no two are of one union.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use super::{Edge, PlanError};
use crate::plugin::Plugin;

type Names<'a> = BTreeSet<&'a str>;

/// The edges by the plugin that they lead from.
type From<'a> = BTreeMap<&'a str, Vec<&'a Edge>>;

/// A shortest cycle through each of the plugins that is in one, each cycle once. Every choice of one member from each union is
/// searched on its own, so that the work grows with the plugins and not with the ways through them.
pub(super) fn find(plugins: &[(&Arc<str>, &Arc<Plugin>)], edges: &[Edge]) -> Vec<PlanError> {
    let mut from = From::new();
    for edge in edges {
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
        .map(|cycle| PlanError::Cycle { cycle })
        .collect()
}

/// The largest sets of plugins that can be active together.
fn selections<'a>(plugins: &'a [(&'a Arc<str>, &'a Arc<Plugin>)]) -> Vec<Names<'a>> {
    let mut unions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
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
    out
}

/// The shortest way from a plugin back to itself by those plugins, breadth first.
fn shortest_cycle(start: &str, names: &Names<'_>, from: &From<'_>) -> Option<Vec<Edge>> {
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

/// The edges that led to `start`, the first one first.
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
