//! The CRDs of our kinds.

use serde_json::{Value, json};
use trainyard_api::names;
use trainyard_structural::{Schema, Scope};

use super::{error::DocumentError, expand, kind::Kind};

/// The only version of the group.
const VERSION: &str = "v1alpha1";

impl Kind {
    /// Returns the kind's schema, with all placeholders expanded.
    ///
    /// # Errors
    /// A placeholder that cannot be expanded.
    pub fn schema(self) -> Result<Value, DocumentError> {
        expand(&json!({ "$document": self.document() }))
    }

    /// Compiles the schema as an API server compiles a CRD, with all patterns, rules and defaults.
    fn compile(self) -> Result<Schema, DocumentError> {
        Schema::compile(&self.schema()?).map_err(|problem| self.not_compiled(problem))
    }

    /// Returns the kind's CustomResourceDefinition.
    ///
    /// # Errors
    /// A placeholder that cannot be expanded, or a rule that does not compile.
    pub fn crd(self) -> Result<Value, DocumentError> {
        self.compile()?;
        let schema = self.schema()?;
        let version = match self {
            Self::TrainJob => json!({
                "name": VERSION, "served": true, "storage": true,
                "additionalPrinterColumns": [
                    {"name": "State", "type": "string", "jsonPath": ".status.conditions[?(@.status==\"True\")].type"},
                    {"name": "Error", "type": "string", "jsonPath": error_column()},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }),
            _ => json!({
                "name": VERSION, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            }),
        };
        Ok(definition(
            names::TRAINER_GROUP,
            self.name(),
            self.plural(),
            self.options().scope,
            version,
        ))
    }
}

/// Returns the CustomResourceDefinition of a kind with one version. Helm keeps it when the chart is uninstalled, so all objects of the kind are
/// kept.
#[must_use]
pub fn definition(group: &str, kind: &str, plural: &str, scope: Scope, version: Value) -> Value {
    let scope = match scope {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "annotations": annotations()},
        "spec": {
            "group": group,
            "names": {
                "kind": kind, "listKind": format!("{kind}List"),
                "plural": plural, "singular": kind.to_lowercase(),
            },
            "scope": scope,
            "versions": [version],
        },
    })
}

/// Returns the JSONPath of the annotation with a TrainJob's error, for `kubectl get`. Dots in its key are escaped.
fn error_column() -> String {
    let key = names::ERROR_ANNOTATION.replace('.', "\\.");
    format!(".metadata.annotations.{key}")
}

/// Returns the annotations by which Helm, Argo CD and Flux keep a CRD when the release or the application is removed, because Kubernetes deletes
/// all objects of a CRD with it. Argo CD applies CRDs before what is in the same application.
fn annotations() -> Value {
    json!({
        "helm.sh/resource-policy": "keep",
        "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
        "argocd.argoproj.io/sync-wave": "-1",
        "kustomize.toolkit.fluxcd.io/prune": "disabled",
    })
}
