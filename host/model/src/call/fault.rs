use thiserror::Error;

use crate::{
    claims::Touch,
    lookup::LookupKey,
    policy::{Limit, Phase},
};

/// Why the host ended a call. The guest never sees it: in the sandbox it is a trap.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Fault {
    /// No claim allows the touch.
    #[error("it may not {touch} `{path}`: no claim allows it; the manifest needs `{path}` in `claims.{}`", touch.list())]
    NotClaimed {
        /// How it touched.
        touch: Touch,
        /// The place.
        path: String,
    },
    /// A claim allows it, the operator does not.
    #[error(
        "it may not write {what} at `{path}`: the claim is granted for {allowed} only; `grants: [\"{path}\"]` in the policy file allows more"
    )]
    NotGranted {
        /// The place.
        path: String,
        /// What it tried to write.
        what: &'static str,
        /// What is allowed there.
        allowed: &'static str,
    },
    /// The runtime, a patch or the TrainJob set the env var.
    #[error(
        "it may not change `{path}`, which the {owner} set; `default-env` yields to it, and `reservedEnv` in the manifest reserves the name"
    )]
    NotReserved {
        /// The place.
        path: String,
        /// Who set it.
        owner: &'static str,
    },
    /// The phase does not allow it.
    #[error("it may not {what} in {phase}")]
    WrongPhase {
        /// What it tried.
        what: &'static str,
        /// The phase.
        phase: Phase,
    },
    /// The base record was written.
    #[error("it may not write the base record; `context.info` gives the one to write")]
    BaseWritten,
    /// The handle means nothing any more, or never did.
    #[error("it used a handle to a {what} that does not exist")]
    DeadHandle {
        /// What it should have been.
        what: &'static str,
    },
    /// An argument is out of bounds.
    #[error("it called `{method}` wrongly: {problem}")]
    Argument {
        /// The contract's method.
        method: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A limit of the meter ran out.
    #[error("used up its {limit}{}", limit.advice())]
    Limit {
        /// Which one, and how much it allows.
        limit: Limit,
    },
    /// The host does not hold an object that it asked for: the call is made again once it does.
    #[error("it needs {0}")]
    Missing(LookupKey),
}
