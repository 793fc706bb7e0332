//! PluginRevisions, which the admission policy in deploy/ lets only the controller's ServiceAccount write. People control a rollout with three
//! annotations, and administrators can delete revisions.

use anyhow::{Context as _, Result, ensure};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Resource, Write, client_of, eventually};

use super::{NAME, secrets::why};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// What the policy answers to those who write a revision.
const WRITTEN: &str = "only the controller creates PluginRevisions";
/// What it answers to those who change another annotation, and to a controller that changes one of the three.
const ANNOTATED: &str = "the only annotations of PluginRevisions that can be changed";
/// What it answers to those who change something else.
const CHANGED: &str = "nothing of PluginRevisions can be changed";

/// PluginRevisions, accessed by an account.
struct Revisions(Api<DynamicObject>);

impl Revisions {
    fn by(client: kube::Client) -> Self {
        let kind = GroupVersionKind::gvk("trainyard.dev", "v1alpha1", "PluginRevision");
        Self(Api::all_with(client, &ApiResource::from_gvk(&kind)))
    }

    async fn of(plane: &ControlPlane, (namespace, name): (&str, &str)) -> Result<Self> {
        let account = plane.kubeconfig_for_service_account(namespace, name);
        Ok(Self::by(client_of(&account.await?).await?))
    }

    /// Creates a revision. Returns the reason for a refusal; `None` if it is created.
    async fn create(&self, name: &str) -> Result<Option<String>> {
        let revision = json!({
            "apiVersion": "trainyard.dev/v1alpha1", "kind": "PluginRevision", "metadata": {"name": name},
            "spec": {"format": 1, "number": 1, "plugins": []},
        });
        let revision = serde_json::from_value(revision)?;
        why(self.0.create(&PostParams::default(), &revision).await)
    }

    async fn merge(&self, name: &str, patch: &Value) -> Result<Option<String>> {
        let patch = Patch::Merge(patch);
        why(self.0.patch(name, &PatchParams::default(), &patch).await)
    }

    async fn write_status(&self, name: &str) -> Result<Option<String>> {
        let patch = json!({"status": {"stage": "Running", "percent": 100, "since": "2026-01-01T00:00:00Z"}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        why(self.0.patch_status(name, &params, &patch).await)
    }

    async fn delete(&self, name: &str) -> Result<Option<String>> {
        why(self.0.delete(name, &DeleteParams::default()).await)
    }
}

fn is_refused(what: &str, words: &str, refused: Option<String>) -> Result<()> {
    let refused = refused.with_context(|| format!("{what}: it is allowed"))?;
    ensure!(refused.contains(words), "{what}: {refused}");
    Ok(())
}

fn is_allowed(what: &str, refused: Option<String>) -> Result<()> {
    ensure!(refused.is_none(), "{what}: {refused:?}");
    Ok(())
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
    let controller = Revisions::of(plane, (installed, NAME)).await?;
    let user = Revisions::of(plane, (&namespace, "user")).await?;
    let namesake = Revisions::of(plane, (&namespace, NAME)).await?;
    let deleter = Revisions::of(plane, (&namespace, "deleter")).await?;
    let admin = Revisions::by(plane.client().clone());
    let probe = format!("{namespace}-probe");
    eventually("the policy holds", async || {
        // The kind is served a moment after its CRD is created.
        let Ok(refused) = user.create(&probe).await else {
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
            account.create(&own).await?,
        )?;
    }
    // A policy for the controller of another namespace may still hold.
    eventually("the controller creates", async || {
        let refused = controller.create(&own).await?;
        Ok(refused.is_none().then_some(()))
    })
    .await?;
    is_allowed(
        "the controller writes the status",
        controller.write_status(&own).await?,
    )?;
    for (who, account) in [
        ("a user", &user),
        ("a namesake", &namesake),
        ("an administrator", &admin),
    ] {
        is_refused(
            &format!("{who} writes the status"),
            WRITTEN,
            account.write_status(&own).await?,
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
    let changed = controller
        .0
        .patch(&own, &PatchParams::default(), &Patch::Merge(&others))
        .await;
    let error = changed.err().context("the spec was changed")?;
    ensure!(error.to_string().contains("immutable"), "{error}");

    is_refused("a user deletes", WRITTEN, user.delete(&own).await?)?;
    is_refused("a namesake deletes", WRITTEN, namesake.delete(&own).await?)?;
    is_allowed("the controller deletes", controller.delete(&own).await?)?;
    // When the controller is gone.
    for (who, account) in [("deleter", &deleter), ("admin", &admin)] {
        let own = format!("{namespace}-{who}");
        is_allowed("the controller creates", controller.create(&own).await?)?;
        is_allowed(who, account.delete(&own).await?)?;
    }
    Ok(())
}
