//! What the controller knows of the cluster without asking: slim copies of what it watches.

mod interests;
mod kinds;
mod lookups;
mod objects;
mod states;
mod store;
mod stream;
mod subject;

pub(crate) use interests::Interests;
pub(crate) use kinds::Kinds;
pub(crate) use lookups::LookupWatches;
pub(crate) use objects::{ClusterRuntimeObject, JobSetObject, RuntimeObject, TrainJobObject};
pub use states::{JobCounts, JobSetState, RuntimeKey, RuntimeState, TrainJobState, TrainJobStatus};
pub use store::{State, Store};
pub use stream::Watched;
pub(crate) use stream::follow;
pub(crate) use subject::{Kind, Seen, Version};
