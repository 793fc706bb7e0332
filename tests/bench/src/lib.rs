//! The subjects of the benchmarks: two TrainJobs, policies as components and natively, and the reference.

mod jobs;
mod policies;
mod reference;
mod rows;

pub use self::{
    jobs::{Gang, Job, LARGE, MlPolicy, SMALL, Size},
    policies::{
        BUILT_INS, CHAIN, Chain, Plugins, alone_and_with_dra, loader, native, of_gang, sandboxed,
    },
    reference::Reference,
    rows::{Row, rows},
};
