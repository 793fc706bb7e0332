//! The subjects of the benchmarks: two TrainJobs, policies as components and natively, and the reference.

mod entries;
mod jobs;
mod policies;
mod reference;
mod rows;

pub use self::{
    entries::{Entry, entries},
    jobs::{Job, LARGE, SMALL, Size},
    policies::{BUILT_INS, CHAIN, Chain, DRA, Plugins, loader, loader_with, native, sandboxed},
    reference::Reference,
    rows::{Row, rows},
};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
