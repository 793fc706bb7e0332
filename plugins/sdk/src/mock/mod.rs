//! A mock host for unit tests of a plugin. It uses the host's own record and rules.
//!
//! A [`MockJob`] is built in code, and its [`Outcome`] is what the plugin wrote and reported. With the feature `yaml`, a `MockInput` is the
//! YAML of a TrainJob and its runtime, and the result is the JobSet that a cluster would have. Both run several plugins, in the order of a
//! cluster and each with its own settings, as [`MockPlugin`]s.
//!
//! ```
//! # use trainyard_sdk::{mock::MockJob, Context, Failure, Transform};
//! # struct Greeter;
//! # impl Transform for Greeter {
//! #     fn transform(ctx: &Context) -> Result<(), Failure> {
//! #         ctx.info().with_ancestor("trainer")[0].container("node").unwrap().put_env("GREETING", "hello");
//! #         Ok(())
//! #     }
//! # }
//! # mod plugin {
//! #     use trainyard_sdk::{Phases, PluginParts, Transform};
//! #     pub const PLUGIN: PluginParts = PluginParts {
//! #         manifest: r#"{"name":"greeter","activeWhen":"plugins","claims":{"writes":["pod-sets[@trainer].containers[node].env[GREETING]"]}}"#,
//! #         parts: r#"{"version":"0.1.0","contract":"1.0.0","phases":["transform"]}"#,
//! #         phases: Phases { transform: Some(super::Greeter::transform), ..Phases::NONE },
//! #     };
//! # }
//! # use plugin::PLUGIN;
//! # fn main() {
//! let outcome = MockJob::new("llama")
//!     .pod_set("node", |set| set.ancestor("trainer").count(4).container("node", |c| c.image("torch")))
//!     .transform(&PLUGIN)
//!     .expect("the plugin accepts the job");
//! assert_eq!(outcome.value("pod-sets[node].containers[node].env[GREETING]"), Some("hello".into()));
//! # }
//! ```

mod error;
#[cfg(feature = "yaml")]
mod input;
mod job;
mod lookups;
mod outcome;
mod plugin;
mod pods;
#[cfg(feature = "yaml")]
mod rendered;
mod run;

#[doc(inline)]
pub use trainyard_model::object::EmittedObject;

pub use self::{
    error::MockError,
    job::MockJob,
    outcome::Outcome,
    plugin::MockPlugin,
    pods::{MockContainer, MockPodSet},
};
#[cfg(feature = "yaml")]
pub use self::{input::MockInput, rendered::Rendered};
