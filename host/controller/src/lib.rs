//! The path in a cluster: TrainJobs are reconciled into JobSets.

pub mod client;
pub mod events;
pub mod lease;
pub mod metrics;
mod observe;
pub mod plugins;
pub mod queue;
pub mod rbac;
pub mod reconcile;
mod run;
pub mod serve;
pub mod settings;
pub mod watch;
mod wire;
mod work;

pub use observe::observed;
pub use run::{ControllerError, Options, run};
