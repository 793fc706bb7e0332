//! Rules for the proxy's calls.

use std::fmt;

use http::{Method, StatusCode};
use kube::core::response::{Status, StatusDetails};

/// A call that a proxy received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number among all calls, from 1.
    pub number: usize,
    /// Its number among the writes, from 1; `None` for a read.
    pub write: Option<usize>,
    /// The HTTP method.
    pub method: Method,
    /// The path with the query.
    pub path: String,
    /// The status of the answer; `None` if the client has not received one.
    pub answer: Option<StatusCode>,
}

type Then = Box<dyn FnOnce() + Send>;

/// An action of a proxy for a call.
pub enum Act {
    /// Forward the call to the API server, and stream the answer to the client.
    Forward,
    /// Do not forward the call. Call this function, which can kill the client, and then close every connection of a client. No later call
    /// is forwarded before that.
    CutBefore(Then),
    /// Forward the call to the API server, but not the answer to the client. When the answer has arrived, call this function, and then
    /// close every connection of a client. No later call is forwarded before that.
    CutAfter(Then),
    /// Neither forward nor answer the call.
    Hang,
    /// Answer with this response without forwarding the call.
    Answer(Box<Status>),
}

impl Act {
    /// Returns an [`Act::CutBefore`] with this function.
    pub fn cut_before(then: impl FnOnce() + Send + 'static) -> Self {
        Self::CutBefore(Box::new(then))
    }

    /// Returns an [`Act::CutAfter`] with this function.
    pub fn cut_after(then: impl FnOnce() + Send + 'static) -> Self {
        Self::CutAfter(Box::new(then))
    }

    /// Answers as if another client had modified the object concurrently.
    pub fn conflict() -> Self {
        Self::Answer(
            Status::failure("the proxy lets nobody write this now", "Conflict")
                .with_code(StatusCode::CONFLICT.as_u16())
                .boxed(),
        )
    }

    /// Answers as if the API server were overloaded, with a retry after this number of seconds.
    pub fn too_many_requests(retry_after: u32) -> Self {
        let details = StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: retry_after,
        };
        Self::Answer(
            Status::failure("the proxy takes no more", "TooManyRequests")
                .with_code(StatusCode::TOO_MANY_REQUESTS.as_u16())
                .with_details(details)
                .boxed(),
        )
    }
}

impl fmt::Debug for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forward => f.write_str("Forward"),
            Self::CutBefore(_) => f.write_str("CutBefore"),
            Self::CutAfter(_) => f.write_str("CutAfter"),
            Self::Hang => f.write_str("Hang"),
            Self::Answer(status) => write!(f, "Answer({})", status.code),
        }
    }
}

/// Returns whether the method is a write.
pub(super) fn writes(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}
