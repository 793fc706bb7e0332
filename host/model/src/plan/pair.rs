//! The order and the conflicts of two plugins.

use std::sync::Arc;

use super::{Edge, EdgeReason, PlanError, PossibleClash, SharedPaths, WaysOut};
use crate::{
    claims::{ClaimPath, ClaimScope, KeyPattern, PodSetPattern, Variables, Verb},
    manifest::ActiveWhen,
    plugin_info::PluginInfo,
    record::{Accelerators, Field},
};

/// Two plugins that can be active for one TrainJob.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) a: &'a PluginInfo,
    pub(super) b: &'a PluginInfo,
    pub(super) accelerators: &'a Accelerators,
}

impl<'a> Pair<'a> {
    /// The conflict over the paths that both write, without those with variables, if no order is declared.
    pub(super) fn shared_write(self) -> Option<PlanError> {
        if !self.declared().is_empty() {
            return None;
        }
        let certain = self
            .shared_writes()
            .filter(|(x, y)| !has_variable(x) && !has_variable(y));
        self.conflict(certain.map(|(x, y)| (x, y, x.meet(y))))
    }

    /// The conflict over the paths that both write for one TrainJob's values of variables, if no order is declared.
    pub(super) fn clash(self, of_a: &Variables, of_b: &Variables) -> Option<PlanError> {
        if !self.declared().is_empty() {
            return None;
        }
        let uncertain = self
            .shared_writes()
            .filter(|(x, y)| has_variable(x) || has_variable(y));
        self.conflict(uncertain.filter_map(|(x, y)| {
            let (of_x, of_y) = (resolve(x, of_a)?, resolve(y, of_b)?);
            of_x.overlaps(&of_y).then(|| (x, y, of_x.meet(&of_y)))
        }))
    }

    /// The conflict of two plugins that both define which pods are the nodes.
    pub(super) fn node_sets(self) -> Option<PlanError> {
        let has = |plugin: &PluginInfo| !plugin.manifest.node_sets.is_empty();
        (has(self.a) && has(self.b)).then(|| PlanError::NodeSets {
            first: self.a.id.name.clone(),
            second: self.b.id.name.clone(),
            ways: WaysOut {
                orders: Vec::new(),
                ..self.ways_out()
            },
        })
    }

    /// How the operator can resolve that both write the same path.
    pub(super) fn ways_out(self) -> WaysOut {
        let name = |plugin: &PluginInfo| plugin.id.name.clone();
        let pair = |first, second| (name(first), name(second));
        let orders = [(self.a, self.b), (self.b, self.a)].into_iter();
        let orders = orders.filter(|(first, then)| !self.is_forced(first, then));
        WaysOut {
            orders: orders.map(|(first, then)| pair(first, then)).collect(),
            exclusions: self.exclusion().into_iter().collect(),
            disabled: vec![name(self.a), name(self.b)],
        }
    }

    /// The pair, unless both are always active, so that one has to be disabled.
    pub(super) fn exclusion(self) -> Option<(Arc<str>, Arc<str>)> {
        let is_always = |plugin: &PluginInfo| plugin.manifest.active_when == ActiveWhen::Always;
        let both = is_always(self.a) && is_always(self.b);
        let mut names = [&self.a.id.name, &self.b.id.name].map(Clone::clone);
        names.sort();
        let [first, second] = names;
        (!both).then_some((first, second))
    }

    /// Whether `first` runs before `then` even if another order is declared, because of a path that only one of them writes.
    pub(super) fn is_forced(self, first: &PluginInfo, then: &PluginInfo) -> bool {
        derived_order(first, then, true, self.accelerators).is_some()
    }

    /// The paths that both write for certain values of variables.
    pub(super) fn possible_clashes(self) -> impl Iterator<Item = PossibleClash> {
        let is_undecided = self.declared().is_empty();
        is_undecided
            .then(|| self.shared_writes())
            .into_iter()
            .flatten()
            .filter(|(x, y)| has_variable(x) || has_variable(y))
            .map(move |(x, y)| PossibleClash {
                first: self.a.id.name.clone(),
                first_path: x.to_string(),
                second: self.b.id.name.clone(),
                second_path: y.to_string(),
            })
    }

    fn conflict(
        self,
        meetings: impl Iterator<Item = (&'a ClaimPath, &'a ClaimPath, ClaimPath)>,
    ) -> Option<PlanError> {
        Some(PlanError::Conflict {
            first: self.a.id.name.clone(),
            second: self.b.id.name.clone(),
            shared: SharedPaths::of(meetings)?,
            ways: self.ways_out(),
        })
    }

    /// The edges between the two. Edges in both directions are a cycle.
    pub(super) fn edges(self) -> Vec<Edge> {
        let declared = self.declared();
        let is_declared = !declared.is_empty();
        let derived = [
            derived_order(self.a, self.b, is_declared, self.accelerators),
            derived_order(self.b, self.a, is_declared, self.accelerators),
        ];
        declared
            .into_iter()
            .chain(derived.into_iter().flatten())
            .collect()
    }

