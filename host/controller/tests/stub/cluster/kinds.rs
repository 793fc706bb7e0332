//! The kinds that are served.

/// Kind, plural, `apiVersion`, and whether its objects have namespaces.
pub(super) const KINDS: [(&str, &str, &str, bool); 24] = [
    (
        "TrainJob",
        "trainjobs",
        "trainer.kubeflow.org/v1alpha1",
        true,
    ),
    (
        "TrainingRuntime",
        "trainingruntimes",
        "trainer.kubeflow.org/v1alpha1",
        true,
    ),
    (
        "ClusterTrainingRuntime",
        "clustertrainingruntimes",
        "trainer.kubeflow.org/v1alpha1",
        false,
    ),
    ("JobSet", "jobsets", "jobset.x-k8s.io/v1alpha2", true),
    (
        "PolicyPlugin",
        "policyplugins",
        "trainyard.dev/v1alpha1",
        false,
    ),
    (
        "PluginRevision",
        "pluginrevisions",
        "trainyard.dev/v1alpha1",
        false,
    ),
    ("Lease", "leases", "coordination.k8s.io/v1", true),
    ("Job", "jobs", "batch/v1", true),
    ("ConfigMap", "configmaps", "v1", true),
    ("Secret", "secrets", "v1", true),
    ("Event", "events", "v1", true),
    ("Node", "nodes", "v1", false),
    ("Pod", "pods", "v1", true),
    // Its plural does not follow from the kind.
    ("Queue", "kai-queues", "scheduling.run.ai/v2", false),
    (
        "TokenReview",
        "tokenreviews",
        "authentication.k8s.io/v1",
        false,
    ),
    (
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        "v1",
        true,
    ),
    (
        "PodGroup",
        "podgroups",
        "scheduling.x-k8s.io/v1alpha1",
        true,
    ),
    (
        "PodGroup",
        "podgroups",
        "scheduling.volcano.sh/v1beta1",
        true,
    ),
    (
        "ResourceClaim",
        "resourceclaims",
        "resource.k8s.io/v1",
        true,
    ),
    (
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        "resource.k8s.io/v1",
        true,
    ),
    (
        "PriorityClass",
        "priorityclasses",
        "scheduling.k8s.io/v1",
        false,
    ),
    ("RuntimeClass", "runtimeclasses", "node.k8s.io/v1", false),
    (
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/v1",
        false,
    ),
    (
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "admissionregistration.k8s.io/v1",
        false,
    ),
];
