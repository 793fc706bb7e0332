//! The order in which plugins run: declared by claims, checked when a set of plugins is loaded.
//!
//! Who reads a path runs after everyone who writes it; the creator of a container runs before those that touch it; two
//! that write one path are a conflict unless one of them says `after`; ties go by name. Only plugins that can be active
//! together count: the members of one union never are.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use thiserror::Error;

use crate::{
    claims::{ClaimPath, Key, Scope, Touch, Variables},
    manifest::ActiveWhen,
    plugin::Plugin,
    record::Field,
};

/// Why one plugin runs before another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Because {
    /// The first writes or creates what the second reads.
    Path {
        /// What the first does.
        first: Touch,
        /// The path as the second claims it.
        path: String,
    },
    /// A manifest or the policy file says so.
    Declared,
}

/// Two plugins in their order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// Who runs first.
    pub first: Arc<str>,
    /// Who runs after it.
    pub then: Arc<str>,
    /// Why.
    pub because: Because,
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.because {
            Because::Path { first, path } => {
                write!(
                    f,
                    "{} {first}s what {} touches at `{path}`",
                    self.first, self.then
                )
            }
            Because::Declared => {
                write!(f, "{} is declared to run before {}", self.first, self.then)
            }
        }
    }
}

/// Why a set of plugins can't run together.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// Two plugins of one name.
    #[error("two plugins have the name `{name}`; exclude one, or give one of them another name")]
    SameName {
        /// The name.
        name: Arc<str>,
    },
    /// Two plugins write one path.
    #[error(
        "plugins `{first}` and `{second}` both write `{path}`: declare `after` in the manifest of one, set it in the policy file, or exclude one"
    )]
    Conflict {
        /// One of them.
        first: Arc<str>,
        /// The other.
        second: Arc<str>,
        /// The path, as the first claims it.
        path: String,
    },
    /// Each of some plugins has to run before the next.
    #[error("these plugins have no order: {}", .cycle.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Cycle {
        /// The edges of the cycle, in turn.
        cycle: Vec<Edge>,
    },
}

/// A set of plugins that was checked: every selection of it that can be active together has an order.
#[derive(Debug)]
pub struct Generation {
    plugins: BTreeMap<Arc<str>, Arc<Plugin>>,
    edges: Vec<Edge>,
}

impl Generation {
    /// Checks the plugins against each other.
    ///
    /// # Errors
    /// Every conflict and every cycle.
    pub fn new(plugins: impl IntoIterator<Item = Arc<Plugin>>) -> Result<Self, Vec<PlanError>> {
        let mut by_name = BTreeMap::new();
        let mut errors = Vec::new();
        for plugin in plugins {
            let name = plugin.id.name.clone();
            if by_name.insert(name.clone(), plugin).is_some() {
                errors.push(PlanError::SameName { name });
            }
        }
        let mut generation = Self {
            plugins: by_name,
            edges: Vec::new(),
        };
        errors.extend(generation.connect());
        errors.extend(generation.cycles());
        if errors.is_empty() {
            Ok(generation)
        } else {
            Err(errors)
        }
    }

    /// The plugins, by name.
    pub fn plugins(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.plugins.values()
    }

    /// The plugin of that name.
    #[must_use]
    pub fn plugin(&self, name: &str) -> Option<&Arc<Plugin>> {
        self.plugins.get(name)
    }

    /// What orders the plugins.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The order of the active plugins.
    ///
    /// # Errors
    /// A clash that this TrainJob's own values make.
    pub fn plan(
        &self,
        active: &BTreeMap<Arc<str>, Variables>,
    ) -> Result<Vec<Arc<Plugin>>, Vec<PlanError>> {
        let clashes = self.clashes(active);
        if !clashes.is_empty() {
            return Err(clashes);
        }
        let names: BTreeSet<&str> = active.keys().map(|name| &**name).collect();
        let order = self.sorted(&names);
        Ok(order
            .into_iter()
            .filter_map(|name| self.plugins.get(name).cloned())
            .collect())
    }

    /// The orders of all that can be active: one list for each member of `mlPolicy` that has an order of its own, with
    /// the members that share it side by side.
    #[must_use]
    pub fn overview(&self) -> Vec<Vec<Slot>> {
        let in_ml_policy =
            |plugin: &Plugin| plugin.manifest.active_when.union() == Some("mlPolicy");
        let (members, others): (Vec<_>, Vec<_>) = self
            .plugins
            .values()
            .partition(|plugin| in_ml_policy(plugin));
        let others: BTreeSet<&str> = others.iter().map(|plugin| &*plugin.id.name).collect();
        if members.is_empty() {
            return vec![self.slots(&others, None)];
        }
        let mut lines: Vec<Vec<Slot>> = Vec::new();
        for member in members {
            let name = &*member.id.name;
            let with: BTreeSet<&str> = others.iter().copied().chain([name]).collect();
            let line = self.slots(&with, Some(name));
            let same = lines.iter_mut().find(|other| {
                other.len() == line.len()
                    && other
                        .iter()
                        .zip(&line)
                        .all(|(a, b)| a == b || (a.is_ml && b.is_ml))
            });
            match same {
                Some(line) => line
                    .iter_mut()
                    .filter(|slot| slot.is_ml)
                    .for_each(|slot| slot.names.push(name.into())),
                None => lines.push(line),
            }
        }
        lines
    }

