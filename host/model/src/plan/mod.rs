//! The order in which plugins run. It follows from their claims, and is checked when a set of plugins is loaded.
//!
//! A plugin that reads a path runs after every plugin that writes it. A plugin that adds a container runs before those that access it. Two
//! plugins that write the same path conflict, unless an order is declared. Ties are broken by name. Only plugins that can be active
//! together are compared: members of one union are not, and neither are plugins that the operator or a manifest excludes from running together.
//!
//! A [`Candidate`] is a set of plugins with the errors of this check, and a [`Generation`] a set without errors. The plan of a TrainJob is the
//! order of its active plugins ([`Generation::plan`]), which a snapshot keeps with their configurations and settings ([`Plan`]).
//! [`crate::pipeline`] runs it.

mod candidate;
mod cycles;
mod digest;
mod error;
mod overview;
mod pair;
mod planned;
mod precedence;
mod remedies;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

pub use self::{
    candidate::Candidate,
    error::{PlanError, SharedPath, SharedPaths},
    overview::Slot,
    planned::{Plan, PlannedPlugin},
    remedies::WaysOut,
};
use self::{pair::Pair, precedence::Precedence};
use crate::{
    claims::{Variables, Verb},
    manifest::ActiveWhen,
    plugin_info::PluginInfo,
    record::Accelerators,
};

/// The most plugins that are loaded together. Every pair is checked.
pub const MAX_PLUGINS: usize = 64;

/// The most possible clashes of two plugins that are listed.
const MAX_CLASHES: usize = 16;

/// The most paths of a conflict that are listed.
const MAX_SHARED: usize = 32;

/// Why one plugin runs before another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeReason {
    /// The first writes or creates a path that the second reads.
    Path {
        /// The access of the first.
        first: Verb,
        /// The access of the second.
        then: Verb,
        /// The path as the second claims it.
        path: String,
    },
    /// The order is declared, in a manifest or a PolicyPlugin.
    Declared,
}

/// Two plugins in their order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The plugin that runs first.
    pub first: Arc<str>,
    /// The plugin that runs after it.
    pub then: Arc<str>,
    /// Why.
    pub because: EdgeReason,
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.because {
            EdgeReason::Path { first, path, .. } => {
                write!(
                    f,
                    "{} {first}s `{path}`, which {} depends on",
                    self.first, self.then
                )
            }
            EdgeReason::Declared => {
                write!(f, "{} is declared to run before {}", self.first, self.then)
            }
        }
    }
}

/// Two plugins that write the same path for certain values of variables. Only TrainJobs with such values are refused.
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
            "{} writes `{}` and {} writes `{}`; a TrainJob in which both are the same field is refused",
            self.first, self.first_path, self.second, self.second_path
        )
    }
}

/// A checked set of plugins: every selection that can be active together has an order.
#[derive(Debug)]
pub struct Generation {
    plugins: BTreeMap<Arc<str>, Arc<PluginInfo>>,
    edges: Vec<Edge>,
    precedence: Precedence,
    /// The pairs that write the same path for certain values of variables.
    uncertain: Vec<(Arc<str>, Arc<str>)>,
    /// The pairs that are excluded from running together.
    excluded: Vec<(Arc<str>, Arc<str>)>,
    preferred: Vec<Arc<str>>,
    /// What devices are counted from.
    accelerators: Accelerators,
}

impl Generation {
    /// Checks the plugins against each other, where the default resources are accelerators. With those of an operator, see
    /// [`Candidate::new`].
    ///
    /// # Errors
    /// Every conflict and every cycle; nothing else if there are more than [`MAX_PLUGINS`].
    pub fn new(plugins: impl IntoIterator<Item = Arc<PluginInfo>>) -> Result<Self, Vec<PlanError>> {
        Candidate::new(plugins, &Accelerators::default()).into_generation()
    }

    /// Breaks ties by this list instead of names. Tests use it to prove that every legal order has the same result.
    #[must_use]
    pub fn with_preference(mut self, names: impl IntoIterator<Item = Arc<str>>) -> Self {
        self.preferred = names.into_iter().collect();
        self
    }

    /// The plugins, by name.
    pub fn plugins(&self) -> impl Iterator<Item = &Arc<PluginInfo>> {
        self.plugins.values()
    }

    /// The plugin of that name.
    #[must_use]
    pub fn plugin(&self, name: &str) -> Option<&Arc<PluginInfo>> {
        self.plugins.get(name)
    }

    /// The edges that order the plugins.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Whether the order of the two is declared, in a manifest or a PolicyPlugin.
    #[must_use]
    pub fn is_declared(&self, a: &str, b: &str) -> bool {
        self.precedence.is_declared(a, b)
    }

    /// Whether the plugin has to run after one of the others.
    #[must_use]
    pub fn is_after_any(&self, name: &str, others: &BTreeSet<&str>) -> bool {
        self.precedence.is_after_any(name, others)
    }

    /// The pairs of plugins that the operator or a manifest excludes from running together, each sorted by name.
    #[must_use]
    pub fn excluded(&self) -> &[(Arc<str>, Arc<str>)] {
        &self.excluded
    }

