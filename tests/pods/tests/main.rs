//! The tests of this crate, which create namespaces.

mod pods_are_machines_of_their_own;
