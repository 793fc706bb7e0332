//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod common;
mod credentials_reach_only_their_registry;
mod folders_carry_plugins_with_their_signatures;
mod mirrors_are_asked_first;
mod plugins_are_pushed_and_pulled;
mod references_are_complete;
mod registries_that_lie_are_refused;
mod transfers_are_bounded;
