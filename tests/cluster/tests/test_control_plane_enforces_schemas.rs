//! The control plane is a real one: it validates, prunes, defaults and merges by the schema of a CRD.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Install, Resource, Test, Write, install};

/// Returns a kind in a separate group for each test, so that they can run concurrently.
fn definition(group: &str) -> Value {
    let spec = json!({
        "type": "object",
        "required": ["seats"],
        "properties": {
            "seats": {"type": "integer", "format": "int32", "minimum": 1},
            "color": {"type": "string", "default": "green"},
            "owner": {"type": "string"},
            "stops": {
                "type": "array",
                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("wagons.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Wagon", "plural": "wagons", "singular": "wagon", "listKind": "WagonList"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

fn wagon(group: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{group}/v1"), "kind": "Wagon", "metadata": {"name": "first"}, "spec": spec})
}

async fn wagons(plane: &ControlPlane, group: &str, how: Install) -> Result<(Resource, String)> {
    let wagons = install(plane, &definition(group), how).await?;
    Ok((wagons, plane.new_namespace().await?))
}

async fn invalid_object_is_refused_with_its_causes(plane: &ControlPlane) -> Result<()> {
    let group = "refused.example.com";
    let (wagons, namespace) = wagons(plane, group, Install::ServerSide).await?;
    let bad = wagon(group, json!({"seats": 0, "owner": 7}));
    let refusal = plane
        .api(&wagons, &namespace)
        .create(&bad, &Write::default())
        .await?
        .refused()?;
    ensure!(
        (refusal.code, refusal.reason.as_str()) == (422, "Invalid"),
        "{refusal}"
    );
    let mut fields: Vec<&str> = refusal
        .causes
        .iter()
        .map(|cause| cause.field.as_str())
        .collect();
    fields.sort_unstable();
    ensure!(fields == ["spec.owner", "spec.seats"], "{fields:?}");
    Ok(())
}

async fn nulls_are_dropped_and_defaults_set(plane: &ControlPlane) -> Result<()> {
    let group = "defaulted.example.com";
    let (wagons, namespace) = wagons(plane, group, Install::ClientSide).await?;
    let object = wagon(group, json!({"seats": 4, "color": null}));
    let api = plane.api(&wagons, &namespace);
    api.create(&object, &Write::strict()).await?.accepted()?;
    let stored = api.get("first").await?.accepted()?;
    ensure!(
        stored["spec"] == json!({"seats": 4, "color": "green"}),
        "{stored}"
    );
    Ok(())
}

async fn unknown_fields_are_refused_warned_about_or_dropped(plane: &ControlPlane) -> Result<()> {
    let group = "unknown.example.com";
    let (wagons, namespace) = wagons(plane, group, Install::ServerSide).await?;
    let object = wagon(group, json!({"seats": 4, "wheels": 8}));
    let api = plane.api(&wagons, &namespace);
    let refusal = api.create(&object, &Write::strict()).await?.refused()?;
    ensure!(refusal.code == 400, "{refusal}");
    ensure!(
        refusal.message.contains(r#"unknown field "spec.wheels""#),
        "{refusal}"
    );
    let answer = api.create(&object, &Write::default()).await?;
    ensure!(
        answer.warnings == [r#"unknown field "spec.wheels""#],
        "{:?}",
        answer.warnings
    );
    let stored = answer.accepted()?;
    ensure!(stored["spec"].get("wheels").is_none(), "{stored}");
    Ok(())
}

async fn lists_of_two_managers_merge(plane: &ControlPlane) -> Result<()> {
    let group = "merged.example.com";
    let (wagons, namespace) = wagons(plane, group, Install::ServerSide).await?;
    let api = plane.api(&wagons, &namespace);
    for (manager, stop) in [("one", "north"), ("two", "south")] {
        let object = wagon(group, json!({"seats": 4, "stops": [{"name": stop}]}));
        api.apply(&object, &Write::by(manager)).await?.accepted()?;
    }
    let stored = api.get("first").await?.accepted()?;
    ensure!(
        stored["spec"]["stops"] == json!([{"name": "north"}, {"name": "south"}]),
        "{stored}"
    );
    let other = wagon(group, json!({"seats": 5}));
    let refusal = api.apply(&other, &Write::by("two")).await?.refused()?;
    ensure!(refusal.reason == "Conflict", "{refusal}");
    Ok(())
}

async fn crd_too_large_for_an_annotation_needs_server_side_apply(
    plane: &ControlPlane,
) -> Result<()> {
    let mut large = definition("large.example.com");
    large["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] =
        Value::String("long ".repeat(60_000));
    let refused = install(plane, &large, Install::ClientSide).await;
    let message = refused.err().map(|error| error.to_string());
    ensure!(
        message
            .as_ref()
            .is_some_and(|message| message.contains("metadata.annotations: Too long")),
        "{message:?}"
    );
    install(plane, &large, Install::ServerSide).await?;
    Ok(())
}

pub(crate) fn tests() -> Vec<Test> {
    tests![
        invalid_object_is_refused_with_its_causes,
        nulls_are_dropped_and_defaults_set,
        unknown_fields_are_refused_warned_about_or_dropped,
        lists_of_two_managers_merge,
        crd_too_large_for_an_annotation_needs_server_side_apply,
    ]
}
