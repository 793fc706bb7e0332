//! What the benchmarks run: two TrainJobs, and four policies, as components and natively.

mod jobs;
mod policies;

pub use self::{
    jobs::{Job, LARGE, SMALL, Size},
    policies::{Chain, loader, native, sandboxed},
};
