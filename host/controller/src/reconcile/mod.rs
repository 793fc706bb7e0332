//! The reconcile of a TrainJob: the desired state, and the writes that lead to it, in an order that is safe at any interruption.
//!
//! A reconcile is a loop of one pure function: [`decide`] is shown what is known ([`Observed`](observed::Observed)) and says which
//! [`Step`](step::Step) comes next, and why. A step either finds something out ([`observe`], one file a thing; nothing there writes) or
//! changes something ([`act`], one file a thing). What it found or left becomes part of what is known, and so it goes on until there is
//! nothing left to do ([`walk`]).
//!
//! The way of a TrainJob, with the file of each part:
//!
//! 1. **The stores** say what the TrainJob wants, what its JobSet is, and how the last reconcile left it (`walk.rs`). Most reconciles
//!    end here: all is as it was.
//! 2. **No JobSet** (`decide/create.rs`): the TrainJob is read (`observe/train_job.rs`), rendered on the runtime as it is now
//!    (`observe/runtime.rs`, `rendering.rs`, `lookups.rs`), its snapshot is created (`act/snapshot.rs`), then the objects beside the JobSet
//!    (`decide/objects.rs`, `act/objects.rs`), then the JobSet (`act/job_set.rs`). If there was one that has run, it is created again only
//!    if it is known that it did not end (`decide/snapshot.rs`, `departed.rs`).
//! 3. **A suspended JobSet** that has never run becomes what the TrainJob wants now (`decide/update.rs`): objects first, then the JobSet.
//! 4. **A suspended JobSet that has run** is frozen (`decide/resume.rs`): it is unsuspended with its pods placed as wanted now
//!    (`decide/placement.rs`, `observe/placement.rs`, `observe/jobs.rs`).
//! 5. **A running JobSet** is suspended if the TrainJob is to be (`decide/suspend.rs`); otherwise what stands beside it is looked at if
//!    something has changed (`decide/running.rs`).
//! 6. **Whatever came of that**, the status is written, a JobSet that is overdue is deleted, and an annotation says why the TrainJob can't be
//!    reconciled, if so (`decide/finish.rs`, `act/train_job.rs`).
//!
//! Why this order is safe is written in [`decide`].

mod act;
mod bodies;
mod context;
mod decide;
mod defaults;
mod departed;
mod error;
mod failure;
mod fetch;
mod inputs;
mod job_set;
mod last_reconcile;
mod live;
mod object_ref;
mod object_version;
mod observe;
mod observed;
mod owner;
mod placement;
mod reconciler;
mod snapshot;
pub(crate) mod status;
mod step;
mod walk;

pub use error::{ReconcileError, SnapshotError};
pub use live::{Live, LiveError, live, live_job_set};
pub use object_ref::ObjectRef;
pub use reconciler::{Reconciler, Stores};
pub use snapshot::Snapshot;
pub use walk::Reconciled;
pub(crate) use walk::TEMPORARY;
