//! The order in which plugins run: declared by claims, checked when a set of plugins is loaded.
//!
//! Who reads a path runs after everyone who writes it; the creator of a container runs before those that touch it; two
//! that write one path are a conflict unless one of them says `after`; ties go by name. Only plugins that can be active
//! together count: the members of one union never are.

mod cycles;
mod pair;
mod precedence;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use thiserror::Error;

use self::{pair::Pair, precedence::Precedence};
use crate::{
    claims::{Touch, Variables},
    manifest::ActiveWhen,
    plugin::Plugin,
};

/// The most plugins that are loaded together. Each is checked against each other one.
pub const MAX_PLUGINS: usize = 64;

/// The most possible clashes of two plugins that are listed.
const MAX_CLASHES: usize = 16;

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
    /// There are more plugins than a generation has.
    #[error("{} plugins are loaded, but at most {MAX_PLUGINS} can be; exclude some", .plugins.len())]
    TooMany {
        /// Their names.
        plugins: Vec<Arc<str>>,
    },
    /// Two plugins write one path.
    #[error(
        "plugins `{first}` and `{second}` both write `{place}` (`{first}` claims `{first_claim}`, `{second}` claims `{second_claim}`): declare `after` in the manifest of one, set it in the policy file, or exclude one"
    )]
    Conflict {
        /// One of them.
        first: Arc<str>,
        /// Its claim.
        first_claim: String,
        /// The other.
        second: Arc<str>,
        /// The claim of that one.
        second_claim: String,
        /// Where the two claims meet.
        place: String,
    },
    /// Two plugins say which pod sets are nodes.
    #[error(
        "plugins `{first}` and `{second}` both have `nodeSets`, but `numNodes` counts the pod sets of one plugin: take them out of one manifest, switch both on by `mlPolicy`, which has one member at a time, or exclude one"
    )]
    NodeSets {
        /// One of them.
        first: Arc<str>,
        /// The other.
        second: Arc<str>,
    },
    /// Two plugins are switched on by one key.
    #[error(
        "plugins `{first}` and `{second}` are both switched on by `{when}`, which means one plugin: exclude one"
    )]
    SameSwitch {
        /// One of them.
        first: Arc<str>,
        /// The other.
        second: Arc<str>,
        /// What switches both on.
        when: ActiveWhen,
    },
    /// Each of some plugins has to run before the next.
    #[error(
        "these plugins depend on each other in a cycle: {}; {}, or exclude one",
        .cycle.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        ways_out(cycle)
    )]
    Cycle {
        /// The edges of the cycle, in turn.
        cycle: Vec<Edge>,
    },
}

/// What opens a cycle, beside leaving a plugin out.
fn ways_out(cycle: &[Edge]) -> String {
    let declared = cycle
        .iter()
        .filter(|edge| edge.because == Because::Declared);
    let declared = declared.count();
    let mut ways = Vec::new();
    if declared < cycle.len() {
        ways.push("read from the base record (`context.base`), which needs no claim");
    }
    if declared == 0 {
        ways.push("declare `after` between two that both write, or both add containers, there");
    } else {
        ways.push("take a declared order back");
    }
    ways.join(", ")
}

impl PlanError {
    /// The plugins that it names: without one of them it would be gone.
    #[must_use]
    pub fn plugins(&self) -> Vec<&str> {
        match self {
            Self::SameName { name } => vec![name],
            Self::TooMany { plugins } => plugins.iter().map(|name| &**name).collect(),
            Self::Conflict { first, second, .. }
            | Self::NodeSets { first, second }
            | Self::SameSwitch { first, second, .. } => vec![first, second],
            Self::Cycle { cycle } => cycle.iter().map(|edge| &*edge.first).collect(),
        }
    }
}

/// Two plugins that write one path if the values of some TrainJob's variables make it one: such a TrainJob is refused, and
/// no other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PossibleClash {
    /// One of them.
    pub first: Arc<str>,
    /// The path as it claims it.
    pub first_path: String,
    /// The other.
    pub second: Arc<str>,
    /// The path as that one claims it.
    pub second_path: String,
}

impl fmt::Display for PossibleClash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} writes `{}`, {} writes `{}`: a TrainJob for which they are one place is refused",
            self.first, self.first_path, self.second, self.second_path
        )
    }
}

/// A set of plugins that was checked: every selection of it that can be active together has an order.
#[derive(Debug)]
pub struct Generation {
    plugins: BTreeMap<Arc<str>, Arc<Plugin>>,
    edges: Vec<Edge>,
    precedence: Precedence,
    /// The pairs that write one path if a TrainJob's own values make it one.
    uncertain: Vec<(Arc<str>, Arc<str>)>,
    preferred: Vec<Arc<str>>,
}

