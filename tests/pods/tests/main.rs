//! The tests of this crate, which create namespaces.

// Tests may panic.
#![allow(clippy::unwrap_used)]

mod pods_are_machines_of_their_own;
