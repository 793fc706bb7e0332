use thiserror::Error;

use crate::{
    claims::Verb, limits::Limit, lookup::LookupKey, object::EmittedObject, phase::Phase,
    reserved::Reserved, text::quoted,
};

/// Why the host ended a call. The guest never sees it: in the sandbox it is a trap.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Fault {
    /// No claim allows the access.
    #[error("cannot {verb} `{path}`, because no claim allows it; add `{}` to `claims.{}` in the manifest", quoted(claim), verb.list())]
    NotClaimed {
        /// The access.
        verb: Verb,
        /// The place.
        path: String,
        /// The claim that is missing.
        claim: String,
    },
    /// A claim allows it, but the operator did not grant it.
    #[error(
        "`{path}`: {what} needs a grant; without one, only {allowed} are allowed; add `grants: [{}]` to its PolicyPlugin",
        quoted(claim)
    )]
    NotGranted {
        /// The place.
        path: String,
        /// The claim on it.
        claim: String,
        /// The write that needs a grant.
        what: &'static str,
        /// What is allowed without a grant.
        allowed: &'static str,
    },
    /// The runtime, a patch or the TrainJob set the env var.
    #[error(
        "cannot change `{path}`, which the {owner} set; use `default-env` to leave it unchanged, or reserve the name with `reservedEnv` in the manifest"
    )]
    NotReserved {
        /// The place.
        path: String,
        /// Who set it.
        owner: &'static str,
    },
    /// The host keeps the name of an object for itself.
    #[error(
        "cannot use the object name `{name}`: {reserved}; choose another suffix, or rename the TrainJob"
    )]
    Reserved {
        /// The name.
        name: String,
        /// Why.
        reserved: &'static Reserved,
    },
    /// The phase does not allow it.
    #[error("cannot {what} in {phase}")]
    WrongPhase {
        /// What it tried.
        what: &'static str,
        /// The phase.
        phase: Phase,
    },
    /// The base record was written.
    #[error("cannot write the base record; write the record that `context.info` returns")]
    BaseWritten,
    /// The handle refers to nothing.
    #[error("the handle refers to a {what} that does not exist")]
    DeadHandle {
        /// What the handle is for.
        what: &'static str,
    },
    /// An argument is invalid.
    #[error("invalid argument: {0}")]
    Argument(String),
    /// The call needs a field of the record that the runtime set to an invalid value. The TrainJob is refused, because the plugin cannot
    /// do anything about it.
    #[error("{place}: {message}")]
    Invalid {
        /// The place in the record, such as `pod-sets[node].raw[runtimeClassName]`.
        place: String,
        /// What is wrong, with the value found, and what to do.
        message: String,
    },
    /// An object is larger than a cluster accepts.
    #[error(
        "`{path}`: {written} bytes exceed the limit of {most} bytes per object; use fewer nodes, or emit less for each node", most = EmittedObject::MOST_BYTES
    )]
    TooLarge {
        /// The object.
        path: String,
        /// The number of bytes that were written to it.
        written: usize,
    },
    /// The call exceeded a limit.
    #[error("{}", .0.exceeded())]
    Limit(Limit),
    /// The host does not have an object that the plugin looks up. The host fetches it and repeats the call.
    #[error("needs {0}")]
    Missing(LookupKey),
}

impl Fault {
    /// Adds the method that was called, by its name in the contract, such as `container.put-env`.
    #[must_use]
    pub const fn in_method(self, method: &'static str) -> Faulted {
        Faulted {
            method: Some(method),
            fault: self,
        }
    }
}

/// A fault with the method that was called. Helpers that several methods share do not know the method, so it is added where the
/// guest's call enters the host.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{fault}", method.map(|method| format!("`{method}`: ")).unwrap_or_default())]
pub struct Faulted {
    /// The contract's method. `None` if the method was called directly, as some tests do.
    pub method: Option<&'static str>,
    /// What is wrong.
    pub fault: Fault,
}

impl From<Fault> for Faulted {
    fn from(fault: Fault) -> Self {
        Self {
            method: None,
            fault,
        }
    }
}
