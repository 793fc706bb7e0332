//! Kinds that plugins cannot emit, even with a grant.
//!
//! They are compared by resource, as in roles: `v1/POD`, and any other kind with the plural `pods`, would use the permissions for Pods.

use super::ObjectKindError;
use crate::names::resource_of;

/// Resources that grant privileges by themselves, and those that only the host creates, in every group.
const POWERFUL: &[&str] = &[
    "pods",
    // A Binding sets the node of a Pod.
    "bindings",
    "replicationcontrollers",
    "replicasets",
    "deployments",
    "statefulsets",
    "daemonsets",
    "jobs",
    "cronjobs",
    "roles",
    "rolebindings",
    "clusterroles",
    "clusterrolebindings",
    "serviceaccounts",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "mutatingadmissionpolicies",
    "validatingadmissionpolicies",
    "customresourcedefinitions",
    "apiservices",
    "jobsets",
    "trainjobs",
    "trainingruntimes",
    "clustertrainingruntimes",
];

/// Further cluster-scoped resources of Kubernetes' own groups.
const CLUSTER_SCOPED: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "namespaces",
            "nodes",
            "persistentvolumes",
            "componentstatuses",
        ],
    ),
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingadmissionpolicybindings",
            "validatingadmissionpolicybindings",
        ],
    ),
    (
        "authentication.k8s.io",
        &["tokenreviews", "selfsubjectreviews"],
    ),
    (
        "authorization.k8s.io",
        &[
            "subjectaccessreviews",
            "selfsubjectaccessreviews",
            "selfsubjectrulesreviews",
        ],
    ),
    (
        "certificates.k8s.io",
        &["certificatesigningrequests", "clustertrustbundles"],
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        &["flowschemas", "prioritylevelconfigurations"],
    ),
    ("internal.apiserver.k8s.io", &["storageversions"]),
    (
        "networking.k8s.io",
        &["ingressclasses", "ipaddresses", "servicecidrs"],
    ),
    ("node.k8s.io", &["runtimeclasses"]),
    (
        "resource.k8s.io",
        &["deviceclasses", "devicetaintrules", "resourceslices"],
    ),
    ("scheduling.k8s.io", &["priorityclasses"]),
    (
        "storage.k8s.io",
        &[
            "csidrivers",
            "csinodes",
            "storageclasses",
            "volumeattachments",
            "volumeattributesclasses",
        ],
    ),
    ("storagemigration.k8s.io", &["storageversionmigrations"]),
];

/// Why plugins cannot emit objects of a kind. `None` if they can.
pub(super) fn refused(api_version: &str, kind: &str) -> Option<ObjectKindError> {
    let resource = resource_of(kind);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_among = |resources: &[&str]| resources.contains(&&*resource);
    let is_cluster_scoped = |(of, resources): &(&str, &[&str])| *of == group && is_among(resources);
    if is_among(POWERFUL) {
        Some(ObjectKindError::Powerful)
    } else if CLUSTER_SCOPED.iter().any(is_cluster_scoped) {
        Some(ObjectKindError::ClusterScoped)
    } else {
        None
    }
}
