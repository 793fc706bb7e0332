//! A client of a ServiceAccount's kubeconfig file authenticates as that account, and has the permissions that RBAC gives it.

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::{authentication::v1::SelfSubjectReview, core::v1::ConfigMap};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Resource, Test, Write, client_of, eventually};

async fn create(
    plane: &ControlPlane,
    resource: &Resource,
    namespace: &str,
    object: Value,
) -> Result<()> {
    let api = plane.api(resource, namespace);
    api.create(&object, &Write::strict()).await?.accepted()?;
    Ok(())
}

async fn account(plane: &ControlPlane, namespace: &str) -> Result<Client> {
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "controller"}});
    create(plane, &Resource::service_accounts(), namespace, account).await?;
    let kubeconfig = plane
        .kubeconfig_for_service_account(namespace, "controller")
        .await?;
    client_of(&kubeconfig).await
}

/// Returns the status code with which listing ConfigMaps is denied, in a namespace or in all; `None` if it is allowed.
async fn forbidden(api: &Api<ConfigMap>) -> Result<Option<u16>> {
    match api.list(&ListParams::default()).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) => Ok(Some(status.code)),
        Err(error) => Err(error.into()),
    }
}

async fn account_without_a_role_has_no_permissions(plane: &ControlPlane) -> Result<()> {
    let namespace = plane.new_namespace().await?;
    let client = account(plane, &namespace).await?;
    let own: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    ensure!(forbidden(&own).await? == Some(403));
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}],
    });
    create(
        plane,
        &Resource::namespaced(rbac, "roles"),
        &namespace,
        role,
    )
    .await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "controller", "namespace": namespace}],
    });
    let bindings = Resource::namespaced(rbac, "rolebindings");
    create(plane, &bindings, &namespace, binding).await?;
    eventually("the role holds", async || {
        Ok(forbidden(&own).await?.is_none().then_some(()))
    })
    .await?;
    ensure!(forbidden(&Api::all(client)).await? == Some(403));
    Ok(())
}

async fn client_authenticates_as_the_account(plane: &ControlPlane) -> Result<()> {
    let namespace = plane.new_namespace().await?;
    let client = account(plane, &namespace).await?;
    ensure!(client.default_namespace() == namespace);
    let reviews: Api<SelfSubjectReview> = Api::all(client);
    let review = SelfSubjectReview::default();
    let review = reviews.create(&PostParams::default(), &review).await?;
    let user = review.status.and_then(|status| status.user_info);
    let name = user.and_then(|user| user.username).context("nobody")?;
    ensure!(
        name == format!("system:serviceaccount:{namespace}:controller"),
        "{name}"
    );
    Ok(())
}

async fn missing_account_has_no_token(plane: &ControlPlane) -> Result<()> {
    let namespace = plane.new_namespace().await?;
    let made = plane.kubeconfig_for_service_account(&namespace, "nobody");
    let Err(error) = made.await else {
        bail!("it was made");
    };
    let error = format!("{error:#}");
    ensure!(
        error.contains(&format!("{namespace}/nobody")) && error.contains("not found"),
        "{error}"
    );
    Ok(())
}

pub(crate) fn tests() -> Vec<Test> {
    tests![
        account_without_a_role_has_no_permissions,
        client_authenticates_as_the_account,
        missing_account_has_no_token,
    ]
}
