//! What is remembered of the last reconcile of a TrainJob: its result, which lets the next one skip what is up to date, and its write of the
//! annotation.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

use super::{object_ref::ObjectRef, object_version::ObjectVersion};
use crate::generation::CommonInputs;

/// The result of a reconcile after which everything was up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastReconcile {
    /// The TrainJob's UID.
    pub(crate) uid: Box<str>,
    /// The TrainJob's fingerprint.
    pub(crate) fingerprint: u64,
    /// The inputs that it shared with the other TrainJobs of its generation.
    pub(crate) common: CommonInputs,
    /// The version of its JobSet.
    pub(crate) job_set: Option<u64>,
    /// The objects beside the JobSet; `None` if they were not read since the controller started.
    pub(crate) objects: Option<Arc<[AppliedObject]>>,
}

/// An object beside a JobSet, with its last apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AppliedObject {
    pub(crate) object: ObjectRef,
    /// `None` if that is not known, or nothing was applied.
    pub(crate) applied: Option<Applied>,
}

impl AppliedObject {
    /// Returns objects with unknown applies.
    pub(crate) fn unknown(objects: &[ObjectRef]) -> Arc<[Self]> {
        let unknown = |object: &ObjectRef| Self {
            object: object.clone(),
            applied: None,
        };
        objects.iter().map(unknown).collect()
    }

    /// Whether the object was applied last at that version.
    pub(crate) fn is_at(&self, read: &ObjectVersion) -> bool {
        let applied = self.applied.as_ref();
        applied.is_some_and(|applied| applied.version == read.version)
    }

    /// Whether this content was applied last.
    pub(crate) fn has(&self, content: u64) -> bool {
        let applied = self.applied.as_ref();
        applied.is_some_and(|applied| applied.content == content)
    }
}

/// The last apply of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    /// A number that differs if the content does.
    pub(crate) content: u64,
    /// The version that the object had then.
    pub(crate) version: Option<Box<str>>,
}

/// A write of the annotation about the error.
#[derive(Clone, Debug)]
pub(crate) struct AnnotationWrite {
    /// The TrainJob's UID.
    pub(crate) uid: Box<str>,
    /// The text; `None` if the annotation was removed.
    pub(crate) text: Option<Arc<str>>,
    /// When the reconcile that wrote it began.
    pub(crate) at: Timestamp,
    /// Whether the API server refused it, which it would do again soon.
    pub(crate) refused: bool,
}
