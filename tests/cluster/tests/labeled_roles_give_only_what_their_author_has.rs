//! The controller's permissions for plugins are all ClusterRoles with one label. The API server refuses such a ClusterRole, and the label on an
//! existing one, of an account that does not have the permissions itself.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Resource, Test, Write, client_of, eventually};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const LABEL: &str = "rbac.trainyard.dev/aggregate-to-controller";
const ESCALATES: &str = "attempting to grant RBAC permissions not currently held";

fn role(name: &str, labels: &Value, rules: &Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels}, "rules": rules,
    })
}

/// Creates a ServiceAccount with permissions in all namespaces, and returns the ClusterRoles as it accesses them.
async fn author(
    plane: &ControlPlane,
    namespace: &str,
    name: &str,
    rules: &Value,
) -> Result<Api<ClusterRole>> {
    let id = format!("{namespace}-{name}");
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": id},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": id},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    });
    for (resource, object) in [
        (Resource::service_accounts(), account),
        (
            Resource::cluster_wide(RBAC, "clusterroles"),
            role(&id, &json!({}), rules),
        ),
        (Resource::cluster_wide(RBAC, "clusterrolebindings"), binding),
    ] {
        let api = plane.api(&resource, namespace);
        api.create(&object, &Write::strict()).await?.accepted()?;
    }
    let kubeconfig = plane
        .kubeconfig_for_service_account(namespace, name)
        .await?;
    Ok(Api::all(client_of(&kubeconfig).await?))
}

/// Returns the reason for a refusal; `None` if there is none.
fn why(answer: Result<ClusterRole, kube::Error>) -> Result<Option<String>> {
    match answer {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(Some(status.message)),
        Err(error) => Err(error.into()),
    }
}

async fn create(roles: &Api<ClusterRole>, role: &Value) -> Result<Option<String>> {
    let role = serde_json::from_value(role.clone())?;
    why(roles.create(&PostParams::default(), &role).await)
}

async fn merge(roles: &Api<ClusterRole>, name: &str, patch: &Value) -> Result<Option<String>> {
    why(roles
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await)
}

async fn roles_of_others_are_not_aggregated(plane: &ControlPlane) -> Result<()> {
    let namespace = plane.new_namespace().await?;
    let write = json!({
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
        "verbs": ["create", "get", "list", "patch", "update"],
    });
    let nodes =
        json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]});
    let poor = author(plane, &namespace, "poor", &json!([write])).await?;
    let rich = author(plane, &namespace, "rich", &json!([write, nodes])).await?;
    let label = json!({LABEL: "true"});
    let labeled =
        |name: &str, rule: &Value| role(&format!("{namespace}-{name}"), &label, &json!([rule]));

    // RBAC takes effect after a moment.
    eventually("the author's role holds", async || {
        let created = create(&rich, &labeled("of-rich", &nodes)).await?;
        Ok(created.is_none().then_some(()))
    })
    .await?;
    let refused = create(&poor, &labeled("of-poor", &nodes)).await?;
    let refused =
        refused.context("an account without the permissions gives them to the controller")?;
    ensure!(refused.contains(ESCALATES), "{refused}");
    let secrets = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]});
    let refused = create(&rich, &labeled("secrets", &secrets)).await?;
    let refused = refused.context("an account gives the controller Secrets")?;
    ensure!(refused.contains(ESCALATES), "{refused}");

    // Neither do labels make existing roles the controller's.
    let known = format!("{namespace}-known");
    let api = Resource::cluster_wide(RBAC, "clusterroles");
    let object = role(&known, &json!({}), &json!([secrets]));
    plane
        .api(&api, "")
        .create(&object, &Write::strict())
        .await?
        .accepted()?;
    let patch = json!({"metadata": {"labels": label}});
    for (name, words) in [
        (known.as_str(), ESCALATES),
        ("cluster-admin", ESCALATES),
        ("admin", "must have cluster-admin privileges"),
    ] {
        for (who, roles) in [("poor", &poor), ("rich", &rich)] {
            let refused = merge(roles, name, &patch).await?;
            let refused = refused.with_context(|| format!("{who} labels {name}"))?;
            ensure!(refused.contains(words), "{who} {name}: {refused}");
        }
    }

    // The role that aggregates them cannot be given another selector.
    let mut aggregated = role(&format!("{namespace}-aggregated"), &json!({}), &json!([]));
    if let Some(members) = aggregated.as_object_mut() {
        members.insert(
            "aggregationRule".to_owned(),
            json!({"clusterRoleSelectors": [{"matchLabels": label}]}),
        );
    }
    plane
        .api(&api, "")
        .create(&aggregated, &Write::strict())
        .await?
        .accepted()?;
    let everything = json!({"aggregationRule": {"clusterRoleSelectors": [{}]}});
    let refused = merge(&rich, &format!("{namespace}-aggregated"), &everything).await?;
    let refused = refused.context("an account changed what is aggregated")?;
    ensure!(
        refused.contains("must have cluster-admin privileges"),
        "{refused}"
    );
    Ok(())
}

pub(crate) fn tests() -> Vec<Test> {
    tests![roles_of_others_are_not_aggregated]
}