    /// The order that `after` and `before` declare. The operator's take precedence over those of manifests.
    fn declared(self) -> Vec<Edge> {
        let by_operator = self.declared_in(|plugin| {
            let settings = &plugin.settings;
            (&settings.after, &settings.before)
        });
        if by_operator.is_empty() {
            self.declared_in(|plugin| (&plugin.manifest.after, &plugin.manifest.before))
        } else {
            by_operator
        }
    }

    fn declared_in(self, lists: impl Fn(&PluginInfo) -> (&Vec<String>, &Vec<String>)) -> Vec<Edge> {
        let names =
            |list: &[String], plugin: &PluginInfo| list.iter().any(|n| **n == *plugin.id.name);
        let in_order = |first: &PluginInfo, then: &PluginInfo| {
            (names(lists(then).0, first) || names(lists(first).1, then))
                .then(|| edge(first, then, EdgeReason::Declared))
        };
        [in_order(self.a, self.b), in_order(self.b, self.a)]
            .into_iter()
            .flatten()
            .collect()
    }

    /// The overlapping write and create claims of both.
    fn shared_writes(self) -> impl Iterator<Item = (&'a ClaimPath, &'a ClaimPath)> {
        writes_of(self.a).flat_map(move |(_, x)| {
            writes_of(self.b)
                .filter(|(_, y)| x.overlaps(y))
                .map(move |(_, y)| (x, y))
        })
    }
}

/// Whether two plugins can be active for one TrainJob.
pub(super) fn can_meet(a: &PluginInfo, b: &PluginInfo) -> bool {
    let union = a.manifest.active_when.union();
    (union.is_none() || union != b.manifest.active_when.union()) && !are_excluded(a, b)
}

/// Whether the operator or one of their manifests excludes the two from running together.
pub(super) fn are_excluded(a: &PluginInfo, b: &PluginInfo) -> bool {
    let by_operator = |a: &PluginInfo, b: &PluginInfo| {
        a.settings.excludes.iter().any(|name| **name == *b.id.name)
    };
    by_operator(a, b) || by_operator(b, a) || excluding(a, b).is_some()
}

/// The one of two plugins whose manifest excludes the other, unless the operator orders them.
pub(super) fn excluding<'p>(a: &'p PluginInfo, b: &'p PluginInfo) -> Option<&'p PluginInfo> {
    let excludes = |a: &PluginInfo, b: &PluginInfo| {
        a.manifest.excludes.iter().any(|name| **name == *b.id.name)
    };
    let is_ordered = |a: &PluginInfo, b: &PluginInfo| {
        let mut ordered = a.settings.after.iter().chain(&a.settings.before);
        ordered.any(|name| **name == *b.id.name)
    };
    if is_ordered(a, b) || is_ordered(b, a) {
        return None;
    }
    [(a, b), (b, a)]
        .into_iter()
        .find_map(|(one, other)| excludes(one, other).then_some(one))
}

fn edge(first: &PluginInfo, then: &PluginInfo, because: EdgeReason) -> Edge {
    Edge {
        first: first.id.name.clone(),
        then: then.id.name.clone(),
        because,
    }
}

/// The create and write claims of a plugin.
fn writes_of(plugin: &PluginInfo) -> impl Iterator<Item = (Verb, &ClaimPath)> {
    let claims = plugin.manifest.claims.iter();
    claims.filter(|(verb, _)| *verb != Verb::Read)
}

/// Why `first` runs before `then`, by their claims in transform. A declared order replaces the derived one for paths that both write, and
/// for the set of names in a list of containers to which both add.
fn derived_order(
    first: &PluginInfo,
    then: &PluginInfo,
    is_declared: bool,
    accelerators: &Accelerators,
) -> Option<Edge> {
    let in_transform = |path: &ClaimPath| path.field != Field::Objects;
    let both_write =
        |path: &ClaimPath| is_declared && writes_of(then).any(|(_, own)| covers(own, path));
    // The claims of `then`, computed once and not for each path that `first` writes.
    let claims = then.manifest.claims.iter();
    let claims: Vec<_> = claims
        .map(|(verb, path)| (verb, path, both_write(path)))
        .collect();
    let seen_by_then = |verb: Verb, made: &ClaimPath| {
        let both_make = match verb {
            Verb::Create => is_declared && writes_of(then).any(|(_, own)| own.is_of_list(made)),
            _ => both_write(made),
        };
        let mut claims = claims.iter();
        claims.find_map(|(their_verb, path, is_written)| {
            // A claim to write devices includes reading them.
            let counts = *their_verb != Verb::Create && path.counts(made, accelerators);
            if counts && !both_make {
                return Some((Verb::Read, made.to_string()));
            }
            let (sees, is_decided) = match verb {
                // If both add to the list, a declared order also covers reads of its names.
                Verb::Create => (
                    made.creates_around(path) && *their_verb != Verb::Create,
                    both_make && made.is_of_list(path),
                ),
                _ => (
                    *their_verb == Verb::Read && path.sees_write(made),
                    both_make || *is_written,
                ),
            };
            (sees && !is_decided).then(|| (*their_verb, path.to_string()))
        })
    };
    writes_of(first)
        .filter(|(_, path)| in_transform(path))
        .find_map(|(verb, made)| {
            let (seen_by, path) = seen_by_then(verb, made)?;
            let because = EdgeReason::Path {
                first: verb,
                then: seen_by,
                path,
            };
            Some(edge(first, then, because))
        })
}

