//! Failures of steps and reconciles, as far as decisions depend on them.

use trainyard_api::names;

use super::{
    error::{ErrorSummary, ReconcileError},
    object_ref::ObjectRef,
};

/// Stands for an error that a step met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ErrorId(pub(crate) usize);

/// Why a step failed, or a reconcile can't go on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ReconcileFailure {
    /// A step met an error.
    Met {
        error: ErrorId,
        class: Class,
        summary: ErrorSummary,
    },
    /// What was observed does not let the reconcile go on.
    Found(Finding),
}

/// What of an error decisions depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// The TrainJob can't be rendered from what exists.
    Input,
    /// Its plugins are not those of its plan.
    PlanIsPinned,
    /// Its plugins fail otherwise.
    Plugins,
    /// The snapshot can't be used.
    Snapshot,
    /// An object is another owner's.
    Foreign,
    /// Something changed in between.
    Conflict,
    /// JobSet does not let fields change.
    Immutable,
    /// The API server does not accept the object otherwise.
    Invalid,
    /// The API server, or a webhook, does not allow it otherwise.
    Refused,
    /// Whatever else.
    Other,
}

/// What was observed that does not let a reconcile go on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Finding {
    /// The JobSet is that of an earlier TrainJob of the same name.
    StaleJobSet,
    /// It is not known whether the JobSet ended.
    EndIsUnknown,
    /// Jobs still have the placement of an earlier admission.
    JobsHaveOldPlacement,
    /// An object beside a running JobSet is gone and can't be created again.
    Lost(ObjectRef, Cause),
    /// A Secret with the keys of a running JobSet is gone.
    KeysLost(ObjectRef),
}

/// Why an object can't be created again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    /// The snapshot is gone.
    NoSnapshot,
    /// It is not rendered any more.
    NotRendered,
}

impl Class {
    /// That of an error.
    pub(crate) fn of(error: &ReconcileError) -> Self {
        match error {
            ReconcileError::PlanIsPinned { .. } => Self::PlanIsPinned,
            ReconcileError::Snapshot(_) => Self::Snapshot,
            ReconcileError::Foreign { .. } => Self::Foreign,
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
    /// The error of the TrainJob of this name.
    pub(crate) fn error(&self, job: &str) -> ReconcileError {
        let name = job.to_owned();
        match self {
            Self::StaleJobSet => ReconcileError::Stale {
                kind: names::JOB_SET.to_owned(),
                name,
            },
            Self::EndIsUnknown => ReconcileError::EndIsUnknown { name },
            Self::JobsHaveOldPlacement => ReconcileError::JobsHaveOldPlacement { name },
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
    /// The summary of the error that it stands for, of the TrainJob of this name.
    pub(crate) fn summary(&self, job: &str) -> ErrorSummary {
        match self {
            Self::Met { summary, .. } => summary.clone(),
            Self::Found(finding) => ErrorSummary::of(&finding.error(job)),
        }
    }

    fn class(&self) -> Option<Class> {
        match self {
            Self::Met { class, .. } => Some(*class),
            Self::Found(_) => None,
        }
    }

    /// Whether it is of that class.
    pub(crate) fn is(&self, class: Class) -> bool {
        self.class() == Some(class)
    }

    /// Whether something changed in between.
    pub(crate) fn is_conflict(&self) -> bool {
        self.is(Class::Conflict)
    }

    /// Whether an object that could not be created may exist: another controller created it meanwhile, and it may have used up a quota.
    pub(crate) fn may_exist(&self) -> bool {
        self.is(Class::Conflict) || self.is(Class::Refused)
    }

    /// Whether the TrainJob can't be rendered from what exists.
    pub(crate) fn is_of_input(&self) -> bool {
        self.is(Class::Input)
    }

    /// Whether a TrainJob that has run can't be rendered by its plugins, or by the plan that it is pinned to.
    pub(crate) fn is_of_plugins(&self) -> bool {
        matches!(self.class(), Some(Class::PlanIsPinned | Class::Plugins))
    }

    /// Whether the API server, or a webhook, does not allow it.
    pub(crate) fn is_rejection(&self) -> bool {
        matches!(
            self.class(),
            Some(Class::Immutable | Class::Invalid | Class::Refused)
        )
    }

    /// Whether another owner may have an object of that name: it has other managers' fields, or its own controller.
    pub(crate) fn is_contested(&self) -> bool {
        matches!(
            self.class(),
            Some(Class::Conflict | Class::Immutable | Class::Invalid)
        )
    }
}
