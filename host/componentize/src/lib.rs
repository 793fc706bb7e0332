//! From a plugin's crate to a component: cargo builds a core module, and the core module and its manifest become one
//! `.wasm` file that a host loads.
//!
//! Our own build (`host/build.rs`, for the built-in plugins) and `trainyard plugin build DIR` run the very same code:
//! [`build::build`]. It is made of steps, of which two can be used on their own:
//!
//! 1. [`toolchain::find`]: which Rust of this machine can build WebAssembly;
//! 2. `cargo`, in an `environment` without what an outer cargo put there, with a profile and flags that make the bytes depend on the
//!    `sources` and the toolchain alone;
//! 3. [`component::componentize`]: the core module as a component, with the manifest as one of its custom `sections`.
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
mod environment;
mod sections;
mod sources;
pub mod toolchain;
