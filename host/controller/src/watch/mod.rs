//! What the controller knows of the cluster without asking: slim copies of what it watches.

mod objects;
mod store;
mod stream;

pub(crate) use objects::{ClusterRuntimeObject, JobSetObject, RuntimeObject, TrainJobObject};
pub use objects::{
    JobCounts, JobSetState, RuntimeKey, RuntimeState, TrainJobState, TrainJobStatus,
};
pub use store::{State, Store};
pub use stream::{Watched, follow};
