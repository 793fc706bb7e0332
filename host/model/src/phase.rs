//! The phases of a plugin.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A phase of a plugin. Each is an interface of the contract.
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
    /// All phases, in the order in which they run.
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
