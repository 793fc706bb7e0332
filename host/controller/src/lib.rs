//! The path in a cluster: TrainJobs are reconciled into JobSets.

pub mod client;
pub mod events;
pub mod metrics;
pub mod plugins;
pub mod queue;
pub mod reconcile;
pub mod watch;
