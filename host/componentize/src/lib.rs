//! Builds plugin crates as components: cargo builds a core module, which is encoded with its manifest as a `.wasm` file.
//!
//! `trainyard plugin build DIR` calls [`build::build`], and `host/build.rs`, for the built-in plugins, [`build::build_all`], with the same
//! `options`. The steps are:
//!
//! 1. [`toolchain::find`] finds a Rust toolchain on this machine that can build plugins;
//! 2. `cargo` runs in an `environment` without the variables of an outer cargo, with a profile and flags that make the bytes depend only on
//!    the `sources` and the toolchain;
//! 3. [`component::componentize`] encodes the core module as a component, with the manifest as one of its custom `sections`.
//!
//! `error` has the errors of all steps. [`wrap::wrap`], for `trainyard plugin wrap`, makes a component of a file that another tool built, and
//! [`contract`] has what such tools read.
//!
//! ```no_run
//! use std::path::Path;
//! use trainyard_componentize::build::{self, Options};
//!
//! let built = build::build(Path::new("my-plugin"), &Options::default())?;
//! std::fs::write("my-plugin.wasm", &built.component.bytes)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod build;
mod cargo;
pub mod component;
pub mod contract;
mod environment;
mod error;
mod options;
mod sections;
mod sources;
pub mod toolchain;
pub mod wrap;
