//! The controller's permissions for plugins are all ClusterRoles with one label. The API server refuses such a ClusterRole, and the label on an
//! existing one, of an account that does not have the permissions itself.

use anyhow::Result;
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Resource, Test, Write, eventually};

use crate::common::access::{Access, is_refused};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const LABEL: &str = "rbac.trainyard.dev/aggregate-to-controller";
const ESCALATES: &str = "attempting to grant RBAC permissions not currently held";
const NEEDS_ALL: &str = "must have cluster-admin privileges";

fn cluster_roles() -> Resource {
    Resource::cluster_wide(RBAC, "clusterroles")
}

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
) -> Result<Access> {
    let id = format!("{namespace}-{name}");
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": id},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": id},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    });
    for (resource, object) in [
        (Resource::service_accounts(), account),
        (cluster_roles(), role(&id, &json!({}), rules)),
        (Resource::cluster_wide(RBAC, "clusterrolebindings"), binding),
    ] {
        let api = plane.api(&resource, namespace);
        api.create(&object, &Write::strict()).await?.accepted()?;
    }
    Access::of(plane, (namespace, name), cluster_roles(), "").await
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
        let created = rich.create(&labeled("of-rich", &nodes)).await?;
        Ok(created.is_none().then_some(()))
    })
    .await?;
    let refused = poor.create(&labeled("of-poor", &nodes)).await?;
    let what = "an account without the permissions gives them to the controller";
    is_refused(what, ESCALATES, refused)?;
    let secrets = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]});
    let refused = rich.create(&labeled("secrets", &secrets)).await?;
    is_refused(
        "an account gives the controller Secrets",
        ESCALATES,
        refused,
    )?;

    // Neither do labels make existing roles the controller's.
    let known = format!("{namespace}-known");
    let api = cluster_roles();
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
        ("admin", NEEDS_ALL),
    ] {
        for (who, roles) in [("poor", &poor), ("rich", &rich)] {
            let refused = roles.merge(name, &patch).await?;
            is_refused(&format!("{who} labels {name}"), words, refused)?;
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
    let aggregated = format!("{namespace}-aggregated");
    let refused = rich.merge(&aggregated, &everything).await?;
    is_refused("an account changes what is aggregated", NEEDS_ALL, refused)
}

pub(crate) fn tests() -> Vec<Test> {
    tests![roles_of_others_are_not_aggregated]
}
