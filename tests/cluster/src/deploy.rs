//! What deploy/ gives the controller in a cluster: its account, and what that may do.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use trainyard_api::{Inputs, Object};

use crate::control_plane::ControlPlane;

/// The namespace and the account of the controller.
const NAMESPACE: &str = "kubeflow-system";
const ACCOUNT: &str = "kubeflow-trainer-controller-manager";

/// Kinds in deploy/ that live in no namespace.
const CLUSTER_WIDE: [&str; 3] = ["Namespace", "ClusterRole", "ClusterRoleBinding"];

/// Applies the namespace, the account, its roles and the public ConfigMap of deploy/, has the API server check what would run in
/// the cluster, and writes the kubeconfig file of the account: who uses it may do what the controller may do in a cluster, and
/// nothing else.
///
/// # Errors
/// A file can't be read, or the API server refuses what it holds.
pub async fn deploy(plane: &ControlPlane) -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let applied = PatchParams::apply("test").force().validation_strict();
    let checked = PatchParams {
        dry_run: true,
        ..applied.clone()
    };
    for (files, params) in [
        (&["namespace.yaml", "rbac", "public.yaml"][..], applied),
        (&["deployment.yaml", "service.yaml"], checked),
    ] {
        let files: Vec<_> = files.iter().map(|file| folder.join(file)).collect();
        let inputs = Inputs::read(&files, std::io::empty()).into_result()?;
        ensure!(!inputs.objects.is_empty(), "deploy/ is empty");
        for object in inputs.objects {
            apply(plane, &object, &params)
                .await
                .with_context(|| object.place().to_string())?;
        }
    }
    plane
        .kubeconfig_for_service_account(NAMESPACE, ACCOUNT)
        .await
}

async fn apply(plane: &ControlPlane, object: &Object, params: &PatchParams) -> Result<()> {
    let kind = GroupVersionKind::gvk(object.group(), object.version(), &object.kind);
    let resource = ApiResource::from_gvk(&kind);
    let client = plane.client().clone();
    let api: Api<DynamicObject> = if CLUSTER_WIDE.contains(&object.kind.as_str()) {
        Api::all_with(client, &resource)
    } else {
        let namespace = object.metadata.namespace.as_deref().unwrap_or(NAMESPACE);
        Api::namespaced_with(client, namespace, &resource)
    };
    api.patch(&object.metadata.name, params, &Patch::Apply(&object.value))
        .await?;
    Ok(())
}
