//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod common;
mod mistakes_are_reported_at_their_field;
mod pods_are_scheduled_together;
