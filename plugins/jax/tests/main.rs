//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(clippy::panic, clippy::unwrap_used)]

mod environment_follows_the_job;
