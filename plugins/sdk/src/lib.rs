//! What a plugin for Trainyard is made of.
//!
//! A plugin is a type with one or more phases, and a macro call:
//!
//! ```
//! use trainyard_sdk::{Context, Failure, Transform};
//!
//! struct Greeter;
//!
//! impl Transform for Greeter {
//!     fn transform(ctx: &Context) -> Result<(), Failure> {
//!         for pod_set in ctx.info().with_ancestor("trainer") {
//!             if let Some(node) = pod_set.container("node") {
//!                 ctx.because("every trainer greets");
//!                 node.put_env("GREETING", "hello");
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! In the crate of a plugin, `trainyard_sdk::plugin!(Greeter: transform)` follows: it exports the phases that it names
//! and no others, and embeds `manifest.json`, which stands beside `Cargo.toml`. `trainyard plugin build` makes a
//! component of the crate.
//!
//! On a machine's own target the same code runs against the host's record: see [`mock`].

mod accelerators;
#[cfg(not(target_family = "wasm"))]
mod call;
mod config;
mod contract;
mod give;
#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod guest;
pub mod json;
#[cfg(not(target_family = "wasm"))]
pub mod mock;
pub mod names;
#[cfg(not(target_family = "wasm"))]
pub mod native;
mod parts;
pub mod paths;
mod rendezvous;
mod trainer;
mod values;

#[doc(hidden)]
pub use const_format;
pub use trainyard_sdk_derive::Config;

#[cfg(not(target_family = "wasm"))]
pub use self::parts::{Phases, Writing};
pub use self::{
    config::{Config, Setting, read_list, read_map},
    contract::*,
    parts::{PluginParts, plugin_name},
    rendezvous::{POD_INDEX, RENDEZVOUS_PORT},
    trainer::{NODE, PROCESSES, TRAINER},
};

/// Changes the record.
pub trait Transform {
    /// Called once for each TrainJob. On an error nothing that was written counts, and the TrainJob is refused.
    ///
    /// # Errors
    /// Why the TrainJob is refused.
    fn transform(ctx: &Context) -> Result<(), Failure>;
}

/// Emits objects, with the frozen record at hand.
pub trait Build {
    /// Called after the last transform.
    ///
    /// # Errors
    /// Why the TrainJob is refused.
    fn build(ctx: &Context) -> Result<(), Failure>;
}

/// Looks at everything, writes nothing, and warns or refuses by [`Context::warn`] and [`Context::error`].
pub trait Check {
    /// Called after build.
    fn check(ctx: &Context);
}
