//! The trait that every plugin implements, and how a call ends.
//!
//! [`CallOutcome`] is a call that has ended. What it did is [`CallEffects`](crate::call::CallEffects), which is kept if the call succeeded.
//! The errors, each made from those above it:
//!
//! | type | what it is | returned by |
//! |---|---|---|
//! | [`Failure`] | what is wrong with the TrainJob or its runtime, in the plugin's words | the plugin |
//! | [`Fault`] | why the host ends a call, such as a missing claim | the methods of [`Call`] |
//! | [`Faulted`] | a fault, with the name of the method | the callers of these methods |
//! | [`CallFailure`] | a failure, a fault, a trap, or a busy host ([`Busy`]) | [`Plugin::run`] |
//! | `CallError` | a call failure, with the plugin and the phase | `Session::call` |
//! | `Diagnostic` | a failure that did not end the call, with the plugin and the phase | `Session::errors` |
//! | `PhaseError` | a call error, a diagnostic, or a limit of the whole TrainJob | in `Stopped` |
//! | `Stopped` | all errors of a phase, and the lookups that have no answer yet | `Pipeline::run` |

use std::sync::Arc;

use thiserror::Error;

use crate::{
    call::{Call, Fault, Faulted},
    lookup::LookupKey,
    plugin_info::PluginInfo,
    value::Failure,
};
pub use crate::{limits::Limit, phase::Phase};

/// A plugin that can be called: a sandboxed component, or native code.
pub trait Plugin: Send + Sync {
    /// Returns its identity, manifest and settings.
    fn info(&self) -> &Arc<PluginInfo>;

    /// Loads the plugin's code, if loading was deferred until the first call.
    fn prepare(&self) {}

    /// Calls one phase, in a fresh state. The caller decides whether the writes are committed.
    fn run(&self, phase: Phase, call: Box<Call>) -> CallOutcome;
}

/// A call that has ended, with its writes.
#[derive(Debug)]
pub struct CallOutcome {
    /// The call, as the plugin left it.
    pub call: Box<Call>,
    /// How it ended.
    pub end: Result<(), CallFailure>,
    /// The fuel that it used. `None` if fuel is not counted, as in a native plugin.
    pub fuel: Option<u64>,
}

/// Why a call failed. Its writes are discarded.
#[derive(Debug, Error)]
pub enum CallFailure {
    /// The plugin refused the TrainJob.
    #[error("{0}")]
    Refused(Failure),
    /// The plugin broke a rule of the contract, and the host ended the call.
    #[error(transparent)]
    Broke(Faulted),
    /// The plugin trapped.
    #[error("trapped: {kind}{}", message.as_ref().map(|m| format!(": {m}")).unwrap_or_default())]
    Trap {
        /// The trap, as wasmtime describes it.
        kind: String,
        /// The panic's message, cleaned.
        message: Option<String>,
    },
    /// The plugin's code cannot be loaded.
    #[error("cannot load its code: {0}")]
    NotLoaded(String),
    /// The call exceeded a limit.
    #[error(
        "{}{}",
        method.map(|method| format!("`{method}`: ")).unwrap_or_default(),
        limit.exceeded()
    )]
    Limit {
        /// The limit, with its amount.
        limit: Limit,
        /// The contract's method that exceeded it. `None` if the plugin's own code did.
        method: Option<&'static str>,
    },
    /// The host does not have an object that the plugin looks up. The host fetches it and repeats the call.
    #[error("needs {0}")]
    Missing(LookupKey),
    /// The host was too busy. The same call may succeed later, so this is never a result to keep.
    #[error("{0}")]
    Busy(Busy),
}

impl CallFailure {
    /// A limit that the plugin's own code exceeded.
    #[must_use]
    pub const fn limit(limit: Limit) -> Self {
        Self::Limit {
            limit,
            method: None,
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Busy(_))
    }

    /// Whether the same call may succeed immediately. Not if calls of the plugin are paused.
    #[must_use]
    pub const fn is_retryable_now(&self) -> bool {
        matches!(self, Self::Busy(Busy::WallClock(_) | Busy::Pool))
    }

    /// Whether the call exhausted its time or its fuel, so that it occupied a thread for as long as its limits allow.
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

    /// Whether the call is repeated, so that its warnings and log lines are discarded.
    #[must_use]
    pub const fn is_repeated(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::Missing(_))
    }

    /// The values of [`Self::kind`].
    pub const KINDS: [&str; 8] = [
        "refused", "broke", "trap", "load", "limit", "missing", "busy", "open",
    ];

    /// The value of the metric's label `kind`, which is one of [`Self::KINDS`].
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Broke(_) => "broke",
            Self::Trap { .. } => "trap",
            Self::NotLoaded(_) => "load",
            Self::Limit { .. } => "limit",
            Self::Missing(_) => "missing",
            Self::Busy(Busy::Open { .. } | Busy::OpenEverywhere { .. }) => "open",
            Self::Busy(_) => "busy",
        }
    }
}

impl From<Faulted> for CallFailure {
    fn from(Faulted { method, fault }: Faulted) -> Self {
        match fault {
            Fault::Limit(limit) => Self::Limit { limit, method },
            Fault::Missing(key) => Self::Missing(key),
            Fault::Invalid { place, message } => {
                Self::Refused(Failure::cleaned(&message, Some(&place)))
            }
            fault => Self::Broke(Faulted { method, fault }),
        }
    }
}

impl From<Fault> for CallFailure {
    fn from(fault: Fault) -> Self {
        Faulted::from(fault).into()
    }
}

/// Why the host was too busy for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Busy {
    /// The call exceeded its wall-clock limit.
    #[error(
        "exceeded {0} ms of wall-clock time; it may be looping, or the machine may be busy; raise `limits.wallClockMs` in its PolicyPlugin"
    )]
    WallClock(u64),
    /// All sandbox instances are in use.
    #[error("all sandbox instances are in use")]
    Pool,
    /// Calls of the plugin are paused, because too many exhausted their time or fuel.
    #[error(
        "is paused for TrainJobs in this namespace, because {calls} of its calls exhausted their time or fuel within {within} s; see the metric trainyard_plugin_errors_total, and raise `limits.wallClockMs` or `limits.fuel` in its PolicyPlugin if the plugin needs more"
    )]
    Open {
        /// The number of such calls.
        calls: usize,
        /// The period, in seconds.
        within: u64,
    },
    /// Calls of the plugin are paused in all namespaces, because they failed in several and succeeded in none.
    #[error(
        "is paused for all namespaces, because its calls failed in {namespaces} of them or more and none succeeded within {within} s; it is called again after a while; the condition `Paused` of its PolicyPlugin, or the log of the controller, says why it fails"
    )]
    OpenEverywhere {
        /// The number of namespaces that is enough.
        namespaces: usize,
        /// The period, in seconds.
        within: u64,
    },
}
