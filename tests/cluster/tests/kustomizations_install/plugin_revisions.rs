//! PluginRevisions, which the admission policy in deploy/ lets only the controller's ServiceAccount write. People control a rollout with three
//! annotations, and administrators can delete revisions.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use trainyard_cluster::{ControlPlane, Resource, Write, eventually};

use super::NAME;
use crate::common::access::{Access, is_allowed, is_refused};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// What the policy answers to those who write a revision.
const WRITTEN: &str = "only the controller creates PluginRevisions";
/// What it answers to those who change another annotation, and to a controller that changes one of the three.
const ANNOTATED: &str = "the only annotations of PluginRevisions that can be changed";
/// What it answers to those who change something else.
const CHANGED: &str = "nothing of PluginRevisions can be changed";

fn revisions() -> Resource {
    Resource::cluster_wide("/apis/trainyard.dev/v1alpha1", "pluginrevisions")
}

/// Returns PluginRevisions as a ServiceAccount accesses them.
async fn of(plane: &ControlPlane, account: (&str, &str)) -> Result<Access> {
    Access::of(plane, account, revisions(), "").await
}

async fn create(account: &Access, name: &str) -> Result<Option<String>> {
    let revision = json!({
        "apiVersion": "trainyard.dev/v1alpha1", "kind": "PluginRevision", "metadata": {"name": name},
        "spec": {"format": 1, "number": 1, "plugins": []},
    });
    account.create(&revision).await
}

async fn write_status(account: &Access, name: &str) -> Result<Option<String>> {
    let patch =
        json!({"status": {"stage": "Running", "percent": 100, "since": "2026-01-01T00:00:00Z"}});
    account.merge(&format!("{name}/status"), &patch).await
}

/// Gives ServiceAccounts all permissions on PluginRevisions, and some on PolicyPlugins.
async fn bind(
    plane: &ControlPlane,
    name: &str,
    accounts: &[(&str, &str)],
    verbs: &[&str],
) -> Result<()> {
    let subjects = accounts.iter().map(|(namespace, account)| {
        json!({"kind": "ServiceAccount", "name": account, "namespace": namespace})
    });
    let mut rules = vec![json!({
        "apiGroups": ["trainyard.dev"], "resources": ["pluginrevisions", "pluginrevisions/status"], "verbs": ["*"],
    })];
    if !verbs.is_empty() {
        rules.push(
            json!({"apiGroups": ["trainyard.dev"], "resources": ["policyplugins"], "verbs": verbs}),
        );
    }
    for (plural, object) in [
        (
            "clusterroles",
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules,
            }),
        ),
        (
            "clusterrolebindings",
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": subjects.clone().collect::<Vec<_>>(),
            }),
        ),
    ] {
        let resource = Resource::cluster_wide(RBAC, plural);
        let api = plane.api(&resource, "");
        api.apply(&object, &Write::by("test")).await?.accepted()?;
    }
    Ok(())
}

/// Checks the policy with the controller's ServiceAccount in this namespace.
pub(super) async fn are_the_controllers(plane: &ControlPlane, installed: &str) -> Result<()> {
    let namespace = plane.new_namespace().await?;
    let accounts = Resource::service_accounts();
    for name in ["user", "deleter", NAME] {
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        plane
            .api(&accounts, &namespace)
            .create(&account, &Write::strict())
            .await?
            .accepted()?;
    }
    let all = [(installed, NAME), (&namespace, "user"), (&namespace, NAME)];
    bind(plane, &format!("{namespace}-revisions"), &all, &["get"]).await?;
    bind(
        plane,
        &format!("{namespace}-both"),
        &[(&namespace, "deleter")],
        &["delete"],
    )
    .await?;
    let controller = of(plane, (installed, NAME)).await?;
    let user = of(plane, (&namespace, "user")).await?;
    let namesake = of(plane, (&namespace, NAME)).await?;
    let deleter = of(plane, (&namespace, "deleter")).await?;
    let admin = Access::by(plane.client().clone(), revisions(), "");
    let probe = format!("{namespace}-probe");
    eventually("the policy holds", async || {
        // The kind is served a moment after its CRD is created.
        let Ok(refused) = create(&user, &probe).await else {
            return Ok(None);
        };
        Ok(refused.filter(|why| why.contains(WRITTEN)).map(drop))
    })
    .await?;
    let own = format!("{namespace}-rev-1");
    for (who, account) in [
        ("a user", &user),
        ("a namesake", &namesake),
        ("an administrator", &admin),
    ] {
        is_refused(
            &format!("{who} creates"),
            WRITTEN,
            create(account, &own).await?,
        )?;
    }
    // A policy for the controller of another namespace may still hold.
    eventually("the controller creates", async || {
        let refused = create(&controller, &own).await?;
        Ok(refused.is_none().then_some(()))
    })
    .await?;
    is_allowed(
        "the controller writes the status",
        write_status(&controller, &own).await?,
    )?;
    for (who, account) in [
        ("a user", &user),
        ("a namesake", &namesake),
        ("an administrator", &admin),
    ] {
        is_refused(
            &format!("{who} writes the status"),
            WRITTEN,
            write_status(account, &own).await?,
        )?;
    }

    for annotation in ["accept", "roll-back", "retry"] {
        let annotation = format!("trainyard.dev/{annotation}");
        let set = json!({"metadata": {"annotations": {&annotation: ""}}});
        let refused = controller.merge(&own, &set).await?;
        is_refused("the controller decides", ANNOTATED, refused)?;
        is_allowed("a user decides", user.merge(&own, &set).await?)?;
        let unset = json!({"metadata": {"annotations": {&annotation: null}}});
        let refused = controller.merge(&own, &unset).await?;
        is_refused("the controller undoes it", ANNOTATED, refused)?;
        is_allowed("a user undoes it", user.merge(&own, &unset).await?)?;
    }
    let owner =
        json!([{"apiVersion": "v1", "kind": "Namespace", "name": namespace, "uid": "3f1c"}]);
    for (what, words, patch) in [
        (
            "another annotation",
            ANNOTATED,
            json!({"annotations": {"example.com/a": "b"}}),
        ),
        ("labels", CHANGED, json!({"labels": {"a": "b"}})),
        (
            "finalizers",
            CHANGED,
            json!({"finalizers": ["example.com/a"]}),
        ),
        ("owners", CHANGED, json!({"ownerReferences": owner})),
    ] {
        let patch = json!({"metadata": patch});
        is_refused(what, words, user.merge(&own, &patch).await?)?;
        is_refused(what, words, admin.merge(&own, &patch).await?)?;
    }
    let others = json!({"spec": {"number": 2}});
    let changed = controller.merge(&own, &others).await;
    let error = changed.err().context("the spec was changed")?;
    ensure!(error.to_string().contains("immutable"), "{error}");

    is_refused("a user deletes", WRITTEN, user.delete(&own).await?)?;
    is_refused("a namesake deletes", WRITTEN, namesake.delete(&own).await?)?;
    is_allowed("the controller deletes", controller.delete(&own).await?)?;
    // When the controller is gone.
    for (who, account) in [("deleter", &deleter), ("admin", &admin)] {
        let own = format!("{namespace}-{who}");
        is_allowed("the controller creates", create(&controller, &own).await?)?;
        is_allowed(who, account.delete(&own).await?)?;
    }
    Ok(())
}
