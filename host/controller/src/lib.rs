//! The path in a cluster: TrainJobs are reconciled into JobSets.

pub mod watch;
