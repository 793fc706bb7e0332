//! The ConfigMaps of TrainJobs, which the admission policy in deploy/ lets the controller write, and denies to other clients: snapshots,
//! scripts, and the certificate authorities of the status server.

use anyhow::Result;
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Resource, Write, eventually};

use super::{NAME, secrets::create_user};
use crate::common::access::{self, Access, is_allowed};

const REFUSED: &str = "only accounts that can patch the status of TrainJobs";

/// The controllers of Kubernetes that delete ConfigMaps with their TrainJob and their namespace.
const KUBERNETES: [&str; 2] = ["generic-garbage-collector", "namespace-controller"];

/// Returns the ConfigMaps of a namespace as a ServiceAccount accesses them.
async fn of(plane: &ControlPlane, account: (&str, &str), namespace: &str) -> Result<Access> {
    let maps = Resource::namespaced("/api/v1", "configmaps");
    Access::of(plane, account, maps, namespace).await
}

/// Returns a ConfigMap of that name, with a TrainJob as its owner, which can be its controller.
fn map(name: &str, controller: Option<bool>) -> Value {
    let owner = controller.map(|controller| {
        json!([{
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "job", "uid": "3f1c",
            "controller": controller,
        }])
    });
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owner},
        "data": {"runtime": "{}"},
    })
}

fn is_refused(what: &str, refused: Option<String>) -> Result<()> {
    access::is_refused(&format!("a user wants to {what}"), REFUSED, refused)
}

/// Checks the policy with the controller's ServiceAccount in this namespace.
pub(super) async fn of_train_jobs_are_the_controllers(
    plane: &ControlPlane,
    installed: &str,
) -> Result<()> {
    let namespace = plane.new_namespace().await?;
    create_user(plane, &namespace, "configmaps").await?;
    let user = of(plane, (&namespace, "user"), &namespace).await?;
    let controller = of(plane, (installed, NAME), &namespace).await?;
    let snapshot = map("job-runtime-snapshot", Some(true));
    // RBAC and the policy take effect after a moment, which can be between the creation and the deletion.
    let probe = map("probe-runtime-snapshot", Some(true));
    eventually("the policy holds", async || {
        let refused = user.create(&probe).await?;
        if refused.is_none() {
            user.delete("probe-runtime-snapshot").await?;
        }
        Ok(refused.filter(|why| why.contains(REFUSED)).map(drop))
    })
    .await?;

    is_allowed(
        "the controller creates",
        controller.create(&snapshot).await?,
    )?;
    let forged = json!({"data": {"runtime": "{hostPID: true}"}});
    let free = json!({"metadata": {"ownerReferences": null}});
    for (what, patch) in [("change it", &forged), ("release it", &free)] {
        is_refused(what, user.merge("job-runtime-snapshot", patch).await?)?;
    }
    is_refused("delete it", user.delete("job-runtime-snapshot").await?)?;
    let marked = json!({"metadata": {"annotations": {"trainyard.dev/started": "true"}}});
    let refused = controller.merge("job-runtime-snapshot", &marked).await?;
    is_allowed("the controller marks it", refused)?;

    // So are those that pods trust or run. Without the policy, an account that may only write ConfigMaps could choose their contents.
    for name in ["job-tls-config", "job-flux-entrypoint"] {
        let planted = user.create(&map(name, Some(true))).await?;
        is_refused("plant it", planted)?;
        let created = controller.create(&map(name, Some(true))).await?;
        is_allowed("the controller creates", created)?;
        is_refused("change it", user.merge(name, &forged).await?)?;
        is_refused("delete it", user.delete(name).await?)?;
    }

    // Other ConfigMaps are free, until a TrainJob controls them.
    for (name, controller) in [
        ("other", None),
        ("free-runtime-snapshot", None),
        ("in-part-runtime-snapshot", Some(false)),
    ] {
        is_allowed(name, user.create(&map(name, controller)).await?)?;
        is_allowed(name, user.merge(name, &forged).await?)?;
    }
    let taken = json!({"metadata": {"ownerReferences": snapshot["metadata"]["ownerReferences"]}});
    let refused = user.merge("free-runtime-snapshot", &taken).await?;
    is_refused("give it to a TrainJob", refused)?;

    let accounts = Resource::service_accounts();
    let accounts = plane.api(&accounts, "kube-system");
    for name in KUBERNETES {
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        // The second installation finds it.
        accounts
            .apply(&account, &Write::by("test"))
            .await?
            .accepted()?;
        let account = of(plane, ("kube-system", name), &namespace).await?;
        let of_it = map(&format!("{name}-runtime-snapshot"), Some(true));
        is_allowed("the controller creates", controller.create(&of_it).await?)?;
        let deleted = account.delete(&format!("{name}-runtime-snapshot")).await?;
        is_allowed(name, deleted)?;
    }
    Ok(())
}
