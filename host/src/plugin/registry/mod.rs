//! The commands of `trainyard plugin` that use registries: `push`, `pull`, `copy` and `verify`, and whose signatures count.

mod copy;
mod pull;
mod push;
mod signed;
mod verify;

use trainyard_oci::Location;

pub(super) use self::{
    copy::{CopyArgs, run as copy},
    pull::{PullArgs, run as pull},
    push::{PushArgs, run as push},
    signed::line as signed_line,
    verify::{VerifyArgs, run as verify},
};

/// Parses the reference of a plugin in a registry or a folder.
pub(super) fn location(text: &str) -> Result<Location, String> {
    text.parse::<Location>().map_err(|error| error.to_string())
}
