//! The parts of errors that decisions depend on.

use trainyard_api::names;

use super::{
    error::{ErrorSummary, ReconcileError, SnapshotError},
    object_ref::ObjectRef,
};

/// The id of an error that a step returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ErrorId(pub(crate) usize);

/// Why a step failed, or a reconcile cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ReconcileFailure {
    /// A step returned an error.
    Failed {
        error: ErrorId,
        class: Class,
        summary: ErrorSummary,
    },
    /// The observed state does not allow the reconcile to continue.
    Blocked(Finding),
}

/// The class of an error, as far as decisions depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// The TrainJob cannot be rendered from its current inputs.
    Input,
    /// The loaded plugins differ from those of its pinned plan.
    PlanIsPinned,
    /// Its plugins fail for another reason.
    Plugins,
    /// The snapshot cannot be used.
    Snapshot,
    /// An object belongs to another owner.
    Foreign,
    /// The API server does not serve the kind of an object.
    NotServed,
    /// Another client changed the object concurrently.
    Conflict,
    /// The changed fields of the JobSet are immutable.
    Immutable,
    /// The API server rejects the object as invalid for another reason.
    Invalid,
    /// The API server or a webhook denies the request for another reason.
    Refused,
    /// Any other error.
    Other,
}

/// An observed state that does not allow a reconcile to continue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Finding {
    /// The JobSet belongs to an earlier TrainJob of the same name.
    StaleJobSet,
    /// It is not known whether the JobSet ended.
    EndIsUnknown,
    /// Jobs still have the placement of an earlier admission.
    JobsHaveOldPlacement,
    /// An object beside a running JobSet is missing and cannot be recreated.
    Lost(ObjectRef, Cause),
    /// A Secret with the keys of a running JobSet is missing.
    KeysLost(ObjectRef),
    /// The JobSet was deleted, and is kept by these finalizers. It is recreated unless its TrainJob is deleted too.
    JobSetIsDeleted {
        finalizers: Box<str>,
        is_recreated: bool,
    },
    /// Nothing vouches for an immutable snapshot.
    UnprovenSnapshot,
}

/// Why an object cannot be recreated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    /// The snapshot is missing.
    NoSnapshot,
    /// The TrainJob no longer renders it.
    NotRendered,
}

impl Class {
    /// Returns the class of an error.
    pub(crate) fn of(error: &ReconcileError) -> Self {
        match error {
            ReconcileError::PlanIsPinned { .. } => Self::PlanIsPinned,
            ReconcileError::Snapshot(_) => Self::Snapshot,
            ReconcileError::Foreign { .. } => Self::Foreign,
            ReconcileError::NotServed { .. } => Self::NotServed,
            ReconcileError::Conflict { .. } => Self::Conflict,
            error if error.is_of_input() => Self::Input,
            error if error.is_of_plugins() => Self::Plugins,
            error if error.is_immutable() => Self::Immutable,
            error => match error.status() {
                Some(422) => Self::Invalid,
                Some(400 | 403) => Self::Refused,
                _ => Self::Other,
            },
        }
    }
}

impl Finding {
    /// Returns the error for the TrainJob of this name.
    pub(crate) fn error(&self, job: &str) -> ReconcileError {
        let name = job.to_owned();
        match self {
            Self::StaleJobSet => ReconcileError::Stale {
                kind: names::JOB_SET.to_owned(),
                name,
            },
            Self::EndIsUnknown => ReconcileError::EndIsUnknown { name },
            Self::JobsHaveOldPlacement => ReconcileError::JobsHaveOldPlacement { name },
            Self::JobSetIsDeleted {
                finalizers,
                is_recreated,
            } => ReconcileError::Deleting {
                kind: names::JOB_SET.to_owned(),
                name,
                finalizers: finalizers.to_string(),
                is_recreated: *is_recreated,
            },
            Self::UnprovenSnapshot => SnapshotError::unproven(job).into(),
            Self::KeysLost(secret) => ReconcileError::KeysLost {
                name: secret.name.to_string(),
            },
            Self::Lost(object, cause) => ReconcileError::Lost {
                kind: object.kind.to_string(),
                name: object.name.to_string(),
                why: match cause {
                    Cause::NoSnapshot => "the snapshot is missing too",
                    Cause::NotRendered => "the TrainJob has changed and no longer creates it",
                },
            },
        }
    }
}

impl ReconcileFailure {
    /// Returns the summary of the error, for the TrainJob of this name.
    pub(crate) fn summary(&self, job: &str) -> ErrorSummary {
        match self {
            Self::Failed { summary, .. } => summary.clone(),
            Self::Blocked(finding) => ErrorSummary::of(&finding.error(job)),
        }
    }

    fn class(&self) -> Option<Class> {
        match self {
            Self::Failed { class, .. } => Some(*class),
            Self::Blocked(_) => None,
        }
    }

    /// Whether it is of that class.
    pub(crate) fn is(&self, class: Class) -> bool {
        self.class() == Some(class)
    }

    /// Whether another client changed the object concurrently.
    pub(crate) fn is_conflict(&self) -> bool {
        self.is(Class::Conflict)
    }

    /// Whether an object that could not be created may exist: another controller may have created it, which may have used up a quota.
    pub(crate) fn may_exist(&self) -> bool {
        self.is(Class::Conflict) || self.is(Class::Refused)
    }

    /// Whether the TrainJob cannot be rendered from its current inputs.
    pub(crate) fn is_of_input(&self) -> bool {
        self.is(Class::Input)
    }

    /// Whether a TrainJob that has run cannot be rendered by its plugins or its pinned plan.
    pub(crate) fn is_of_plugins(&self) -> bool {
        matches!(self.class(), Some(Class::PlanIsPinned | Class::Plugins))
    }

    /// Whether the API server or a webhook rejected the request.
    pub(crate) fn is_rejection(&self) -> bool {
        matches!(
            self.class(),
            Some(Class::Immutable | Class::Invalid | Class::Refused)
        )
    }

    /// Whether another owner may have an object of that name, with fields of other managers or its own controller reference.
    pub(crate) fn is_contested(&self) -> bool {
        matches!(
            self.class(),
            Some(Class::Conflict | Class::Immutable | Class::Invalid)
        )
    }
}
