//! Why plugins cannot be loaded together, or cannot run for one TrainJob.

use std::{collections::BTreeSet, sync::Arc};

use thiserror::Error;

use super::{Edge, EdgeReason, MAX_PLUGINS, MAX_SHARED, WaysOut};
use crate::{
    claims::{ClaimPath, Verb},
    manifest::ActiveWhen,
};

/// Why a set of plugins cannot run together.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// Two plugins have the same name.
    #[error("two plugins have the name `{name}`; remove or rename one of them")]
    SameName {
        /// The name.
        name: Arc<str>,
    },
    /// More than [`MAX_PLUGINS`] are loaded.
    #[error("{} plugins are loaded, but at most {MAX_PLUGINS} are supported; remove some, or disable them in their PolicyPlugins", .plugins.len())]
    TooMany {
        /// Their names.
        plugins: Vec<Arc<str>>,
    },
    /// Two plugins write the same path.
    #[error(
        "plugins `{first}` and `{second}` both write {}; {}",
        shared.in_words(first, second),
        ways.of_author_or_operator()
    )]
    Conflict {
        /// One of them.
        first: Arc<str>,
        /// The other.
        second: Arc<str>,
        /// The paths that both write.
        shared: SharedPaths,
        /// What the operator can do.
        ways: WaysOut,
    },
    /// Two plugins define which pod sets are nodes.
    #[error(
        "plugins `{first}` and `{second}` both have `nodeSets`, but only one plugin can define which pods are the nodes; remove `nodeSets` from one of the manifests, activate both by `mlPolicy`, which has one member at a time, or {}",
        ways.in_words()
    )]
    NodeSets {
        /// One of them.
        first: Arc<str>,
        /// The other.
        second: Arc<str>,
        /// What the operator can do.
        ways: WaysOut,
    },
    /// Two plugins are activated by the same key.
    #[error(
        "plugins `{first}` and `{second}` are both activated by `{when}`, which can activate only one plugin; remove one of them, or {}",
        WaysOut::disabling([first, second]).in_words()
    )]
    SameSwitch {
        /// One of them.
        first: Arc<str>,
        /// The other.
        second: Arc<str>,
        /// What activates both.
        when: ActiveWhen,
    },
    /// Two plugins are active for one TrainJob, but this is excluded.
    #[error(
        "plugins `{first}` and `{second}` are both active for this TrainJob, but {}",
        excluded(by.as_deref())
    )]
    Excluded {
        /// One of them.
        first: Arc<str>,
        /// The other.
        second: Arc<str>,
        /// The plugin whose manifest excludes it, otherwise a PolicyPlugin does.
        by: Option<Arc<str>>,
    },
    /// Two plugins are active for every TrainJob, but exclude each other.
    #[error(
        "plugins `{first}` and `{second}` exclude each other, but both are active for every TrainJob (`always`), so none could run; remove the exclusion, or {}",
        WaysOut::disabling([first, second]).in_words()
    )]
    AlwaysExcluded {
        /// One of them.
        first: Arc<str>,
        /// The other.
        second: Arc<str>,
    },
    /// Each of these plugins must run before the next.
    #[error(
        "these plugins depend on each other in a cycle: {}; {}{}",
        .cycle.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        openings(cycle),
        ways.in_words()
    )]
    Cycle {
        /// The edges of the cycle, in order.
        cycle: Vec<Edge>,
        /// What the operator can do.
        ways: WaysOut,
    },
}

/// Who excludes two plugins from running together, and what to do.
fn excluded(by: Option<&str>) -> String {
    match by {
        Some(by) => format!("the manifest of `{by}` excludes the combination; disable one in the runtime, or have the operator order them by `after` in a PolicyPlugin"),
        None => "a PolicyPlugin excludes the combination; disable one in the runtime, or remove it from `excludes`".to_owned(),
    }
}

/// A path that two plugins write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPath {
    /// The path where the two claims overlap.
    pub place: String,
    /// What the first plugin claims.
    pub first_claim: String,
    /// What the second plugin claims.
    pub second_claim: String,
}

/// The paths that two plugins write, without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedPaths {
    /// The first ones, by the order of the claims.
    pub listed: Vec<SharedPath>,
    /// The number of paths that are not listed.
    pub more: usize,
}

impl SharedPaths {
    /// The paths where claims overlap. `None` if there are none.
    pub(super) fn of<'c>(
        meetings: impl Iterator<Item = (&'c ClaimPath, &'c ClaimPath, ClaimPath)>,
    ) -> Option<Self> {
        let mut seen = BTreeSet::new();
        let mut shared = Self::default();
        for (of_first, of_second, place) in meetings {
            if !seen.insert(place.clone()) {
                continue;
            }
            if shared.listed.len() == MAX_SHARED {
                shared.more += 1;
                continue;
            }
            shared.listed.push(SharedPath {
                place: place.to_string(),
                first_claim: of_first.to_string(),
                second_claim: of_second.to_string(),
            });
        }
        (!seen.is_empty()).then_some(shared)
    }

    fn in_words(&self, first: &str, second: &str) -> String {
        let mut words: Vec<_> = self
            .listed
            .iter()
            .map(|path| path.in_words(first, second))
            .collect();
        if self.more > 0 {
            words.push(format!("{} more paths", self.more));
        }
        match words.split_last() {
            Some((last, others)) if !others.is_empty() => {
                format!("{} and {last}", others.join(", "))
            }
            _ => words.concat(),
        }
    }
}

impl SharedPath {
    /// The path, with each claim that differs from it.
    fn in_words(&self, first: &str, second: &str) -> String {
        let claims = [(first, &self.first_claim), (second, &self.second_claim)];
        let claims = claims
            .into_iter()
            .filter(|(_, claim)| **claim != self.place);
        let claims: Vec<_> = claims
            .map(|(name, claim)| format!("`{name}` claims `{claim}`"))
            .collect();
        match &claims[..] {
            [] => format!("`{}`", self.place),
            claims => format!("`{}` ({})", self.place, claims.join(", ")),
        }
    }
}

/// How the authors of the plugins can break the cycle, each followed by a comma or "or".
fn openings(cycle: &[Edge]) -> String {
    let is_read = |edge: &Edge| {
        matches!(
            edge.because,
            EdgeReason::Path {
                then: Verb::Read,
                ..
            }
        )
    };
    let is_declared = |edge: &Edge| edge.because == EdgeReason::Declared;
    let ways = [
        (
            cycle.iter().any(is_read),
            "read from the base record (`context.base`), which needs no claim",
        ),
        (
            cycle.iter().any(is_declared),
            "remove or reverse a declared order",
        ),
    ];
    let ways = ways.into_iter().filter(|(works, _)| *works);
    let ways: Vec<_> = ways.map(|(_, way)| way).collect();
    match ways[..] {
        [] => String::new(),
        _ => format!("{}, or ", ways.join(", ")),
    }
}

impl PlanError {
    /// The plugins that it names. Without any one of them, the error would not occur.
    #[must_use]
    pub fn plugins(&self) -> Vec<&str> {
        match self {
            Self::SameName { name } => vec![name],
            Self::TooMany { plugins } => plugins.iter().map(|name| &**name).collect(),
            Self::Conflict { first, second, .. }
            | Self::NodeSets { first, second, .. }
            | Self::Excluded { first, second, .. }
            | Self::AlwaysExcluded { first, second }
            | Self::SameSwitch { first, second, .. } => vec![first, second],
            Self::Cycle { cycle, .. } => cycle.iter().map(|edge| &*edge.first).collect(),
        }
    }
}
