//! Watches of the cluster, and slim copies of the watched objects.

mod content;
mod desired;
mod feed;
mod interests;
mod kinds;
mod lists;
mod lookups;
mod objects;
mod runtime;
mod runtime_cache;
#[cfg(test)]
pub(crate) mod script;
mod spec;
mod state;
mod states;
mod store;
mod stream;
mod subject;
mod texts;

pub(crate) use content::{Content, content_of};
pub(crate) use desired::DesiredState;
pub(crate) use feed::{Feed, decoded};
pub use feed::{FeedError, WatchLines};
pub(crate) use interests::{Interests, Requeue};
pub(crate) use kinds::Kinds;
pub use kinds::{Served, discover};
pub(crate) use lists::Lists;
pub(crate) use lookups::LookupWatches;
pub use objects::WatchedObject;
pub(crate) use objects::{
    ClusterRuntimeObject, Decode, JobSetObject, Keyed, RuntimeObject, TrainJobObject, read,
    resource,
};
pub(crate) use runtime::ReadRuntime;
pub(crate) use runtime_cache::RuntimeCache;
pub use state::{Namespaced, State};
pub use states::{JobCounts, JobSetState, RuntimeKey, RuntimeState, TrainJobState, TrainJobStatus};
#[cfg(test)]
pub(crate) use store::CompleteList;
pub(crate) use store::Read;
pub use store::{StateReplaced, Store, UnreadableObject};
pub(crate) use stream::{Change, DeletedObject, Follower, Health, answer, follow, objects};
pub(crate) use subject::{SubjectState, WatchedKind};
