//! Policies as sandboxed WebAssembly components: loading, limits, and calls.
//!
//! A file is read and screened ([`screen`]), compiled in a child process ([`compile`]) or taken from the authenticated
//! cache, linked against the contract and nothing else, tried out under its limits ([`Loader`]), and then called through
//! [`trainyard_model::policy::Policy`]: a fresh store and a fresh instance each time.

mod cache;
pub mod compile;
mod contract;
mod engine;
mod loader;
mod policy;
mod pool;
pub mod screen;
mod state;
mod vouched;

pub use cache::CachePaths;
pub use compile::{CompileError, CompilerCommand};
pub use loader::{LoadError, LoadProblem, Loader, LoaderOptions, SetupError};
pub use policy::{LinkError, SandboxedPolicy};
pub use pool::{Panicked, Pool};
pub use screen::{LoadLimits, ScreenError, Screened};
