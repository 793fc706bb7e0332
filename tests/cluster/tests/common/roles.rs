//! Applies the roles that `trainyard rbac` prints.

use std::{ffi::OsString, process::Command};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Resource, Trainyard, Write};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Returns the roles that `trainyard rbac` prints with these arguments.
pub(crate) fn printed(arguments: &[OsString]) -> Result<Vec<Value>> {
    let mut rbac = Command::new(Trainyard::program()?);
    let output = rbac
        .args(["rbac", "--output=json"])
        .args(arguments)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    let list: Value = serde_json::from_slice(&output.stdout)?;
    list["items"]
        .as_array()
        .cloned()
        .context("the output is not a list")
}

/// Replaces the roles of the controller's ServiceAccount by these roles of the same names.
pub(crate) async fn grant(plane: &ControlPlane, roles: &[Value]) -> Result<()> {
    ensure!(roles.len() == 2, "{roles:#?}");
    for role in roles {
        let resource = match role["kind"].as_str() {
            Some("ClusterRole") => Resource::cluster_wide(RBAC, "clusterroles"),
            _ => Resource::namespaced(RBAC, "roles"),
        };
        let text = |field: &str| role["metadata"][field].as_str().unwrap_or_default();
        let api = plane.api(&resource, text("namespace"));
        let rules = json!({"rules": role["rules"]});
        let merged = api.merge(text("name"), &rules, &Write::strict()).await?;
        merged.accepted()?;
    }
    Ok(())
}