    fn slots(&self, names: &BTreeSet<&str>, member: Option<&str>) -> Vec<Slot> {
        let slot = |name: &str| Slot {
            names: vec![name.into()],
            is_ml: Some(name) == member,
            when: self
                .plugins
                .get(name)
                .map(|p| p.manifest.active_when.clone())
                .unwrap_or(ActiveWhen::Always),
        };
        self.sorted(names).into_iter().map(slot).collect()
    }

    /// Derives the edges of each pair that can be active together; returns the conflicts.
    fn connect(&mut self) -> Vec<PlanError> {
        let plugins: Vec<_> = self.plugins.values().cloned().collect();
        let mut conflicts = Vec::new();
        for (at, a) in plugins.iter().enumerate() {
            for b in plugins.iter().skip(at + 1).filter(|b| can_meet(a, b)) {
                let declared = declared_order(a, b);
                match (shared_write(a, b), &declared) {
                    (Some(_), Some(edge)) => {
                        self.edges.push(edge.clone());
                        continue;
                    }
                    (Some(path), None) => conflicts.push(PlanError::Conflict {
                        first: a.id.name.clone(),
                        second: b.id.name.clone(),
                        path: path.to_string(),
                    }),
                    (None, _) => {}
                }
                self.edges.extend(derived_order(a, b));
                self.edges.extend(derived_order(b, a));
                self.edges.extend(declared);
            }
        }
        conflicts
    }

    /// Clashes of claims that name variables, by this job's values.
    fn clashes(&self, active: &BTreeMap<Arc<str>, Variables>) -> Vec<PlanError> {
        let plugins: Vec<_> = active
            .iter()
            .filter_map(|(name, vars)| Some((self.plugins.get(name)?, vars)))
            .collect();
        let mut clashes = Vec::new();
        for (at, (a, va)) in plugins.iter().enumerate() {
            for (b, vb) in plugins.iter().skip(at + 1) {
                let resolved = |path: &ClaimPath, other: &ClaimPath| {
                    (has_variable(path) || has_variable(other))
                        && resolve(path, va).overlaps(&resolve(other, vb))
                };
                if declared_order(a, b).is_none()
                    && let Some(path) = writes_of(a).find_map(|(_, x)| {
                        writes_of(b)
                            .any(|(_, y)| resolved(x, y))
                            .then(|| resolve(x, va).to_string())
                    })
                {
                    clashes.push(PlanError::Conflict {
                        first: a.id.name.clone(),
                        second: b.id.name.clone(),
                        path,
                    });
                }
            }
        }
        clashes
    }

    /// Every cycle that can come up: among plugins of which no two are of one union.
    fn cycles(&self) -> Vec<PlanError> {
        let names: Vec<&str> = self.plugins.keys().map(|name| &**name).collect();
        let mut found: BTreeMap<BTreeSet<Arc<str>>, Vec<Edge>> = BTreeMap::new();
        for start in names {
            if let Some(cycle) = self.cycle_through(start) {
                found
                    .entry(cycle.iter().map(|edge| edge.first.clone()).collect())
                    .or_insert(cycle);
            }
        }
        found
            .into_values()
            .map(|cycle| PlanError::Cycle { cycle })
            .collect()
    }

    /// The first cycle through a plugin, by depth-first search over simple paths of plugins that can all meet.
    fn cycle_through(&self, start: &str) -> Option<Vec<Edge>> {
        let mut path: Vec<&Edge> = Vec::new();
        let mut choices: Vec<Vec<&Edge>> = vec![self.edges_from(start)];
        while let Some(next) = choices.last_mut() {
            let Some(edge) = next.pop() else {
                choices.pop();
                path.pop();
                continue;
            };
            if *edge.then == *start {
                return Some(path.into_iter().chain([edge]).cloned().collect());
            }
            let meets_all = path
                .iter()
                .map(|e| &e.first)
                .chain([&edge.first])
                .all(|name| {
                    *name != edge.then
                        && match (self.plugins.get(name), self.plugins.get(&edge.then)) {
                            (Some(a), Some(b)) => can_meet(a, b),
                            _ => false,
                        }
                });
            // A cycle is found from its first name; later names need not go there again.
            if meets_all && *edge.then > *start {
                path.push(edge);
                choices.push(self.edges_from(&edge.then));
            }
        }
        None
    }

    fn edges_from(&self, name: &str) -> Vec<&Edge> {
        self.edges
            .iter()
            .filter(|edge| *edge.first == *name)
            .collect()
    }

