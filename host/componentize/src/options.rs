//! Options of a build.

use std::path::PathBuf;

/// Options of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The target directory [default: `guest` in the target directory of the crate's workspace].
    pub target_dir: Option<PathBuf>,
    /// Fail if `Cargo.lock` is missing or would change.
    pub locked: bool,
    /// What happens to cargo's messages.
    pub messages: Messages,
}

/// What happens to cargo's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Messages {
    /// They are printed to standard error at once.
    #[default]
    Show,
    /// They become part of the error if cargo fails.
    Keep,
}
