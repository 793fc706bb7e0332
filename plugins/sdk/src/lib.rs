//! The SDK for Trainyard plugins.
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
//! In a plugin's crate, `trainyard_sdk::plugin!(Greeter: transform)` follows: it exports only the phases that it names,
//! and embeds `manifest.json`, which is next to `Cargo.toml`. `trainyard plugin build` builds a component from the crate.
//!
//! Compiled natively, the same code runs against the host's record: see [`mock`].

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
#[cfg(not(target_family = "wasm"))]
pub mod mock;
pub mod names;
#[cfg(not(target_family = "wasm"))]
pub mod native;
mod parts;
pub mod paths;
mod rendezvous;
mod shared_memory;
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
    gang::Gang,
    parts::{PluginParts, plugin_name},
    rendezvous::{POD_INDEX, RendezvousConfig, RendezvousPort},
    trainer::{NODE, PROCESSES, TRAINER},
};

/// Changes the record.
pub trait Transform {
    /// Called once for each TrainJob. If it returns an error, its writes are discarded, and the TrainJob is refused.
    ///
    /// # Errors
    /// The reason why the TrainJob is refused.
    fn transform(ctx: &Context) -> Result<(), Failure>;
}

/// Emits objects. The record is frozen.
pub trait Build {
    /// Called after the last transform.
    ///
    /// # Errors
    /// The reason why the TrainJob is refused.
    fn build(ctx: &Context) -> Result<(), Failure>;
}

/// Inspects the result, and warns or refuses with [`Context::warn`] and [`Context::error`]. It cannot write anything.
pub trait Check {
    /// Called after build.
    fn check(ctx: &Context);
}
