use thiserror::Error;

use crate::{
    claims::Verb, limits::Limit, lookup::LookupKey, object::EmittedObject, phase::Phase,
    reserved::Reserved, text::quoted,
};

/// Why the host ended a call. The guest never sees it: in the sandbox it is a trap. "It" is the plugin.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Fault {
    /// No claim allows the touch.
    #[error("it may not {touch} `{path}`: no claim allows it; add `{}` to `claims.{}` in the manifest", quoted(claim), touch.list())]
    NotClaimed {
        /// How it touched.
        touch: Verb,
        /// The place.
        path: String,
        /// The claim that is missing.
        claim: String,
    },
    /// A claim allows it, the operator does not.
    #[error(
        "it may not write {what} at `{path}`: the claim is granted for {allowed} only; `grants: [{}]` in the policy file allows more",
        quoted(claim)
    )]
    NotGranted {
        /// The place.
        path: String,
        /// The claim on it.
        claim: String,
        /// What it tried to write.
        what: &'static str,
        /// What is allowed there.
        allowed: &'static str,
    },
    /// The runtime, a patch or the TrainJob set the env var.
    #[error(
        "it may not change `{path}`, which the {owner} set; use `default-env` to leave it unchanged, or reserve the name with `reservedEnv` in the manifest"
    )]
    NotReserved {
        /// The place.
        path: String,
        /// Who set it.
        owner: &'static str,
    },
    /// The host keeps the name of an object for itself.
    #[error(
        "it may not use the object name `{name}`: {reserved}; choose another suffix, or rename the TrainJob"
    )]
    Reserved {
        /// The name.
        name: String,
        /// Why.
        reserved: &'static Reserved,
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
    #[error("it may not write the base record; write the record that `context.info` returns")]
    BaseWritten,
    /// The handle means nothing any more, or never did.
    #[error("it used a handle to a {what} that does not exist")]
    DeadHandle {
        /// What it should have been.
        what: &'static str,
    },
    /// An argument is out of bounds.
    #[error("wrong argument: {0}")]
    Argument(String),
    /// More was written into an object than a cluster takes.
    #[error(
        "`{path}`: {written} bytes were written, but an object of a plugin may have at most {most}; use fewer nodes, or emit less for each of them", most = EmittedObject::MOST_BYTES
    )]
    TooLarge {
        /// The object.
        path: String,
        /// How many bytes were written into it.
        written: usize,
    },
    /// A limit of the meter ran out.
    #[error("{}", .0.used_up())]
    Limit(Limit),
    /// The host does not hold an object that it asked for: the call is made again once it does.
    #[error("it needs {0}")]
    Missing(LookupKey),
}

impl Fault {
    /// The same with the method that was called, as the contract names it: `container.put-env`.
    #[must_use]
    pub const fn in_method(self, method: &'static str) -> Faulted {
        Faulted {
            method: Some(method),
            fault: self,
        }
    }
}

/// A fault with the method that it ended: helpers that many methods share do not know which one was called, so that it
/// is added where the guest's call comes in.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{fault}", method.map(|method| format!("`{method}`: ")).unwrap_or_default())]
pub struct Faulted {
    /// The contract's method; none where a policy called it by no name, as in tests of the record's own methods.
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
