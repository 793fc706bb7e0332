//! The one trait through which policies run, and how a call of one ends.

use std::{fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    call::{Call, Fault, Faulted},
    lookup::LookupKey,
    plugin::Plugin,
    value::Failure,
};

/// What a plugin is called for. Each is an interface of the contract.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// Changes the record.
    Transform,
    /// Emits objects.
    Build,
    /// Warns or refuses.
    Check,
}

impl Phase {
    /// All phases, in the order in which a TrainJob meets them.
    pub const ALL: [Self; 3] = [Self::Transform, Self::Build, Self::Check];

    /// The name of its interface and function in the contract.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transform => "transform",
            Self::Build => "build",
            Self::Check => "check",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A plugin that can be called.
pub trait Policy: Send + Sync {
    /// Who it is, and what it may do.
    fn plugin(&self) -> &Arc<Plugin>;

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

    /// One word for it, as a metric's label: `refused`, `broke`, `trap`, `limit`, `missing`, `busy` or `open`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Broke(_) => "broke",
            Self::Trap { .. } => "trap",
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

/// A limit of a call, with its amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of all memories and tables.
    Memory(u64),
    /// Instructions.
    Fuel(u64),
    /// Bytes of the stack.
    Stack(u64),
    /// Bytes over all imports.
    ImportBytes(u64),
    /// Handles.
    Handles(u64),
    /// Writes.
    Writes(u64),
    /// Log lines, warnings and errors.
    LogLines(u64),
    /// Containers and init containers added to a TrainJob.
    Containers(u64),
    /// Objects emitted for a TrainJob.
    Objects(u64),
    /// Key pairs and random texts made for a TrainJob.
    KeyMaterial(u64),
    /// Bytes of kept texts.
    KeptBytes(u64),
}

impl Limit {
    /// That it ran out, and what to do about it.
    pub(crate) fn used_up(self) -> String {
        let setting = match self {
            Self::Memory(_) => "memoryBytes",
            Self::Fuel(_) => "fuel",
            Self::ImportBytes(_) => "importBytes",
            Self::Handles(_) => "handles",
            Self::Writes(_) => "writes",
            Self::LogLines(_) => "logLines",
            Self::Containers(_) => "containers",
            Self::Objects(_) => "objects",
            Self::KeyMaterial(_) => "keyMaterial",
            Self::KeptBytes(_) => "keptBytes",
            Self::Stack(_) => return format!("used up its {self}; the plugin recurses too deeply"),
        };
        format!("used up its {self}; `limits.{setting}` in the policy file raises it")
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(n) => write!(f, "{n} bytes of memory"),
            Self::Fuel(n) => write!(f, "{n} units of fuel"),
            Self::Stack(n) => write!(f, "{n} bytes of stack"),
            Self::ImportBytes(n) => write!(f, "{n} bytes over imports"),
            Self::Handles(n) => write!(f, "{n} handles"),
            Self::Writes(n) => write!(f, "{n} writes"),
            Self::LogLines(n) => write!(f, "{n} log lines"),
            Self::Containers(n) => write!(f, "{n} added containers"),
            Self::Objects(n) => write!(f, "{n} emitted objects"),
            Self::KeyMaterial(n) => write!(f, "{n} key pairs and random texts"),
            Self::KeptBytes(n) => write!(f, "{n} bytes of kept texts"),
        }
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
