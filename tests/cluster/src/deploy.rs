//! Applies the controller's ServiceAccount and roles in deploy/.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::Value;
use trainyard_api::Object;

use crate::{control_plane::ControlPlane, kubectl::kustomized};

/// The namespace and the ServiceAccount of the controller.
const NAMESPACE: &str = "kubeflow-system";
const ACCOUNT: &str = "kubeflow-trainer-controller-manager";

/// The cluster-scoped kinds of the chart and in deploy/.
const CLUSTER_WIDE: [&str; 11] = [
    "Namespace",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterTrainingRuntime",
    "FlowSchema",
    "MutatingWebhookConfiguration",
    "PriorityClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// Applies the output of kustomize for deploy/, except for the CRDs and the objects that would run in the cluster, which the API server
/// only validates, and returns a kubeconfig file with the permissions of the controller's ServiceAccount.
///
/// # Errors
/// kustomize refuses deploy/, or the API server refuses its output.
pub async fn deploy(plane: &ControlPlane) -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    for object in kustomized(&folder)? {
        let dry_run = match object.kind.as_str() {
            "CustomResourceDefinition" => continue,
            // The controller under test runs as a process instead.
            "Deployment" | "Service" => true,
            _ => false,
        };
        apply(plane, &object, dry_run).await?;
    }
    plane
        .kubeconfig_for_service_account(NAMESPACE, ACCOUNT)
        .await
}

/// Applies an object as `kubectl apply --server-side` does, and fails on fields that the API server does not know. Returns the object as stored.
///
/// # Errors
/// The API server refuses it.
pub async fn apply(plane: &ControlPlane, object: &Object, dry_run: bool) -> Result<Value> {
    let params = PatchParams {
        dry_run,
        ..PatchParams::apply("test").force().validation_strict()
    };
    let kind = GroupVersionKind::gvk(object.group(), object.version(), &object.kind);
    let resource = ApiResource::from_gvk(&kind);
    let client = plane.client().clone();
    let api: Api<DynamicObject> = if CLUSTER_WIDE.contains(&object.kind.as_str()) {
        Api::all_with(client, &resource)
    } else {
        let namespace = object.metadata.namespace.as_deref();
        let namespace =
            namespace.with_context(|| format!("{}: no namespace", object.location()))?;
        Api::namespaced_with(client, namespace, &resource)
    };
    let applied = api
        .patch(&object.metadata.name, &params, &Patch::Apply(&object.value))
        .await
        .with_context(|| object.location().to_string())?;
    Ok(serde_json::to_value(applied)?)
}
