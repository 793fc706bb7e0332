//! Plugins as sandboxed WebAssembly components: loading, limits, and calls.
//!
//! [`Loader`] (`loader`) loads a file: it reads and screens it ([`screen`]), compiles it in a child process ([`compile`]) or takes it
//! from a directory of `compiled` plugins or the authenticated `cache`, links it against the `contract` and nothing else, and instantiates
//! it once under its limits. The plugin is then called through [`trainyard_model::plugin::Plugin`] (`plugin`), each time with a fresh
//! store and a fresh instance.
//!
//! `surface` is what a component imports and exports, `load_limits` bounds what a file may contain and cost, and `error` has every
//! reason to refuse it. A `built_in` plugin is part of the program, and `deferred` loads its code when it is first called. `sandbox` is
//! what all plugins of a loader share.
//!
//! `engine` has the clock of the wall-clock limits; `state` is the data of a store while a call runs; `pool` has the threads that calls
//! run on. `regular_file` opens files that others could replace. `trusted_code` is the only place where compiled code becomes a component,
//! and has the only `unsafe`.

mod built_in;
mod cache;
pub mod compile;
mod compiled;
mod contract;
mod deferred;
mod engine;
mod error;
mod load_limits;
mod loader;
mod plugin;
mod pool;
mod regular_file;
mod sandbox;
pub mod screen;
mod state;
mod surface;
mod trusted_code;

pub use built_in::BuiltIn;
pub use cache::CachePaths;
pub use compile::CompilerCommand;
pub use deferred::DeferredPlugin;
pub use error::{CompileError, LinkError, LoadError, LoadProblem, ScreenError};
pub use load_limits::LoadLimits;
pub use loader::{Loader, LoaderOptions, SetupError};
pub use plugin::SandboxedPlugin;
pub use pool::{Panicked, Pool};
pub use screen::Screened;
