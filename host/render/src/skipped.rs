//! Plugins that a process runs without, and the TrainJobs that need them.

use trainyard_model::{manifest::ActiveWhen, plugin_info::Exemptions};

/// A plugin that was not loaded.
#[derive(Clone, Debug)]
pub struct SkippedPlugin {
    /// Its manifest's declaration. `None` if the manifest cannot be read.
    pub declared: Option<Declared>,
    /// The file and the reason.
    pub why: String,
    /// Whether the operator disabled it. If so, only TrainJobs that name it are refused.
    pub is_disabled: bool,
}

/// The declaration of a skipped plugin's manifest, with the operator's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    pub name: String,
    /// When it is active.
    pub active_when: ActiveWhen,
    /// The TrainJobs that the operator's settings let run without it.
    pub exemptions: Exemptions,
}

/// Returns why a plugin is not loaded: the reasons of the skipped plugins that match, or else of those whose manifest cannot be read.
pub(crate) fn skip_reason(
    skipped: &[SkippedPlugin],
    is_it: impl Fn(&Declared) -> bool,
) -> SkipReason {
    let known = |one: &&SkippedPlugin| one.declared.as_ref().is_some_and(&is_it);
    let unknown = |one: &&SkippedPlugin| one.declared.is_none();
    let reasons =
        |all: Vec<&SkippedPlugin>| all.iter().map(|one| one.why.clone()).collect::<Vec<_>>();
    let these = reasons(skipped.iter().filter(known).collect());
    if !these.is_empty() {
        return SkipReason::Known(these.join("; "));
    }
    let may_be = reasons(skipped.iter().filter(unknown).collect());
    if may_be.is_empty() {
        SkipReason::Unknown
    } else {
        SkipReason::Possible(may_be.join("; "))
    }
}

/// Why a plugin is not loaded.
pub(crate) enum SkipReason {
    /// It was skipped for these reasons.
    Known(String),
    /// It may be one of the skipped plugins whose manifest cannot be read, with these reasons.
    Possible(String),
    /// No skipped plugin matches.
    Unknown,
}
