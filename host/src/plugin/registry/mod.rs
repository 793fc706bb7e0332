//! The commands of `trainyard plugin` that use registries: `push`, `pull` and `copy`.

mod copy;
mod pull;
mod push;

use trainyard_oci::Location;

pub(super) use self::{
    copy::{CopyArgs, run as copy},
    pull::{PullArgs, run as pull},
    push::{PushArgs, run as push},
};

/// Parses the reference of a plugin in a registry or a folder.
pub(super) fn location(text: &str) -> Result<Location, String> {
    text.parse::<Location>().map_err(|error| error.to_string())
}