impl Generation {
    /// Checks the plugins against each other.
    ///
    /// # Errors
    /// Every conflict and every cycle; nothing else if there are more than [`MAX_PLUGINS`].
    pub fn new(plugins: impl IntoIterator<Item = Arc<Plugin>>) -> Result<Self, Vec<PlanError>> {
        let mut by_name = BTreeMap::new();
        let mut errors = Vec::new();
        for plugin in plugins {
            let name = plugin.id.name.clone();
            if by_name.insert(name.clone(), plugin).is_some() {
                errors.push(PlanError::SameName { name });
            }
        }
        if by_name.len() > MAX_PLUGINS {
            let plugins = by_name.into_keys().collect();
            return Err(vec![PlanError::TooMany { plugins }]);
        }
        let mut generation = Self {
            plugins: by_name,
            edges: Vec::new(),
            precedence: Precedence::default(),
            uncertain: Vec::new(),
            preferred: Vec::new(),
        };
        errors.extend(generation.connect());
        errors.extend(generation.cycles());
        if errors.is_empty() {
            Ok(generation)
        } else {
            Err(errors)
        }
    }

    /// The same with ties going by this list in place of names. Every legal order can be had so, and a TrainJob becomes the same
    /// in each of them: what tests of that guarantee need.
    #[must_use]
    pub fn preferring(mut self, names: impl IntoIterator<Item = Arc<str>>) -> Self {
        self.preferred = names.into_iter().collect();
        self
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

    /// Whether a manifest or the policy file says which of the two runs first.
    #[must_use]
    pub fn is_declared(&self, a: &str, b: &str) -> bool {
        self.precedence.is_declared(a, b)
    }

    /// Whether the plugin has to run after one of the others.
    #[must_use]
    pub fn is_after_any(&self, name: &str, others: &BTreeSet<&str>) -> bool {
        self.precedence.is_after_any(name, others)
    }

    /// The order of the active plugins.
    ///
    /// # Errors
    /// A clash that this TrainJob's own values make.
    pub fn plan(
        &self,
        active: &BTreeMap<Arc<str>, Variables>,
    ) -> Result<Vec<Arc<Plugin>>, Vec<PlanError>> {
        let clashes: Vec<_> = self
            .uncertain()
            .filter_map(|pair| {
                let of = |plugin: &Plugin| active.get(&plugin.id.name);
                pair.clash(of(pair.a)?, of(pair.b)?)
            })
            .collect();
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

    /// The paths that two plugins both write if a TrainJob's own values make them one; 16 of each two plugins at most.
    #[must_use]
    pub fn possible_clashes(&self) -> Vec<PossibleClash> {
        self.uncertain()
            .flat_map(|pair| pair.possible_clashes().take(MAX_CLASHES))
            .collect()
    }

    /// The pairs that write one path if a TrainJob's own values make it one.
    fn uncertain(&self) -> impl Iterator<Item = Pair<'_>> {
        let pairs = self.uncertain.iter();
        pairs.filter_map(|(a, b)| Pair::of(self.plugin(a)?, self.plugin(b)?))
    }

    /// Each pair of plugins that can be active together.
    fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        let plugins = self.plugins.values().enumerate();
        plugins.flat_map(|(at, a)| {
            let others = self.plugins.values().skip(at + 1);
            others.filter_map(|b| Pair::of(a, b))
        })
    }

    /// Derives the edges of each pair; returns what is wrong with pairs.
    fn connect(&mut self) -> Vec<PlanError> {
        let mut errors = Vec::new();
        let mut edges = Vec::new();
        let mut uncertain = Vec::new();
        for pair in self.pairs() {
            errors.extend(pair.shared_write());
            errors.extend(pair.node_sets());
            edges.extend(pair.edges());
            if pair.possible_clashes().next().is_some() {
                uncertain.push((pair.a.id.name.clone(), pair.b.id.name.clone()));
            }
        }
        errors.extend(self.same_switches());
        self.precedence = Precedence::of(&edges);
        self.edges = edges;
        self.uncertain = uncertain;
        errors
    }

    /// The cycles among the plugins. What is in none and after none is not searched.
    fn cycles(&self) -> Vec<PlanError> {
        let names: BTreeSet<&str> = self.plugins.keys().map(|name| &**name).collect();
        let in_order: BTreeSet<&str> = self.sorted(&names).into_iter().collect();
        let rest = self.plugins.iter();
        let rest: Vec<_> = rest
            .filter(|(name, _)| !in_order.contains(&***name))
            .collect();
        cycles::find(&rest, &self.edges)
    }

    /// A key of a union means one plugin.
    fn same_switches(&self) -> Vec<PlanError> {
        let mut seen: BTreeMap<&ActiveWhen, &Arc<str>> = BTreeMap::new();
        let mut errors = Vec::new();
        for plugin in self.plugins.values() {
            let when = &plugin.manifest.active_when;
            if let ActiveWhen::MlPolicy(_) | ActiveWhen::PodGroupPolicy(_) = when
                && let Some(first) = seen.insert(when, &plugin.id.name)
            {
                errors.push(PlanError::SameSwitch {
                    first: first.clone(),
                    second: plugin.id.name.clone(),
                    when: when.clone(),
                });
            }
        }
        errors
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

    /// The names in order, the smallest one first wherever the edges leave a choice.
    fn sorted<'a>(&self, names: &BTreeSet<&'a str>) -> Vec<&'a str> {
        self.precedence.sorted(names, &self.preferred)
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
