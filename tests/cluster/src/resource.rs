//! Kinds of objects, by their paths on an API server.

use serde_json::Value;
use thiserror::Error;

/// A kind of object, and where its objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// `/api/v1`, or `/apis/GROUP/VERSION`.
    pub root: String,
    /// The kind's name in paths.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// A CustomResourceDefinition that lacks what names its kind.
#[derive(Clone, Debug, Error)]
#[error("a CustomResourceDefinition without {0}")]
pub struct UnknownKind(&'static str);

impl Resource {
    /// A kind whose objects live in namespaces.
    pub fn namespaced(root: &str, plural: &str) -> Self {
        Self {
            root: root.to_owned(),
            plural: plural.to_owned(),
            namespaced: true,
        }
    }

    /// A kind whose objects live in none.
    pub fn cluster_wide(root: &str, plural: &str) -> Self {
        Self {
            root: root.to_owned(),
            plural: plural.to_owned(),
            namespaced: false,
        }
    }

    /// Namespaces.
    pub fn namespaces() -> Self {
        Self::cluster_wide("/api/v1", "namespaces")
    }

    /// CustomResourceDefinitions.
    pub fn crds() -> Self {
        Self::cluster_wide("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions")
    }

    /// Pods.
    pub fn pods() -> Self {
        Self::namespaced("/api/v1", "pods")
    }

    /// ServiceAccounts.
    pub fn service_accounts() -> Self {
        Self::namespaced("/api/v1", "serviceaccounts")
    }

    /// Jobs.
    pub fn jobs() -> Self {
        Self::namespaced("/apis/batch/v1", "jobs")
    }

    /// JobSets.
    pub fn jobsets() -> Self {
        Self::namespaced("/apis/jobset.x-k8s.io/v1alpha2", "jobsets")
    }

    /// The kind that a CustomResourceDefinition defines, in its first version.
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

    /// The path of all objects of a namespace, or of the cluster where the kind knows none.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        let Self { root, plural, .. } = self;
        if self.namespaced {
            format!("{root}/namespaces/{namespace}/{plural}")
        } else {
            format!("{root}/{plural}")
        }
    }
}
