//! How a test has calls and events handled.

use std::time::Duration;

/// When a rule is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Before the call is executed.
    Before,
    /// After the call is executed, and before it is answered.
    Done,
    /// Before a watch delivers an event.
    Event,
}

/// How a call or an event is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    GoOn,
    /// Waits until the watches have delivered all changes, and the controller had time to act on them.
    Pause,
    /// It is never answered.
    Hang,
    /// It is answered with 503, and not executed, unless it was executed already.
    Refuse,
    /// It is not executed, because the user has no permission.
    Forbid,
    /// It is not executed, and the answer quotes its body, as some webhooks do.
    Quote,
    /// It is not executed, and answered with 404 and this message.
    NotFound(&'static str),
    /// It is not executed, because a quota is exceeded; quotas are checked before the object is looked up.
    OverQuota,
    /// It is not executed, and answered with this status; a watch ends with it.
    Answer(u16),
    /// It is executed, or delivered, after this time.
    Wait(Duration),
    /// The connection is lost before it arrives.
    Cut,
    /// It is executed, and the client does not learn so.
    Then(Lost),
    /// The event is delivered twice.
    Twice,
    /// The watch ends before the event.
    End,
}

/// What the client gets instead of the answer to a call that was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// This status.
    Answer(u16),
    /// Nothing.
    Hang,
    /// Nothing, and the connection is lost.
    Cut,
    /// Half of the answer, and the connection is lost.
    Tear,
}
