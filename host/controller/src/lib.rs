//! The path in a cluster: TrainJobs are reconciled into JobSets.

mod annotations;
mod breaker;
pub mod client;
pub mod events;
mod guard;
pub mod keys;
mod kubernetes;
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
pub mod threads;
mod turns;
pub mod watch;
mod wire;
mod work;
mod workers;

/// The digest of the sources that decide what a TrainJob becomes: two builds with the same one make the same of it.
pub const SOURCES: &str = env!("TRAINYARD_SOURCES");

pub use guard::guarded;
pub use observe::observed;
pub use run::{ControllerError, Options, run};
