//! From a plugin's crate to a component: cargo builds a core module, and the core module and its manifest become one
//! `.wasm` file that a host loads.
//!
//! Our own build (`host/build.rs`, for the built-in plugins) and `trainyard plugin build DIR` run the very same code:
//! [`build::build`]. It is made of three steps that can be used on their own:
//!
//! 1. [`toolchain::find`]: which Rust of this machine can build WebAssembly;
//! 2. [`guest::core_module`]: cargo, with a profile and flags that make the bytes depend on the sources and the toolchain
//!    alone;
//! 3. [`component::componentize`]: the core module as a component, with the manifest as a custom section.
//!
//! ```no_run
//! use std::path::Path;
//! use trainyard_componentize::build::{self, Options};
//!
//! let built = build::build(Path::new("my-plugin"), &Options::default())?;
//! built.write(Path::new("my-plugin.wasm"))?;
//! # Ok::<(), trainyard_componentize::build::BuildError>(())
//! ```

pub mod build;
pub mod component;
mod environment;
pub mod guest;
mod module;
pub mod toolchain;
