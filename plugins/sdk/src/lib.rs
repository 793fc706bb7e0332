//! The SDK for plugins of Trainyard, a Kubernetes controller for distributed training. A plugin changes the pods of TrainJobs before they
//! are created.
//!
//! # A plugin
//!
//! A plugin is a crate with the types `cdylib`, which builds the component, and `rlib`, with which tests use the plugin. `manifest.json`, next
//! to `Cargo.toml`, declares what activates the plugin, and what it reads and writes:
//!
//! ```json
#![doc = include_str!("../docs/manifest.json")]
//! ```
//!
//! The code is a type with one or more phases ([`Transform`], [`Build`], [`Check`]), and [`plugin!`], which exports them and embeds the
//! manifest. A test runs the phases with the [mock host](mock):
//!
//! ```
//! use trainyard_sdk::{Context, Failure, Transform, mock::MockJob};
//!
//! pub struct Greeter;
//!
//! # #[cfg(any())]
//! trainyard_sdk::plugin!(Greeter: transform);
//! # // The macro reads `manifest.json` of the crate that is compiled, which is not this example.
//! # const PLUGIN: trainyard_sdk::PluginParts = trainyard_sdk::PluginParts {
//! #     manifest: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/manifest.json")),
//! #     parts: r#"{"name":"greeter","version":"0.1.0","contract":"1.0.0","phases":["transform"]}"#,
//! #     phases: trainyard_sdk::Phases { transform: Some(Greeter::transform), ..trainyard_sdk::Phases::NONE },
//! # };
//!
//! impl Transform for Greeter {
//!     fn transform(ctx: &Context) -> Result<(), Failure> {
//!         for pod_set in ctx.info().nodes() {
//!             if let Some(node) = pod_set.container("node") {
//!                 ctx.because("each node is greeted");
//!                 // A value that the runtime or the TrainJob sets stays.
//!                 node.default_env("GREETING", "hello");
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # /*
//! #[test]
//! # */
//! fn each_node_is_greeted() {
//!     let outcome = MockJob::new("bert")
//!         .trainer(4, |node| node.image("registry.example.com/train:1"))
//!         .transform(&PLUGIN)
//!         .unwrap();
//!     let greeting = outcome.value("pod-sets[node].containers[node].env[GREETING]");
//!     assert_eq!(greeting, Some("hello".into()));
//! }
//! # each_node_is_greeted();
//! ```
//!
//! With the feature `yaml`, [`mock`] also has `MockInput`, which renders the YAML of a TrainJob and its runtime to the JobSet that a cluster
//! would have. Only tests need the feature, so add it to the dependency in `[dev-dependencies]`.
//!
//! `trainyard plugin build` builds the component, and `trainyard plugin test` renders TrainJobs with it on all runtimes that Trainyard ships.
//!
//! # Handles
//!
//! A phase gets one handle, the [`Context`], and reaches everything else from it: [`Info`] has the [`PodSet`]s with their [`Container`]s,
//! [`Job`] the TrainJob and the configuration, [`Lookups`] objects in the cluster, and [`Objects`] emits objects. A call without its claim ends
//! the phase with an error that has the claim.
//!
//! Helpers on top of the contract are methods of the same handles, such as [`Context::gang`], [`Job::config_as`] and
//! [`PodSet::default_processes`].

#![warn(missing_docs)]

// `derive(Config)` names the crate as plugins do.
extern crate self as trainyard_sdk;

mod accelerators;
#[cfg(not(target_family = "wasm"))]
mod call;
mod config;
mod contract;
mod gang;
mod give;
#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod guest;
pub mod json;
mod membership;
#[cfg(not(target_family = "wasm"))]
pub mod mock;
pub mod names;
// For this repository's own tests and benchmarks: its types are those of the model.
#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
pub mod native;
mod parts;
pub mod paths;
mod rendezvous;
mod shared_memory;
mod trainer;
mod values;
mod volumes;

#[doc(hidden)]
pub use const_format;
pub use trainyard_sdk_derive::Config;

#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
pub use self::parts::{Phases, Writing};
pub use self::{
    config::{Config, Setting, read_list, read_map},
    contract::*,
    gang::Gang,
    parts::{PluginParts, plugin_name},
    rendezvous::{POD_INDEX, RendezvousConfig, RendezvousPort},
    trainer::{NODE, PROCESSES, TRAINER},
};

/// Changes the record. [The front page](crate#a-plugin) has an example.
pub trait Transform {
    /// Called once for each TrainJob. If it returns an error, its writes are discarded, and the TrainJob is refused.
    ///
    /// # Errors
    /// The reason why the TrainJob is refused.
    fn transform(ctx: &Context) -> Result<(), Failure>;
}

/// Emits objects. The record is frozen.
///
/// ```
/// use trainyard_sdk::{Build, Context, Failure};
///
/// struct Tracer;
///
/// impl Build for Tracer {
///     fn build(ctx: &Context) -> Result<(), Failure> {
///         let settings = ctx.objects().emit("v1", "ConfigMap", "-tracer", None);
///         settings.append("tracer.yaml", &format!("service: {}\n", ctx.job().name()));
///         Ok(())
///     }
/// }
/// ```
pub trait Build {
    /// Called after the last transform.
    ///
    /// # Errors
    /// The reason why the TrainJob is refused.
    fn build(ctx: &Context) -> Result<(), Failure>;
}

/// Inspects the result, and warns or refuses with [`Context::warn`] and [`Context::error`]. It cannot write anything.
///
/// ```
/// use trainyard_sdk::{Check, Context};
///
/// struct Tracer;
///
/// impl Check for Tracer {
///     fn check(ctx: &Context) {
///         let nodes = ctx.job().nodes();
///         if nodes > 100 {
///             ctx.warn(&format!("{nodes} nodes may overload the collector"), Some("spec.trainer.numNodes"));
///         }
///     }
/// }
/// ```
pub trait Check {
    /// Called after build.
    fn check(ctx: &Context);
}
