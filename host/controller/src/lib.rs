//! The controller: reconciles TrainJobs into JobSets.
//!
//! The process: [`run`](run()) starts everything from [`settings`], which `gates` switch on or off and of which `declared` is a part, [`serve`] answers probes and serves [`metrics`], and [`lease`] elects the
//! leader among several controllers.
//!
//! From a change to its result:
//! - [`watch`] keeps slim copies of the cluster's objects. [`queue`] holds the TrainJobs that are affected by a change, and `work` processes
//!   it. In `fair`, namespaces take turns at everything that TrainJobs compete for. `failures` counts repeated errors.
//! - [`reconcile`] reconciles one TrainJob: observe, decide, act. [`keys`] generates the keys of a Secret, [`events`] reports errors to users,
//!   `log_shares` gives each namespace its share of the log by a `keyed_limit`, and `census` counts the TrainJobs in each state.
//!
//! [`webhook`] checks TrainJobs and runtimes before the API server stores them, as a reconcile reads and renders them. Pods report progress to
//! [`status_server`]. All TLS servers share one `certificate`. [`shadow`] keeps how TrainJobs differ from what another
//! controller made of them, if nothing may be written.
//!
//! [`spans`] exports what a reconcile, a call or a request took, if there is a collector.
//!
//! Plugins: a [`generation`] has the loaded ones, which are called on their own [`threads`]. Several generations may be held at once. [`plugins`] makes them from what the cluster
//! declares. `measure` measures their calls, and `guard` pauses a
//! plugin that keeps failing, by its `breaker`.
//!
//! The API server: [`client`] calls it, `wire` splits its lists into objects, `kubernetes`, `annotations` and `admission`, which admits stored objects, are shared by all modules, and
//! [`rbac`] has the permissions that the controller needs.

mod admission;
mod annotations;
mod breaker;
mod census;
pub mod certificate;
pub mod client;
mod declared;
pub mod events;
mod failures;
mod fair;
mod gates;
pub mod generation;
mod guard;
mod keyed_limit;
pub mod keys;
mod kubernetes;
pub mod lease;
mod log_shares;
mod measure;
pub mod metrics;
pub mod plugins;
pub mod queue;
pub mod rbac;
pub mod reconcile;
mod run;
pub mod serve;
pub mod settings;
pub mod shadow;
pub mod spans;
pub mod status_server;
pub mod threads;
pub mod watch;
pub mod webhook;
pub mod wire;
mod work;

/// The digest of the sources of rendering: two builds with the same digest render the same JobSets.
pub const SOURCES: &str = env!("TRAINYARD_SOURCES");

pub use guard::guarded;
pub use measure::measured;
pub use run::{ControllerError, Options, run};