    /// The names in order, the smallest one first wherever the edges leave a choice.
    fn sorted<'a>(&self, names: &BTreeSet<&'a str>) -> Vec<&'a str> {
        let mut waiting: BTreeSet<&str> = names.clone();
        let mut out = Vec::with_capacity(names.len());
        while !waiting.is_empty() {
            let ready = names.iter().copied().find(|name| {
                waiting.contains(name)
                    && !self
                        .edges
                        .iter()
                        .any(|edge| *edge.then == **name && waiting.contains(&*edge.first))
            });
            // No generation with a cycle gets here.
            let Some(next) = ready else { break };
            waiting.remove(next);
            out.push(next);
        }
        out
    }
}

/// A place in [`Generation::overview`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The plugin, or members of `mlPolicy` that stand in for each other.
    pub names: Vec<Arc<str>>,
    /// What switches the first of them on.
    pub when: ActiveWhen,
    is_ml: bool,
}

impl Slot {
    /// The place of one plugin.
    #[must_use]
    pub fn of(plugin: &Plugin) -> Self {
        Self {
            names: vec![plugin.id.name.clone()],
            when: plugin.manifest.active_when.clone(),
            is_ml: false,
        }
    }
}

/// Whether two plugins can be active for one TrainJob.
fn can_meet(a: &Plugin, b: &Plugin) -> bool {
    let union = a.manifest.active_when.union();
    union.is_none() || union != b.manifest.active_when.union()
}

/// What a plugin creates and writes.
fn writes_of(plugin: &Plugin) -> impl Iterator<Item = (Touch, &ClaimPath)> {
    plugin
        .manifest
        .claims
        .iter()
        .filter(|(touch, _)| *touch != Touch::Read)
}

/// A path that both write, other than by a variable.
fn shared_write<'a>(a: &'a Plugin, b: &Plugin) -> Option<&'a ClaimPath> {
    writes_of(a)
        .map(|(_, path)| path)
        .find(|x| writes_of(b).any(|(_, y)| x.overlaps(y) && !has_variable(x) && !has_variable(y)))
}

/// The edges of `first` before `then` that claims make.
fn derived_order(first: &Plugin, then: &Plugin) -> Vec<Edge> {
    let edge = |touch, path: &ClaimPath| Edge {
        first: first.id.name.clone(),
        then: then.id.name.clone(),
        because: Because::Path {
            first: touch,
            path: path.to_string(),
        },
    };
    let in_transform =
        |path: &ClaimPath| !matches!(path.field, Field::JobSpec | Field::Lookups | Field::Objects);
    let theirs = || {
        then.manifest
            .claims
            .iter()
            .filter(|(_, path)| in_transform(path))
    };
    writes_of(first)
        .filter(|(_, path)| in_transform(path))
        .filter_map(|(touch, made)| {
            let seen = theirs().find(|(their_touch, path)| match touch {
                Touch::Create => made.creates_around(path) && *their_touch != Touch::Create,
                _ => *their_touch == Touch::Read && path.sees_write(made),
            })?;
            Some(edge(touch, seen.1))
        })
        .take(1)
        .collect()
}

/// The order that `after` or `before` declares for a pair.
fn declared_order(a: &Plugin, b: &Plugin) -> Option<Edge> {
    let names =
        |list: &[String], more: &[String], name: &str| list.iter().chain(more).any(|n| n == name);
    let runs_after = |x: &Plugin, y: &Plugin| {
        names(&x.manifest.after, &x.settings.after, &y.id.name)
            || names(&y.manifest.before, &y.settings.before, &x.id.name)
    };
    let edge = |first: &Plugin, then: &Plugin| Edge {
        first: first.id.name.clone(),
        then: then.id.name.clone(),
        because: Because::Declared,
    };
    match (runs_after(a, b), runs_after(b, a)) {
        (true, false) => Some(edge(b, a)),
        (false, true) => Some(edge(a, b)),
        _ => None,
    }
}

fn keys_of(path: &ClaimPath) -> impl Iterator<Item = &Key> {
    let name = match &path.scope {
        Scope::Container { name, .. } => Some(name),
        _ => None,
    };
    path.key.iter().chain(name)
}

fn has_variable(path: &ClaimPath) -> bool {
    keys_of(path).any(|key| matches!(key, Key::Variable(_)))
}

/// The path with this job's values; a variable without one keeps meaning anything.
fn resolve(path: &ClaimPath, variables: &Variables) -> ClaimPath {
    let literal = |key: &mut Key| {
        if let Key::Variable(variable) = key
            && let Some(value) = variables.value(variable)
        {
            *key = Key::Literal(value.into());
        }
    };
    let mut out = path.clone();
    out.key.iter_mut().for_each(literal);
    if let Scope::Container { name, .. } = &mut out.scope {
        literal(name);
    }
    out
}
