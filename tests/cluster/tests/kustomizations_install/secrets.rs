//! The Secrets that the admission policy in deploy/ allows the controller to create, and those that it denies to other clients.

use anyhow::Result;
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Resource, Write, eventually};

use super::NAME;
use crate::common::{
    access::{Access, is_allowed, is_refused},
    keys,
};

/// Returns the Secrets of a namespace as a ServiceAccount accesses them.
async fn of(plane: &ControlPlane, account: (&str, &str), namespace: &str) -> Result<Access> {
    Access::of(plane, account, keys::secrets(), namespace).await
}

/// Returns a Secret of a type with an owner of a kind, which can be its controller.
fn secret(name: &str, of_type: &str, owner: Option<(&str, &str, bool)>) -> Value {
    let owners = owner.map(|(version, kind, controller)| {
        json!([{"apiVersion": version, "kind": kind, "name": "job", "uid": "3f1c", "controller": controller}])
    });
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": of_type,
        "metadata": {
            "name": name, "ownerReferences": owners,
            "annotations": {"kubernetes.io/service-account.name": "default"},
        },
        "stringData": {"ssh-privatekey": "key"},
    })
}

const TRAIN_JOB: Option<(&str, &str, bool)> =
    Some(("trainer.kubeflow.org/v1alpha1", "TrainJob", true));

const NOT_ITS: &str = "the TrainJob controller can only create Secrets that a TrainJob owns";
const NOT_THEIRS: &str = "only accounts that can patch the status of TrainJobs";

/// Creates a ServiceAccount `user` with all permissions on a resource of the namespace.
pub(super) async fn create_user(
    plane: &ControlPlane,
    namespace: &str,
    resource: &str,
) -> Result<()> {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    for (resource, object) in [
        (
            Resource::service_accounts(),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "user"}}),
        ),
        (
            Resource::namespaced(rbac, "roles"),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "user"},
                "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["*"]}],
            }),
        ),
        (
            Resource::namespaced(rbac, "rolebindings"),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "user"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "user"},
                "subjects": [{"kind": "ServiceAccount", "name": "user", "namespace": namespace}],
            }),
        ),
    ] {
        let api = plane.api(&resource, namespace);
        api.create(&object, &Write::strict()).await?.accepted()?;
    }
    Ok(())
}

/// Checks the policy with the controller's ServiceAccount in this namespace.
pub(super) async fn of_train_jobs_are_the_controllers(
    plane: &ControlPlane,
    installed: &str,
) -> Result<()> {
    let namespace = plane.new_namespace().await?;
    create_user(plane, &namespace, "secrets").await?;
    let user = of(plane, (&namespace, "user"), &namespace).await?;
    let controller = of(plane, (installed, NAME), &namespace).await?;
    let forged = secret("forged", "Opaque", TRAIN_JOB);
    // RBAC and the policy take effect after a moment.
    eventually("the policy holds", async || {
        let refused = user.create(&forged).await?;
        if refused.is_none() {
            user.delete("forged").await?;
        }
        Ok(refused.filter(|why| why.contains(NOT_THEIRS)).map(drop))
    })
    .await?;
    let job = Some(("batch/v1", "Job", true));
    let in_part = Some(("trainer.kubeflow.org/v1alpha1", "TrainJob", false));
    let token = "kubernetes.io/service-account-token";
    for (who, account, secret, expected) in [
        (
            "the controller",
            &controller,
            secret("keys", "kubernetes.io/ssh-auth", TRAIN_JOB),
            None,
        ),
        (
            "the controller",
            &controller,
            secret("token", token, TRAIN_JOB),
            Some(NOT_ITS),
        ),
        (
            "the controller",
            &controller,
            secret("free", "Opaque", None),
            Some(NOT_ITS),
        ),
        (
            "the controller",
            &controller,
            secret("other", "Opaque", job),
            Some(NOT_ITS),
        ),
        (
            "the controller",
            &controller,
            secret("in-part", "Opaque", in_part),
            Some(NOT_ITS),
        ),
        ("a user", &user, secret("own", "Opaque", None), None),
        ("a user", &user, secret("of-a-job", "Opaque", job), None),
        ("a user", &user, secret("of-two", "Opaque", in_part), None),
    ] {
        let refused = account.create(&secret).await?;
        let what = format!("{who} creates {secret:#}");
        match expected {
            None => is_allowed(&what, refused)?,
            Some(words) => is_refused(&what, words, refused)?,
        }
    }
    let taken = json!({"metadata": {"ownerReferences": forged["metadata"]["ownerReferences"]}});
    let refused = user.merge("own", &taken).await?;
    is_refused("a user gives its Secret to a TrainJob", NOT_THEIRS, refused)?;
    // A Secret that it owns already can be labeled, and can have a finalizer.
    let labeled = json!({"metadata": {"labels": {"a": "b"}}});
    let refused = user.merge("keys", &labeled).await?;
    is_allowed("a user labels a Secret of a TrainJob", refused)
}