    /// The order of the active plugins.
    ///
    /// # Errors
    /// Excluded pairs, and conflicts by the values of this TrainJob's variables.
    pub fn plan(
        &self,
        active: &BTreeMap<Arc<str>, Variables>,
    ) -> Result<Vec<Arc<PluginInfo>>, Vec<PlanError>> {
        let both =
            |(a, b): &&(Arc<str>, Arc<str>)| active.contains_key(a) && active.contains_key(b);
        let excluded = self.excluded.iter().filter(both);
        let excluded = excluded.map(|(first, second)| PlanError::Excluded {
            first: first.clone(),
            second: second.clone(),
            by: self.excluding(first, second),
        });
        let clashes = self.uncertain().filter_map(|pair| {
            let of = |plugin: &PluginInfo| active.get(&plugin.id.name);
            pair.clash(of(pair.a)?, of(pair.b)?)
        });
        let errors: Vec<_> = excluded.chain(clashes).collect();
        if !errors.is_empty() {
            return Err(errors);
        }
        let names: BTreeSet<&str> = active.keys().map(|name| &**name).collect();
        let order = self.sorted(&names);
        Ok(order
            .into_iter()
            .filter_map(|name| self.plugins.get(name).cloned())
            .collect())
    }

    /// The paths that two plugins both write for certain values of variables, at most 16 for each pair.
    #[must_use]
    pub fn possible_clashes(&self) -> Vec<PossibleClash> {
        self.uncertain()
            .flat_map(|pair| pair.possible_clashes().take(MAX_CLASHES))
            .collect()
    }

    /// The pairs that write the same path for certain values of variables.
    fn uncertain(&self) -> impl Iterator<Item = Pair<'_>> {
        let pairs = self.uncertain.iter();
        pairs.filter_map(|(a, b)| self.pair(self.plugin(a)?, self.plugin(b)?))
    }

    /// `None` if the two are never active together.
    fn pair<'a>(&'a self, a: &'a PluginInfo, b: &'a PluginInfo) -> Option<Pair<'a>> {
        pair::can_meet(a, b).then_some(Pair {
            a,
            b,
            accelerators: &self.accelerators,
        })
    }

    /// Returns how the operator can resolve that two loaded plugins change the same field.
    #[must_use]
    pub fn ways_out(&self, a: &str, b: &str) -> WaysOut {
        let pair = self.plugin(a).zip(self.plugin(b));
        let pair = pair.and_then(|(a, b)| self.pair(a, b));
        pair.map_or_else(WaysOut::default, Pair::ways_out)
    }

    /// Each pair of plugins that can be active together.
    fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        let plugins = self.plugins.values().enumerate();
        plugins.flat_map(|(at, a)| {
            let others = self.plugins.values().skip(at + 1);
            others.filter_map(|b| self.pair(a, b))
        })
    }

    /// Derives the edges of each pair, and returns the errors of pairs.
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
        self.excluded = self.kept_apart();
        errors.extend(self.always_excluded());
        self.precedence = Precedence::of(&edges);
        self.edges = edges;
        self.uncertain = uncertain;
        errors
    }

    /// The pairs that are excluded from running together.
    fn kept_apart(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let plugins = self.plugins.values().enumerate();
        let pairs = plugins.flat_map(|(at, a)| {
            let others = self.plugins.values().skip(at + 1);
            let excluded = others.filter(|b| pair::are_excluded(a, b));
            excluded.map(|b| (a.id.name.clone(), b.id.name.clone()))
        });
        pairs.collect()
    }

    /// The cycles among the plugins. Plugins that are not in or after a cycle are not searched.
    fn cycles(&self) -> Vec<PlanError> {
        let names: BTreeSet<&str> = self.plugins.keys().map(|name| &**name).collect();
        let in_order: BTreeSet<&str> = self.sorted(&names).into_iter().collect();
        let rest = self.plugins.iter();
        let rest: Vec<_> = rest
            .filter(|(name, _)| !in_order.contains(&***name))
            .collect();
        cycles::find(self, &rest)
    }

    /// Returns the one of two excluded plugins whose manifest excludes the other, if it is not a PolicyPlugin that does.
    #[must_use]
    pub fn excluding(&self, first: &str, second: &str) -> Option<Arc<str>> {
        let by = pair::excluding(self.plugin(first)?, self.plugin(second)?)?;
        Some(by.id.name.clone())
    }

    /// Excluded pairs that are both active for every TrainJob.
    fn always_excluded(&self) -> Vec<PlanError> {
        let is_always = |name: &str| {
            let plugin = self.plugin(name);
            plugin.is_some_and(|plugin| plugin.manifest.active_when == ActiveWhen::Always)
        };
        let pairs = self.excluded.iter();
        let pairs = pairs.filter(|(first, second)| is_always(first) && is_always(second));
        pairs
            .cloned()
            .map(|(first, second)| PlanError::AlwaysExcluded { first, second })
            .collect()
    }

    /// Pairs that are activated by the same key of a union.
    fn same_switches(&self) -> Vec<PlanError> {
        let mut seen: BTreeMap<&ActiveWhen, &Arc<str>> = BTreeMap::new();
        let mut errors = Vec::new();
        for plugin in self.plugins.values() {
            let when = &plugin.manifest.active_when;
            if let ActiveWhen::Key(..) = when
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

    /// The names in order. Ties are broken by name.
    fn sorted<'a>(&self, names: &BTreeSet<&'a str>) -> Vec<&'a str> {
        self.precedence.sorted(names, &self.preferred)
    }
}
