//! The kinds of our group.

use trainyard_api::names;
use trainyard_structural::{CompileError, Options, Scope};

use super::error::DocumentError;

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

    /// Returns the kind's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TrainJob => names::TRAIN_JOB,
            Self::TrainingRuntime => names::TRAINING_RUNTIME,
            Self::ClusterTrainingRuntime => names::CLUSTER_TRAINING_RUNTIME,
        }
    }

    /// Returns the kind's name in URLs.
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

    /// Returns the properties that the CRD defines in addition to the schema.
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

    pub(super) fn not_compiled(self, problem: CompileError) -> DocumentError {
        DocumentError::Schema {
            name: self.document().to_owned(),
            problem,
        }
    }
}
