//! Kinds of objects, by their paths on an API server.

use serde_json::Value;
use thiserror::Error;

/// A kind of object, with its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// `/api/v1`, or `/apis/GROUP/VERSION`.
    pub root: String,
    /// The kind's plural name in paths.
    pub plural: String,
    /// Whether the kind is namespaced.
    pub namespaced: bool,
}

/// A CustomResourceDefinition without the names of its kind.
#[derive(Clone, Debug, Error)]
#[error("a CustomResourceDefinition without {0}")]
pub struct UnknownKind(&'static str);

impl Resource {
    /// Returns a namespaced kind.
    pub fn namespaced(root: &str, plural: &str) -> Self {
        Self {
            root: root.to_owned(),
            plural: plural.to_owned(),
            namespaced: true,
        }
    }

    /// Returns a cluster-scoped kind.
    pub fn cluster_wide(root: &str, plural: &str) -> Self {
        Self {
            root: root.to_owned(),
            plural: plural.to_owned(),
            namespaced: false,
        }
    }

    /// Returns the kind Namespace.
    pub fn namespaces() -> Self {
        Self::cluster_wide("/api/v1", "namespaces")
    }

    /// Returns the kind CustomResourceDefinition.
    pub fn crds() -> Self {
        Self::cluster_wide("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions")
    }

    /// Returns the kind Pod.
    pub fn pods() -> Self {
        Self::namespaced("/api/v1", "pods")
    }

    /// Returns the kind ServiceAccount.
    pub fn service_accounts() -> Self {
        Self::namespaced("/api/v1", "serviceaccounts")
    }

    /// Returns the kind Job.
    pub fn jobs() -> Self {
        Self::namespaced("/apis/batch/v1", "jobs")
    }

    /// Returns the kind JobSet.
    pub fn jobsets() -> Self {
        Self::namespaced("/apis/jobset.x-k8s.io/v1alpha2", "jobsets")
    }

    /// Returns the kind of a CustomResourceDefinition, in its first version.
    ///
    /// # Errors
    /// The definition lacks group, version, plural name or scope.
    pub fn defined_by(crd: &Value) -> Result<Self, UnknownKind> {
        let text = |pointer: &'static str| {
            let text = crd.pointer(pointer).and_then(Value::as_str);
            text.ok_or(UnknownKind(pointer))
        };
        let (group, version) = (text("/spec/group")?, text("/spec/versions/0/name")?);
        Ok(Self {
            root: format!("/apis/{group}/{version}"),
            plural: text("/spec/names/plural")?.to_owned(),
            namespaced: text("/spec/scope")? == "Namespaced",
        })
    }

    /// Returns the path of all objects of a namespace, or of the cluster for a cluster-scoped kind.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        let Self { root, plural, .. } = self;
        if self.namespaced {
            format!("{root}/namespaces/{namespace}/{plural}")
        } else {
            format!("{root}/{plural}")
        }
    }
}
