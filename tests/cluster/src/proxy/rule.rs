//! What the proxy does with each call.

use std::fmt;

use http::{Method, StatusCode};
use kube::core::response::{Status, StatusDetails};

/// A call that came to a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number among all calls, from 1.
    pub number: usize,
    /// Its number among those that write, from 1; none for one that reads.
    pub write: Option<usize>,
    /// The method of HTTP.
    pub method: Method,
    /// The path with the query.
    pub path: String,
    /// The answer that the client got; `None` while it waits, or if it never got one.
    pub answer: Option<StatusCode>,
}

type Then = Box<dyn FnOnce() + Send>;

/// What a proxy does with a call.
pub enum Act {
    /// It goes to the API server, and what that answers goes to the client, piece by piece as it comes.
    Forward,
    /// The API server never sees it. This is called (it may kill the client, for example), and then every connection of a
    /// client is closed; until then, no later call is forwarded.
    CutBefore(Then),
    /// The API server sees it, and the client not what that answers. When the answer is there, this is called, and then every
    /// connection of a client is closed; until then, no later call is forwarded.
    CutAfter(Then),
    /// It is never forwarded and never answered.
    Hang,
    /// The API server never sees it; this is the answer.
    Answer(Box<Status>),
}

impl Act {
    /// [`Act::CutBefore`] with this.
    pub fn cut_before(then: impl FnOnce() + Send + 'static) -> Self {
        Self::CutBefore(Box::new(then))
    }

    /// [`Act::CutAfter`] with this.
    pub fn cut_after(then: impl FnOnce() + Send + 'static) -> Self {
        Self::CutAfter(Box::new(then))
    }

    /// As if another client had written the object in the meantime.
    pub fn conflict() -> Self {
        Self::Answer(
            Status::failure("the proxy lets nobody write this now", "Conflict")
                .with_code(StatusCode::CONFLICT.as_u16())
                .boxed(),
        )
    }

    /// As if the API server were overloaded, and asked to retry after this many seconds.
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

/// Whether a call of this method writes.
pub(super) fn writes(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}