/// Whether a claim on `own` covers the whole path.
fn covers(own: &ClaimPath, path: &ClaimPath) -> bool {
    #[cfg(test)]
    tests::COMPARISONS.set(tests::COMPARISONS.get() + 1);
    own.covers(path)
}

/// The keys of a path, including those of its scope.
fn keys_mut(path: &mut ClaimPath) -> impl Iterator<Item = &mut KeyPattern> {
    let (pod_sets, name) = match &mut path.scope {
        ClaimScope::Job => (None, None),
        ClaimScope::PodSet(pod_sets) => (Some(pod_sets), None),
        ClaimScope::Container { pod_sets, name, .. } => (Some(pod_sets), Some(name)),
    };
    let pod_set = pod_sets.and_then(|pod_sets| match pod_sets {
        PodSetPattern::Named(key) => Some(key),
        PodSetPattern::Ancestor(_) | PodSetPattern::Nodes => None,
    });
    pod_set.into_iter().chain(name).chain(path.key.as_mut())
}

fn has_variable(path: &ClaimPath) -> bool {
    keys_mut(&mut path.clone()).any(|key| matches!(key, KeyPattern::Variable(_)))
}

/// The path with this TrainJob's values of variables. `None` if a variable has no value, so that the claim matches nothing.
fn resolve(path: &ClaimPath, variables: &Variables) -> Option<ClaimPath> {
    let mut out = path.clone();
    for key in keys_mut(&mut out) {
        if let KeyPattern::Variable(variable) = key {
            *key = KeyPattern::Literal((&*variables.value(variable)?).into());
        }
    }
    out.key = out.key.map(|key| key.in_field(out.field));
    Some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{cell::Cell, sync::Arc};

    use serde_json::json;

    use super::*;
    use crate::{
        manifest::Manifest,
        plan::{Generation, MAX_PLUGINS, PlanError},
        plugin_info::Settings,
    };

    thread_local! {
        pub(super) static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    /// A plugin that writes and reads the same paths as the others, and runs after some.
    fn plugin(at: usize, paths: usize, after: std::ops::Range<usize>) -> Arc<PluginInfo> {
        let path = |path| format!("pod-sets[@trainer].containers[node].env[P{path}]");
        let name = |at| format!("p{at:03}");
        let after: Vec<_> = after.filter(|other| *other != at).map(name).collect();
        let manifest = json!({
            "name": name(at), "version": "1.0.0", "contract": "1.0.0", "activeWhen": "plugins", "phases": ["transform"],
            "claims": {
                "writes": (0..paths).map(path).collect::<Vec<_>>(),
                "reads": (0..paths).map(path).collect::<Vec<_>>(),
            },
            "after": after,
        });
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        Arc::new(PluginInfo::new(manifest, "digest", Settings::built_in()).unwrap())
    }

    /// Plugins that each run after all that were given before.
    fn compared(plugins: usize, paths: usize) -> usize {
        COMPARISONS.set(0);
        Generation::new((0..plugins).map(|at| plugin(at, paths, 0..at))).unwrap();
        COMPARISONS.get()
    }

    #[test]
    fn comparisons_grow_with_the_square_of_the_claims() {
        let (one, two) = (compared(2, 16), compared(2, 32));
        assert!(two > one && two <= 4 * one, "{one} and {two}");
        let (one, two) = (compared(8, 16), compared(16, 16));
        assert!(two > one && two <= 5 * one, "{one} and {two}");
    }

    #[test]
    fn plugins_that_all_run_after_each_other_are_cycles() {
        let plugins = (0..MAX_PLUGINS).map(|at| plugin(at, 1, 0..MAX_PLUGINS));
        let errors = Generation::new(plugins).unwrap_err();
        let is_short =
            |error: &PlanError| matches!(error, PlanError::Cycle { cycle, .. } if cycle.len() == 2);
        assert!(errors.iter().all(is_short), "{errors:?}");
        assert!(errors.len() < MAX_PLUGINS);
    }

    #[test]
    fn more_plugins_than_a_generation_has_are_refused() {
        let error = Generation::new((0..=MAX_PLUGINS).map(|at| plugin(at, 1, 0..at))).unwrap_err();
        assert_eq!(
            error.first().unwrap().to_string(),
            "65 plugins are loaded, but at most 64 are supported; remove some, or disable them in their PolicyPlugins"
        );
        assert_eq!(error.len(), 1);
    }
}
