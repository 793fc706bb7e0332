//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub
)]

mod authorities_are_trusted_for_their_host;
mod common;
mod credentials_reach_only_their_registry;
mod discarded_plugins_leave_the_others;
mod folders_are_written_by_one_at_a_time;
mod folders_carry_plugins_with_their_signatures;
mod mirrors_are_asked_first;
mod only_signed_plugins_are_pulled;
mod plugins_are_pushed_and_pulled;
mod references_are_complete;
mod referrers_are_those_of_their_plugin;
mod registries_that_lie_are_refused;
mod signatures_cannot_be_blocked;
mod signatures_of_cosign_are_verified;
mod signers_are_checked;
mod transfers_are_bounded;
