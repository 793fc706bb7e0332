//! What an account may do, and why it may not.

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use serde_json::Value;
use trainyard_cluster::{Answer, Api, ControlPlane, Resource, Write, client_of};

/// The objects of a kind, accessed by an account. Each call returns the reason for a refusal; `None` if it is allowed.
pub(crate) struct Access {
    client: Client,
    resource: Resource,
    namespace: String,
}

impl Access {
    pub(crate) fn by(client: Client, resource: Resource, namespace: &str) -> Self {
        Self {
            client,
            resource,
            namespace: namespace.to_owned(),
        }
    }

    /// Returns the access of a ServiceAccount, which is given by its namespace and name.
    pub(crate) async fn of(
        plane: &ControlPlane,
        (of, name): (&str, &str),
        resource: Resource,
        namespace: &str,
    ) -> Result<Self> {
        let account = plane.kubeconfig_for_service_account(of, name).await?;
        Ok(Self::by(client_of(&account).await?, resource, namespace))
    }

    pub(crate) async fn create(&self, object: &Value) -> Result<Option<String>> {
        why(self.api().create(object, &Write::default()).await?)
    }

    pub(crate) async fn merge(&self, name: &str, patch: &Value) -> Result<Option<String>> {
        why(self.api().merge(name, patch, &Write::default()).await?)
    }

    pub(crate) async fn delete(&self, name: &str) -> Result<Option<String>> {
        why(self.api().delete(name).await?)
    }

    fn api(&self) -> Api<'_> {
        Api::new(&self.client, &self.resource, &self.namespace)
    }
}

fn why(answer: Answer) -> Result<Option<String>> {
    match answer.accepted() {
        Ok(_) => Ok(None),
        Err(refusal) if refusal.code == 403 => Ok(Some(refusal.message)),
        Err(refusal) => Err(refusal.into()),
    }
}

/// Checks that a call was refused for a reason with these words.
pub(crate) fn is_refused(what: &str, words: &str, refused: Option<String>) -> Result<()> {
    let refused = refused.with_context(|| format!("{what}: it is allowed"))?;
    ensure!(refused.contains(words), "{what}: {refused}");
    Ok(())
}

/// Checks that a call was not refused.
pub(crate) fn is_allowed(what: &str, refused: Option<String>) -> Result<()> {
    ensure!(refused.is_none(), "{what}: {refused:?}");
    Ok(())
}
