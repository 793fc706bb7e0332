//! The version of an object that an action was decided for.

use kube::api::ObjectMeta;

/// The UID and the version of an object. A write with it as a precondition fails if the object was replaced or has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectVersion {
    pub(crate) uid: Option<Box<str>>,
    pub(crate) version: Option<Box<str>>,
}

impl ObjectVersion {
    /// Returns the version of an object.
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        Self {
            uid: metadata.uid.as_deref().map(Into::into),
            version: metadata.resource_version.as_deref().map(Into::into),
        }
    }
}
