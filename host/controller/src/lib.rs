//! The path in a cluster.

pub mod client;
pub mod metrics;
pub mod queue;
