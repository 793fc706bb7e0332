//! The path in a cluster.

pub mod client;
pub mod events;
pub mod lease;
pub mod metrics;
pub mod queue;
pub mod serve;
pub mod settings;
