//! Whether the plugins that the PolicyPlugins ask for become a new revision.

use trainyard_config::policy_plugin::Stage;

use super::{RevisionFacts, running};

/// What is done about the plugins that the PolicyPlugins ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proposal {
    /// They run, or are rolled out.
    Nothing,
    /// The revision of this number has the same plugins and was rolled back or refused, and nobody has asked for another try.
    Blocked(u64),
    /// A revision of this number is created.
    Create(u64),
}

/// Returns what is done about plugins with this digest. `used` is the highest number that is known to have been used, also by
/// revisions that were deleted: each number is used once.
pub(crate) fn proposal(revisions: &[RevisionFacts], hash: &str, used: u64) -> Proposal {
    if running(revisions).is_some_and(|running| running.hash == hash) {
        return Proposal::Nothing;
    }
    let newest = revisions.iter().rev().find(|it| it.hash == hash);
    match newest.map(|newest| (newest, newest.stage)) {
        Some((_, None | Some(Stage::Shadow | Stage::Share))) => Proposal::Nothing,
        Some((newest, Some(Stage::RolledBack | Stage::Refused))) if !newest.asked.retry => {
            Proposal::Blocked(newest.number)
        }
        _ => {
            let numbers = revisions.iter().map(|it| it.number);
            Proposal::Create(numbers.fold(used, u64::max).saturating_add(1))
        }
    }
}
