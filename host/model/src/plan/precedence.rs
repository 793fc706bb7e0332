//! The edges indexed by name, for the lookups of each TrainJob.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Edge, EdgeReason};

/// For each plugin, those that run after it.
type Followers = BTreeMap<Arc<str>, BTreeSet<Arc<str>>>;

/// The edges of a generation, by their first plugin.
#[derive(Debug, Default)]
pub(super) struct Precedence {
    followers: Followers,
    declared: Followers,
}

impl Precedence {
    pub(super) fn of(edges: &[Edge]) -> Self {
        let mut precedence = Self::default();
        for edge in edges {
            let add = |followers: &mut Followers| {
                let then = edge.then.clone();
                followers
                    .entry(edge.first.clone())
                    .or_default()
                    .insert(then);
            };
            add(&mut precedence.followers);
            if edge.because == EdgeReason::Declared {
                add(&mut precedence.declared);
            }
        }
        precedence
    }

    /// Whether the order of the two is declared.
    pub(super) fn is_declared(&self, a: &str, b: &str) -> bool {
        let is_before = |first, then| {
            let followers = self.declared.get(first);
            followers.is_some_and(|followers| followers.contains(then))
        };
        is_before(a, b) || is_before(b, a)
    }

    /// Whether the plugin has to run after one of the others.
    pub(super) fn is_after_any(&self, name: &str, others: &BTreeSet<&str>) -> bool {
        let mut others = others.iter();
        others.any(|other| self.after(other).any(|then| then == name))
    }

    /// The plugins that have to run after this one.
    fn after(&self, name: &str) -> impl Iterator<Item = &str> {
        let followers = self.followers.get(name).into_iter().flatten();
        followers.map(|name| &**name)
    }

    /// The names in order. Ties are broken by the position in `preferred`, then by name. Names in a cycle, or after one, are omitted.
    pub(super) fn sorted<'a>(
        &self,
        names: &BTreeSet<&'a str>,
        preferred: &[Arc<str>],
    ) -> Vec<&'a str> {
        let turn = |name: &str| {
            let turn = preferred.iter().position(|one| **one == *name);
            turn.unwrap_or(usize::MAX)
        };
        let mut before: BTreeMap<&str, usize> = BTreeMap::new();
        for then in names.iter().flat_map(|name| self.after(name)) {
            *before.entry(then).or_default() += 1;
        }
        let free = names.iter().filter(|name| !before.contains_key(**name));
        let mut ready: BTreeSet<(usize, &str)> = free.map(|name| (turn(name), *name)).collect();
        let mut out = Vec::with_capacity(names.len());
        while let Some((_, next)) = ready.pop_first() {
            out.push(next);
            for then in self.after(next) {
                let (Some(name), Some(waits_for)) = (names.get(then), before.get_mut(then)) else {
                    continue;
                };
                *waits_for -= 1;
                if *waits_for == 0 {
                    ready.insert((turn(name), name));
                }
            }
        }
        out
    }
}
