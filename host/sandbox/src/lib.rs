//! Policies as sandboxed WebAssembly components: loading, limits, and calls.
//!
//! A file is read and screened ([`screen`]), compiled in a child process ([`compile`]) or taken from the authenticated
//! `cache`, linked against the `contract` and nothing else, tried out under its limits ([`Loader`] in `loader`), and then called through
//! [`trainyard_model::policy::Policy`] (`policy`): a fresh store and a fresh instance each time.
//!
//! `deferred` loads the code of a built-in plugin when it is first called. `sandbox` is what all plugins of a loader share, and `load_error`
//! why one of them is refused.
//!
//! `engine` is shared by all plugins, and holds the clock of their wall-clock limits; `state` is what a store holds while a call runs; `pool`
//! are the threads that calls run on. `vouched` is the only place where compiled code becomes a component, and the only `unsafe`.

mod cache;
pub mod compile;
mod contract;
mod deferred;
mod engine;
mod load_error;
mod loader;
mod policy;
mod pool;
mod sandbox;
pub mod screen;
mod state;
mod vouched;

pub use cache::CachePaths;
pub use compile::{CompileError, CompilerCommand};
pub use deferred::DeferredPolicy;
pub use load_error::{LoadError, LoadProblem};
pub use loader::{Loader, LoaderOptions, SetupError};
pub use policy::{LinkError, SandboxedPolicy};
pub use pool::{Panicked, Pool};
pub use screen::{LoadLimits, ScreenError, Screened};
