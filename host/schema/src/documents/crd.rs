//! The CRDs of our kinds.

use serde_json::{Value, json};
use trainyard_api::names;
use trainyard_structural::{CompileError, Options, Schema, Scope};

use super::{DocumentError, compact, expand};

/// The only version of the group.
const VERSION: &str = "v1alpha1";

/// A kind of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TrainJob.
    TrainJob,
    /// TrainingRuntime.
    TrainingRuntime,
    /// ClusterTrainingRuntime.
    ClusterTrainingRuntime,
}

impl Kind {
    /// All kinds, in the order in which their CRDs are printed.
    pub const ALL: [Self; 3] = [
        Self::ClusterTrainingRuntime,
        Self::TrainingRuntime,
        Self::TrainJob,
    ];

    /// The kind's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TrainJob => names::TRAIN_JOB,
            Self::TrainingRuntime => names::TRAINING_RUNTIME,
            Self::ClusterTrainingRuntime => names::CLUSTER_TRAINING_RUNTIME,
        }
    }

    /// The kind's name in URLs.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::TrainJob => "trainjobs",
            Self::TrainingRuntime => "trainingruntimes",
            Self::ClusterTrainingRuntime => "clustertrainingruntimes",
        }
    }

    pub(super) const fn document(self) -> &'static str {
        match self {
            Self::TrainJob => "train-job",
            Self::TrainingRuntime | Self::ClusterTrainingRuntime => "runtime",
        }
    }

    /// Returns what the CRD defines beside the schema.
    #[must_use]
    pub const fn options(self) -> Options {
        Options {
            scope: match self {
                Self::ClusterTrainingRuntime => Scope::Cluster,
                _ => Scope::Namespaced,
            },
            status_subresource: matches!(self, Self::TrainJob),
        }
    }

    /// Returns the kind's schema, with all placeholders expanded.
    ///
    /// # Errors
    /// A placeholder that can't be expanded.
    pub fn schema(self) -> Result<Value, DocumentError> {
        expand(&json!({ "$document": self.document() }))
    }

    /// Returns the compiled schema. Patterns and rules are compiled when they are first needed.
    ///
    /// # Errors
    /// The generated file is invalid.
    pub fn compiled_schema(self) -> Result<Schema, DocumentError> {
        compact::compiled(self)
    }

    /// Compiles the schema as an API server compiles a CRD, with all patterns, rules and defaults.
    fn compile(self) -> Result<Schema, DocumentError> {
        Schema::compile(&self.schema()?).map_err(|problem| self.not_compiled(problem))
    }

    pub(super) fn not_compiled(self, problem: CompileError) -> DocumentError {
        DocumentError::Schema {
            name: self.document().to_owned(),
            problem,
        }
    }

    /// Returns the kind's CustomResourceDefinition. Helm keeps it, and so all objects of the kind, when the chart is uninstalled.
    ///
    /// # Errors
    /// A placeholder that can't be expanded, or a rule that does not compile.
    pub fn crd(self) -> Result<Value, DocumentError> {
        self.compile()?;
        let schema = self.schema()?;
        let version = match self {
            Self::TrainJob => json!({
                "name": VERSION, "served": true, "storage": true,
                "additionalPrinterColumns": [
                    {"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type"},
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
        let scope = match self.options().scope {
            Scope::Cluster => "Cluster",
            Scope::Namespaced => "Namespaced",
        };
        Ok(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{}.{}", self.plural(), names::TRAINER_GROUP),
                "annotations": {"helm.sh/resource-policy": "keep"},
            },
            "spec": {
                "group": names::TRAINER_GROUP,
                "names": {
                    "kind": self.name(), "listKind": format!("{}List", self.name()),
                    "plural": self.plural(), "singular": self.name().to_lowercase(),
                },
                "scope": scope,
                "versions": [version],
            },
        }))
    }
}

/// The path of the annotation about a TrainJob's error, for `kubectl get`. Of a key, the dots are escaped.
fn error_column() -> String {
    let key = names::ERROR_ANNOTATION.replace('.', "\\.");
    format!(".metadata.annotations.{key}")
}
