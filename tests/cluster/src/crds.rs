//! Installs CustomResourceDefinitions, by client-side or server-side apply.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use http::{Request, StatusCode};
use kube::{client::Body, core::discovery::v2::APIGroupDiscovery};
use serde_json::{Value, json};

use crate::{api::Write, control_plane::ControlPlane, resource::Resource, wait::WITHIN};

/// How a CustomResourceDefinition is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Install {
    /// Like `kubectl apply`: an annotation contains the whole object, and all annotations together are limited to 256 KiB.
    ClientSide,
    /// Like `kubectl apply --server-side`.
    ServerSide,
}

/// Applies a CustomResourceDefinition, waits until its kind is served, and returns the kind.
///
/// # Errors
/// The API server refused it, or did not serve it in time: with its conditions.
pub async fn install(plane: &ControlPlane, crd: &Value, how: Install) -> Result<Resource> {
    let resource = Resource::defined_by(crd)?;
    let crds = Resource::crds();
    let api = plane.api(&crds, "");
    let applied = match how {
        Install::ServerSide => {
            let write = Write {
                manager: "kubectl".to_owned(),
                ..Write::strict()
            };
            api.apply(crd, &write).await?
        }
        Install::ClientSide => {
            api.create(&with_last_applied(crd)?, &Write::strict())
                .await?
        }
    };
    let applied = applied.accepted()?;
    let name = applied.pointer("/metadata/name").and_then(Value::as_str);
    let name = name.context("the definition has no name")?;
    let deadline = Instant::now() + WITHIN;
    while !is_served(plane, &resource).await? {
        if Instant::now() > deadline {
            let stored = api.get(name).await?.accepted()?;
            let status = stored.get("status").cloned().unwrap_or_default();
            bail!("{name} is not served: {status}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(resource)
}

/// Returns the object with the annotation in which `kubectl apply` stores the last applied configuration.
fn with_last_applied(object: &Value) -> Result<Value> {
    let text = serde_json::to_string(object)? + "\n";
    let mut object = object.clone();
    let metadata = object
        .pointer_mut("/metadata")
        .and_then(Value::as_object_mut);
    let annotations = metadata
        .context("the object has no metadata")?
        .entry("annotations")
        .or_insert_with(|| json!({}))
        .as_object_mut()
        .context("the annotations are not a map")?;
    annotations.insert(
        "kubectl.kubernetes.io/last-applied-configuration".to_owned(),
        Value::String(text),
    );
    Ok(object)
}

/// Returns whether the kind is served, which can be shortly after its definition reports that it is established, and whether clients such as
/// kubectl find it, which can be later.
async fn is_served(plane: &ControlPlane, resource: &Resource) -> Result<bool> {
    let path = resource.collection("default") + "?limit=1";
    let request = Request::get(path).body(Body::empty())?;
    // Until then, the answer may not be JSON.
    let answer = plane.client().send(request).await?;
    if answer.status() != StatusCode::OK {
        return Ok(false);
    }
    let found = plane.client().list_api_groups_aggregated().await?;
    let is_group = |group: &APIGroupDiscovery| {
        let name = group.metadata.as_ref().and_then(|it| it.name.as_ref());
        name.is_some_and(|name| resource.root.starts_with(&format!("/apis/{name}/")))
    };
    let groups = found.items.into_iter().filter(is_group);
    let versions = groups.flat_map(|group| group.versions);
    let mut resources = versions.flat_map(|version| version.resources);
    Ok(resources.any(|found| found.resource.as_ref() == Some(&resource.plural)))
}
