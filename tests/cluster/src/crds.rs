//! Installing CustomResourceDefinitions, by both ways in use.

use crate::api::Write;
use crate::control_plane::ControlPlane;
use crate::resource::Resource;
use anyhow::{Context, Result, bail};
use http::StatusCode;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long an API server may take until it serves a new kind.
const SERVED_WITHIN: Duration = Duration::from_secs(30);

/// How a CustomResourceDefinition is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Install {
    /// As `kubectl apply` does: the whole object stands in one of its own annotations, of which all together may have
    /// 256 KiB.
    ClientSide,
    /// As `kubectl apply --server-side` does.
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
    let name = name.context("a definition without a name")?;
    let deadline = Instant::now() + SERVED_WITHIN;
    loop {
        let stored = api.get(name).await?.accepted()?;
        if is_established(&stored) && is_served(plane, &resource).await? {
            return Ok(resource);
        }
        if Instant::now() > deadline {
            let status = stored.get("status").cloned().unwrap_or_default();
            bail!("{name} is not served: {status}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The object with the annotation by which `kubectl apply` remembers what it applied.
fn with_last_applied(object: &Value) -> Result<Value> {
    let text = serde_json::to_string(object)? + "\n";
    let mut object = object.clone();
    let metadata = object
        .pointer_mut("/metadata")
        .and_then(Value::as_object_mut);
    let annotations = metadata
        .context("an object without metadata")?
        .entry("annotations")
        .or_insert_with(|| json!({}))
        .as_object_mut()
        .context("annotations are no map")?;
    annotations.insert(
        "kubectl.kubernetes.io/last-applied-configuration".to_owned(),
        Value::String(text),
    );
    Ok(object)
}

fn is_established(crd: &Value) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|conditions| {
        conditions
            .iter()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    })
}

/// An established kind is still not found for a moment.
async fn is_served(plane: &ControlPlane, resource: &Resource) -> Result<bool> {
    let listed = plane.api(resource, "default").list().await?;
    Ok(listed.status == StatusCode::OK)
}
