//! What keeps plugins from being loaded together, or from running for one TrainJob.

use std::sync::Arc;

use thiserror::Error;

use super::{Because, Edge, MAX_PLUGINS};
use crate::manifest::ActiveWhen;

/// Why a set of plugins can't run together.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// Two plugins of one name.
    #[error("two plugins have the name `{name}`; leave one out, or give one of them another name")]
    SameName {
        /// The name.
        name: Arc<str>,
    },
    /// There are more plugins than a generation has.
    #[error("{} plugins are loaded, but at most {MAX_PLUGINS} can be; leave some out, or disable them in the policy file", .plugins.len())]
    TooMany {
        /// Their names.
        plugins: Vec<Arc<str>>,
    },
    /// Two plugins write one path.
    #[error(
        "plugins `{first}` and `{second}` both write `{place}` (`{first}` claims `{first_claim}`, `{second}` claims `{second_claim}`): declare `after` in the manifest of one, or set `after`, `excludes` or `disabled` for one in the policy file"
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
        "plugins `{first}` and `{second}` both have `nodeSets`, but `numNodes` counts the pod sets of one plugin: take them out of one manifest, switch both on by `mlPolicy`, which has one member at a time, or set `excludes` or `disabled` for one in the policy file"
    )]
    NodeSets {
        /// One of them.
        first: Arc<str>,
        /// The other.
        second: Arc<str>,
    },
    /// Two plugins are switched on by one key.
    #[error(
        "plugins `{first}` and `{second}` are both switched on by `{when}`, which means one plugin: leave one out, or disable it in the policy file"
    )]
    SameSwitch {
        /// One of them.
        first: Arc<str>,
        /// The other.
        second: Arc<str>,
        /// What switches both on.
        when: ActiveWhen,
    },
    /// Two plugins are active for one TrainJob, and the operator keeps them apart.
    #[error(
        "plugins `{first}` and `{second}` are both active, and the policy file excludes one where the other is: switch one off in the runtime, or take it out of `excludes`"
    )]
    Excluded {
        /// One of them.
        first: Arc<str>,
        /// The other.
        second: Arc<str>,
    },
    /// Each of some plugins has to run before the next.
    #[error(
        "these plugins depend on each other in a cycle: {}; {}, or set `excludes` or `disabled` for one in the policy file",
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
            | Self::Excluded { first, second }
            | Self::SameSwitch { first, second, .. } => vec![first, second],
            Self::Cycle { cycle } => cycle.iter().map(|edge| &*edge.first).collect(),
        }
    }
}
