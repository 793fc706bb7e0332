//! The one trait through which policies run, and how a call of one ends.

use std::sync::Arc;

use thiserror::Error;

use crate::{
    call::{Call, Fault, Faulted},
    lookup::LookupKey,
    plugin::Plugin,
    value::Failure,
};
pub use crate::{limits::Limit, phase::Phase};

/// A plugin that can be called.
pub trait Policy: Send + Sync {
    /// Who it is, and what it may do.
    fn plugin(&self) -> &Arc<Plugin>;

    /// Loads the plugin's code, if that is deferred until the first call. A call does it too.
    fn prepare(&self) {}

    /// Calls one phase, with nothing left of any call before. Whether the call's writes count is not decided here.
    fn run(&self, phase: Phase, call: Box<Call>) -> CallOutcome;
}

/// A call that has ended, with its journal.
#[derive(Debug)]
pub struct CallOutcome {
    /// The call, as the plugin left it.
    pub call: Box<Call>,
    /// How it ended.
    pub end: Result<(), CallFailure>,
    /// Instructions that it used; none where nobody counts them.
    pub fuel: Option<u64>,
}

/// Why a call counts for nothing.
#[derive(Debug, Error)]
pub enum CallFailure {
    /// The plugin refused the TrainJob.
    #[error("{0}")]
    Refused(Failure),
    /// The plugin broke a rule of the contract, and the host ended the call.
    #[error(transparent)]
    Broke(Faulted),
    /// The plugin crashed.
    #[error("crashed: {kind}{}", message.as_ref().map(|m| format!(": {m}")).unwrap_or_default())]
    Trap {
        /// What went wrong, by the sandbox's own words.
        kind: String,
        /// What its panic said, cleaned.
        message: Option<String>,
    },
    /// The plugin's code does not load, so nothing of it was called.
    #[error("its code does not load: {0}")]
    NotLoaded(String),
    /// A limit ran out.
    #[error(
        "{}{}",
        method.map(|method| format!("`{method}`: ")).unwrap_or_default(),
        limit.used_up()
    )]
    Limit {
        /// Which one, and how much it allows.
        limit: Limit,
        /// The contract's method in which it ran out; none where it ran out between two.
        method: Option<&'static str>,
    },
    /// The plugin asked for an object that is not at hand: the call is made again once it is.
    #[error("it needs {0}")]
    Missing(LookupKey),
    /// The host was too busy: the same call may go well later. Never the plugin's fault alone, and no result to keep.
    #[error("{0}")]
    Busy(Busy),
}

impl CallFailure {
    /// A limit that ran out between two calls of the contract's methods.
    #[must_use]
    pub const fn limit(limit: Limit) -> Self {
        Self::Limit {
            limit,
            method: None,
        }
    }

    /// Whether the same inputs may go well later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Busy(_))
    }

    /// Whether the same call may go well at once. Not where calls are refused for a while.
    #[must_use]
    pub const fn is_worth_another_call(&self) -> bool {
        matches!(self, Self::Busy(Busy::WallClock(_) | Busy::Pool))
    }

    /// Whether the call used up its time or its instructions: a thread was held for as long as may be.
    #[must_use]
    pub const fn is_exhausted(&self) -> bool {
        matches!(
            self,
            Self::Busy(Busy::WallClock(_))
                | Self::Limit {
                    limit: Limit::Fuel(_),
                    ..
                }
        )
    }

    /// Whether the same call is going to be made again: nothing that it said counts.
    #[must_use]
    pub const fn is_made_again(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::Missing(_))
    }

    /// One word for it, as a metric's label: `refused`, `broke`, `trap`, `load`, `limit`, `missing`, `busy` or `open`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Broke(_) => "broke",
            Self::Trap { .. } => "trap",
            Self::NotLoaded(_) => "load",
            Self::Limit { .. } => "limit",
            Self::Missing(_) => "missing",
            Self::Busy(Busy::Open { .. }) => "open",
            Self::Busy(_) => "busy",
        }
    }
}

impl From<Faulted> for CallFailure {
    fn from(Faulted { method, fault }: Faulted) -> Self {
        match fault {
            Fault::Limit(limit) => Self::Limit { limit, method },
            Fault::Missing(key) => Self::Missing(key),
            fault => Self::Broke(Faulted { method, fault }),
        }
    }
}

impl From<Fault> for CallFailure {
    fn from(fault: Fault) -> Self {
        Faulted::from(fault).into()
    }
}

/// The host's load, which has nothing to do with what the plugin computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Busy {
    /// The wall-clock backstop rang.
    #[error(
        "did not end within {0} ms of wall-clock time: it loops, or the machine is busy; `limits.wallClockMs` in the policy file raises it"
    )]
    WallClock(u64),
    /// No instance was free.
    #[error("no sandbox instance is free")]
    Pool,
    /// The plugin used up its time or instructions again and again, and is not called for a while.
    #[error(
        "is not called for TrainJobs of this namespace for a while: {calls} of its calls used up their time or instructions within {within} s; see the metric trainyard_plugin_errors_total, and raise `limits.wallClockMs` or `limits.fuel` in the policy file if the plugin needs more"
    )]
    Open {
        /// How many calls used them up.
        calls: usize,
        /// Within how many seconds.
        within: u64,
    },
}
