//! Names that clients, the reference implementation and JobSet share. They must not change.

/// The API group of TrainJob and both runtimes.
pub const TRAINER_GROUP: &str = "trainer.kubeflow.org";
/// The `apiVersion` of TrainJob and both runtimes.
pub const TRAINER_API_VERSION: &str = "trainer.kubeflow.org/v1alpha1";
/// The API group that TrainJob and both runtimes had in early proposals.
pub const OLD_GROUP: &str = "kubeflow.org";
/// The kind of a TrainJob.
pub const TRAIN_JOB: &str = "TrainJob";
/// The kind of a runtime in a namespace.
pub const TRAINING_RUNTIME: &str = "TrainingRuntime";
/// The kind of a runtime for the whole cluster; the default of `spec.runtimeRef.kind`.
pub const CLUSTER_TRAINING_RUNTIME: &str = "ClusterTrainingRuntime";

/// The API group of JobSet.
pub const JOB_SET_GROUP: &str = "jobset.x-k8s.io";
/// The `apiVersion` of JobSet.
pub const JOB_SET_API_VERSION: &str = "jobset.x-k8s.io/v1alpha2";
/// The kind of a JobSet.
pub const JOB_SET: &str = "JobSet";

/// Trainyard's own API group.
pub const TRAINYARD_GROUP: &str = "trainyard.dev";

/// Annotation of a JobSet that was unsuspended, and of the snapshot of a JobSet that has run. Such a snapshot is pinned.
pub const STARTED_ANNOTATION: &str = "trainyard.dev/started";
/// Annotation of a JobSet that was recreated.
pub const RECREATED_ANNOTATION: &str = "trainyard.dev/recreated";
/// Annotation of a suspended JobSet that has never run: the digest of its inputs.
pub const INPUTS_ANNOTATION: &str = "trainyard.dev/inputs";
/// Annotation of a suspended JobSet whose Jobs may still have entries that were removed from the placement of its pods.
pub const REMOVED_PLACEMENT_ANNOTATION: &str = "trainyard.dev/taken-placement";
/// Annotation of a JobSet: the digests of the snapshot that it was applied with.
pub const SNAPSHOT_ANNOTATION: &str = "trainyard.dev/snapshot";

/// Whether it is an annotation of a JobSet that only the controller writes.
#[must_use]
pub fn is_mark(annotation: &str) -> bool {
    [
        STARTED_ANNOTATION,
        RECREATED_ANNOTATION,
        INPUTS_ANNOTATION,
        REMOVED_PLACEMENT_ANNOTATION,
        SNAPSHOT_ANNOTATION,
    ]
    .contains(&annotation)
}

/// Label on the metadata of a Job template: the step of the TrainJob that the replicated job runs.
pub const ANCESTOR_LABEL: &str = "trainer.kubeflow.org/trainjob-ancestor-step";
/// Value of [`ANCESTOR_LABEL`]: the pods that train.
pub const ANCESTOR_TRAINER: &str = "trainer";
/// Value of [`ANCESTOR_LABEL`]: the pod that fetches the dataset.
pub const ANCESTOR_DATASET_INITIALIZER: &str = "dataset-initializer";
/// Value of [`ANCESTOR_LABEL`]: the pod that fetches the model.
pub const ANCESTOR_MODEL_INITIALIZER: &str = "model-initializer";

/// Label on a runtime: its framework, such as `torch`. The Kubeflow SDK lists only runtimes with this label.
pub const FRAMEWORK_LABEL: &str = "trainer.kubeflow.org/framework";
/// Label on a runtime. Using a runtime with the value `deprecated` is a warning.
pub const SUPPORT_LABEL: &str = "trainer.kubeflow.org/support";
/// Value of [`SUPPORT_LABEL`] for a deprecated runtime.
pub const SUPPORT_DEPRECATED: &str = "deprecated";

/// Annotation on a runtime: the list of `spec.plugins` as JSON, for clusters that still have the reference's CRDs.
pub const PLUGINS_ANNOTATION: &str = "trainyard.dev/plugins";

/// Annotation of a JobSet: the plugins that it was rendered with, each with the first digits of its digest, as `NAME@DIGITS` with commas between
/// them. It is written if plugins are declared in the cluster.
pub const RENDERED_WITH_ANNOTATION: &str = PLUGINS_ANNOTATION;

/// Annotation of a JobSet: the name of the PluginRevision that it was rendered with. It is written if plugins are declared in the cluster.
pub const REVISION_ANNOTATION: &str = "trainyard.dev/plugin-revision";

/// Annotation on a TrainJob: the names of plugins that are active for every TrainJob and that it disables for itself, separated by commas.
pub const DISABLED_PLUGINS_ANNOTATION: &str = "trainyard.dev/disabled-plugins";
/// Annotation on a TrainJob: values for parameters of plugins that its runtime activates, by plugin, as JSON.
pub const PLUGIN_PARAMETERS_ANNOTATION: &str = "trainyard.dev/plugin-parameters";

/// Annotation on a TrainJob, in place of `spec.trainer.resourceClaimsPerNode` for clients that would drop the field, and on a
/// runtime: resource claims for the pods of each node, as JSON.
pub const RESOURCE_CLAIMS_ANNOTATION: &str = "trainyard.dev/resource-claims-per-node";

/// Annotation on a TrainJob that cannot be reconciled, with the reason and the affected object. The controller writes and removes it.
pub const ERROR_ANNOTATION: &str = "trainyard.dev/reconcile-error";

/// Env var with the URI that an initializer fetches.
pub const STORAGE_URI_ENV: &str = "STORAGE_URI";

/// Default of `spec.managedBy`: this controller, with the name of the reference's.
pub const MANAGED_BY_TRAINER: &str = "trainer.kubeflow.org/trainjob-controller";
/// Value of `spec.managedBy` that leaves a TrainJob to Kueue's MultiKueue.
pub const MANAGED_BY_MULTIKUEUE: &str = "kueue.x-k8s.io/multikueue";

/// Label on a TrainJob: the LocalQueue in which Kueue queues it.
pub const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";
/// The LocalQueue of TrainJobs without [`QUEUE_LABEL`], if the namespace has one of this name: Kueue's webhook sets the label.
pub const DEFAULT_QUEUE: &str = "default";
/// Manager of the entries of `spec.runtimePatches` that Kueue writes.
pub const KUEUE_MANAGER: &str = "kueue.x-k8s.io/manager";
/// Manager of the entries of `spec.runtimePatches` that are converted from old overrides; further ones end in `-2`, `-3`, ...
pub const OVERRIDES_MANAGER: &str = "trainer.kubeflow.org/pod-template-overrides";

/// Name of the replicated job, and of the container, that trains.
pub const NODE: &str = "node";
/// Name of the volume that initializers fill and the trainer reads.
pub const INITIALIZER_VOLUME: &str = "initializer";
