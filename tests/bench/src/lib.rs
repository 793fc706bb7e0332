//! What the benchmarks run: two TrainJobs, policies as components and natively, and the reference.

mod jobs;
mod policies;
mod reference;

pub use self::{
    jobs::{Job, LARGE, SMALL, Size},
    policies::{BUILT_INS, CHAIN, Chain, Plugins, loader, native, sandboxed},
    reference::Reference,
};
