//! The controller: reconciles TrainJobs into JobSets.
//!
//! The process: [`run`](run()) starts everything from [`settings`], [`serve`] answers probes and [`metrics`], and [`lease`] says which of several
//! controllers works.
//!
//! What is known, and what is done next:
//! - [`watch`] keeps slim copies of what the cluster has; [`queue`] holds the TrainJobs that something happened to, and `turns` whose turn it
//!   is among namespaces. `work` empties the queue with so many `workers`, and `failures` counts the errors that come again.
//! - [`reconcile`] brings one TrainJob to where it should be: observe, decide, act. [`keys`] makes the key material of a Secret, and [`events`] tells
//!   users what happened; `census` counts the TrainJobs in each state.
//!
//! Plugins: [`plugins`] are those of the process, called on [`threads`] of their own; `observe` measures their calls, and `guard` stops calling one
//! that used up its limits again and again, as its `breaker` says.
//!
//! The API server: [`client`] calls it, `wire` splits its lists, `kubernetes` and `annotations` are what all rooms share of it, and [`rbac`] is what
//! the controller has to be allowed.

mod annotations;
mod breaker;
mod census;
pub mod client;
pub mod events;
mod failures;
mod guard;
pub mod keys;
mod kubernetes;
pub mod lease;
mod measure;
pub mod metrics;
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

/// The digest of the sources of rendering: two builds with the same digest render the same JobSets.
pub const SOURCES: &str = env!("TRAINYARD_SOURCES");

pub use guard::guarded;
pub use measure::measured;
pub use run::{ControllerError, Options, run};
