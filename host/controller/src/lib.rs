//! The path in a cluster.

pub mod queue;
