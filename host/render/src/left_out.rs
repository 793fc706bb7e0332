//! Plugins that a process goes on without, and which TrainJobs need them.

use trainyard_model::manifest::ActiveWhen;

/// A plugin file that was left out.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// What its manifest says; none where it can't be read.
    pub declared: Option<Declared>,
    /// The file, and why.
    pub why: String,
    /// Whether the operator disabled it: then only a TrainJob that names it is refused.
    pub is_disabled: bool,
}

/// What the manifest of a plugin that was left out says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// What would switch it on.
    pub active_when: ActiveWhen,
}

/// Why there is no such plugin: the reasons of those that are known to be it, or else of all that may be.
pub(crate) fn why(left_out: &[LeftOut], is_it: impl Fn(&Declared) -> bool) -> Why {
    let known = |one: &&LeftOut| one.declared.as_ref().is_some_and(&is_it);
    let unknown = |one: &&LeftOut| one.declared.is_none();
    let reasons = |all: Vec<&LeftOut>| all.iter().map(|one| one.why.clone()).collect::<Vec<_>>();
    let these = reasons(left_out.iter().filter(known).collect());
    if !these.is_empty() {
        return Why::These(these.join("; "));
    }
    let may_be = reasons(left_out.iter().filter(unknown).collect());
    if may_be.is_empty() {
        Why::Unknown
    } else {
        Why::MayBe(may_be.join("; "))
    }
}

/// Why a plugin is not loaded.
pub(crate) enum Why {
    /// It was left out for these reasons.
    These(String),
    /// It may be one of those that were left out unread, for these reasons.
    MayBe(String),
    /// Nothing was left out that could be it.
    Unknown,
}
