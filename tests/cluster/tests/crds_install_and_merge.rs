//! Our CRDs install by client-side and server-side apply, and lists of two managers merge by their keys.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use http::StatusCode;
use serde_json::{Value, json};
use trainyard_cluster::{
    ControlPlane, Definition, Definitions, Install, Resource, Test, Write, install,
};

/// A copy of a CRD in another group, so that it does not affect other tests.
fn in_group(definition: &Definition, group: &str) -> Result<Value> {
    let mut crd = definition.crd.clone();
    *crd.pointer_mut("/spec/group").context("no group")? = json!(group);
    *crd.pointer_mut("/metadata/name").context("no name")? =
        json!(format!("{}.{group}", definition.resource.plural));
    Ok(crd)
}

async fn installs_both_ways(plane: &ControlPlane, definition: &Definition) -> Result<()> {
    let crd = in_group(definition, "client-side.example.com")?;
    install(plane, &crd, Install::ClientSide).await?;
    // A cluster that was installed by client-side apply can change to server-side apply.
    install(plane, &crd, Install::ServerSide).await?;

    let crd = in_group(definition, "server-side.example.com")?;
    install(plane, &crd, Install::ServerSide).await?;
    let before = without_status(plane, &crd).await?;
    install(plane, &crd, Install::ServerSide).await?;
    let after = without_status(plane, &crd).await?;
    ensure!(
        before == after,
        "applied again, it changed: {before} to {after}"
    );
    Ok(())
}

/// Returns the stored CRD without what the API server itself writes, at any time after the CRD is served: the conditions, their entry in the
/// managed fields, and so the resourceVersion.
async fn without_status(plane: &ControlPlane, crd: &Value) -> Result<Value> {
    let name = crd
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .context("no name")?;
    let crds = Resource::crds();
    let mut stored = plane.api(&crds, "").get(name).await?.accepted()?;
    stored
        .as_object_mut()
        .and_then(|crd| crd.remove("status"))
        .context("no status")?;
    let metadata = stored
        .pointer_mut("/metadata")
        .and_then(Value::as_object_mut)
        .context("no metadata")?;
    metadata
        .remove("resourceVersion")
        .context("no resourceVersion")?;
    metadata
        .get_mut("managedFields")
        .and_then(Value::as_array_mut)
        .context("no managed fields")?
        .retain(|entry| entry.get("subresource") != Some(&json!("status")));
    Ok(stored)
}

/// Returns a runtime whose container `node` has one env var.
fn runtime(name: &str) -> Value {
    let container = json!({"name": "node", "env": [{"name": name, "value": "1"}]});
    let job = json!({"name": "node", "template": {"spec": {"template": {"spec": {"containers": [container]}}}}});
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "shared"},
        "spec": {"template": {"spec": {"replicatedJobs": [job]}}},
    })
}

async fn two_managers_that_each_add_an_env_var_merge(
    plane: &ControlPlane,
    definitions: &Definitions,
) -> Result<()> {
    let definition = definitions.on(plane, "TrainingRuntime").await?;
    let namespace = plane.new_namespace().await?;
    let api = plane.api(&definition.resource, &namespace);
    for (manager, name) in [("one", "FIRST"), ("two", "SECOND")] {
        let applied = api.apply(&runtime(name), &Write::by(manager)).await?;
        ensure!(applied.warnings.is_empty(), "{:?}", applied.warnings);
        applied.accepted()?;
    }
    let stored = api.get("shared").await?.accepted()?;
    let env = stored.pointer(
        "/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/env",
    );
    let wanted = json!([{"name": "FIRST", "value": "1"}, {"name": "SECOND", "value": "1"}]);
    ensure!(env == Some(&wanted), "{stored}");
    Ok(())
}

async fn two_managers_of_patches_merge(
    plane: &ControlPlane,
    definitions: &Definitions,
) -> Result<()> {
    let definition = definitions.on(plane, "TrainJob").await?;
    let namespace = plane.new_namespace().await?;
    let api = plane.api(&definition.resource, &namespace);
    for manager in ["example.com/one", "example.com/two"] {
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "patched"},
            "spec": {"runtimeRef": {"name": "shared"}, "runtimePatches": [{"manager": manager}]},
        });
        let write = Write::by(&manager.replace('/', "-"));
        api.apply(&job, &write).await?.accepted()?;
    }
    let stored = api.get("patched").await?.accepted()?;
    let patches = stored.pointer("/spec/runtimePatches");
    let wanted = json!([{"manager": "example.com/one"}, {"manager": "example.com/two"}]);
    ensure!(patches == Some(&wanted), "{stored}");
    Ok(())
}

async fn printer_columns_are_served(plane: &ControlPlane, definitions: &Definitions) -> Result<()> {
    let definition = definitions.on(plane, "TrainJob").await?;
    let name = "trainjobs.trainer.kubeflow.org";
    let stored = plane.api(&Resource::crds(), "").get(name).await?;
    ensure!(stored.status == StatusCode::OK, "{}", stored.body);
    let columns = |crd: &Value| {
        crd.pointer("/spec/versions/0/additionalPrinterColumns")
            .cloned()
    };
    let wanted = json!([
        {"name": "State", "type": "string", "jsonPath": ".status.conditions[?(@.status==\"True\")].type"},
        {"name": "Error", "type": "string", "jsonPath": r".metadata.annotations.trainyard\.dev/reconcile-error"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    ensure!(
        columns(&stored.body) == columns(&definition.crd),
        "{}",
        stored.body
    );
    ensure!(
        columns(&stored.body) == Some(wanted),
        "{:?}",
        columns(&stored.body)
    );
    Ok(())
}

pub(crate) fn tests() -> Result<Vec<Test>> {
    let definitions = Arc::new(Definitions::read()?);
    let mut tests = Vec::new();
    for (kind, definition) in definitions.iter() {
        let definition = definition.clone();
        let name = format!("{kind}_installs_both_ways");
        tests.push(Test::new(name, async move |plane: &ControlPlane| {
            installs_both_ways(plane, &definition).await
        }));
    }
    let shared = Arc::clone(&definitions);
    let name = "two_managers_that_each_add_an_env_var_merge";
    tests.push(Test::new(name, async move |plane: &ControlPlane| {
        two_managers_that_each_add_an_env_var_merge(plane, &shared).await
    }));
    let shared = Arc::clone(&definitions);
    let name = "two_managers_of_patches_merge";
    tests.push(Test::new(name, async move |plane: &ControlPlane| {
        two_managers_of_patches_merge(plane, &shared).await
    }));
    tests.push(Test::new(
        "printer_columns_are_served",
        async move |plane: &ControlPlane| printer_columns_are_served(plane, &definitions).await,
    ));
    Ok(tests)
}
