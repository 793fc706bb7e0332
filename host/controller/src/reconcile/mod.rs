//! The reconcile of a TrainJob: computing the desired state, and writing it in an order that is safe at any interruption.
//!
//! A reconcile is a loop ([`walk`]) around one pure function. [`decide`] gets the known state ([`Observed`](observed::Observed)) and returns
//! the next [`Step`](step::Step) and the reason for it. A step either observes one fact ([`observe`], one file per kind of object; they
//! never write to the cluster) or takes one action ([`act`], likewise). Its result becomes part of the known state, and the loop continues until no step
//! is left.
//!
//! A TrainJob passes through these files:
//!
//! 1. **The stores** have the desired state of the TrainJob, the state of its JobSet, and the result of the last reconcile (`walk.rs`,
//!    `reconciler.rs`, `last_reconcile.rs`). Most reconciles end here, because nothing has changed.
//! 2. **Without a JobSet** (`decide/create.rs`), the TrainJob is read (`observe/train_job.rs`) and rendered from its current runtime
//!    (`observe/runtime.rs`, `observe/rendering.rs`, `observe/lookups.rs`, `fetch.rs`, `defaults.rs`), once the API server has confirmed
//!    that it is current (`observe/live_train_job.rs`). Its snapshot is created
//!    (`snapshot.rs`, `act/snapshot.rs`), then the objects beside the JobSet (`decide/objects.rs`, `act/objects.rs`, `object_ref.rs`), then
//!    the JobSet (`act/job_set.rs`). A JobSet that has run is recreated only if it did not end before it was deleted
//!    (`decide/snapshot.rs`, `deleted_job_sets.rs`).
//! 3. **A suspended JobSet that has never run** is read (`observe/job_set.rs`) and updated (`decide/update.rs`): the objects first
//!    (`observe/objects.rs`), then the JobSet. The digest of the inputs shows whether it is up to date (`inputs.rs`).
//! 4. **A suspended JobSet that has run** is frozen. When it is unsuspended (`decide/resume.rs`, `job_set.rs`), its pods get the current
//!    placement (`placement`, `decide/placement.rs`, `observe/placement.rs`). Jobs with an earlier placement are deleted
//!    (`observe/jobs.rs`, `act/jobs.rs`).
//! 5. **A running JobSet** is suspended if the TrainJob is (`decide/suspend.rs`). Otherwise, the objects beside it are checked if it or the
//!    TrainJob has changed (`decide/running.rs`), and while it may lack pods, it is checked whether they can be created
//!    (`observe/creation.rs`).
//! 6. **In every case**, the status is written (`status.rs`), a JobSet that is overdue is deleted, and an annotation shows why the TrainJob
//!    cannot be reconciled (`decide/finish.rs`, `act/train_job.rs`). The result is remembered in memory (`decide/remember.rs`,
//!    `act/bookkeeping.rs`).
//!
//! `observed/observations.rs` has the facts of a reconcile, and `observed/learn.rs` adds the result of each step to them.
//! `observe/snapshot.rs` reads the snapshot.
//!
//! Decisions depend only on facts that can be copied and compared: `failure.rs` has those of errors (`error`), and `artifacts.rs` holds the
//! large values that they stand for. `vouch.rs` says which snapshots are trusted. `owner.rs` and `object_version.rs` protect writes against
//! objects of other owners and against concurrent changes. `context.rs` gives steps the API server and threads. `live.rs` reads a TrainJob
//! for `trainyard explain`.
//!
//! [`decide`] documents why this order is safe.

mod act;
mod artifacts;
mod context;
mod decide;
mod defaults;
mod deleted_job_sets;
mod error;
mod failure;
mod fetch;
mod inputs;
mod job_set;
mod last_reconcile;
mod live;
mod not_served;
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
mod vouch;
mod walk;

pub(crate) use error::NOT_CREATED;
pub use error::{ReconcileError, SnapshotError};
pub use live::{Live, LiveError, live, live_job_set};
pub use object_ref::ObjectRef;
pub use reconciler::{Reconciler, Stores};
pub use snapshot::Snapshot;
pub use walk::ReconcileOutcome;
pub(crate) use walk::TEMPORARY;
