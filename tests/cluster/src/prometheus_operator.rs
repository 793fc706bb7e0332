//! The kinds of the Prometheus operator.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use serde_json::Value;
use trainyard_api::yaml;

use crate::go;

/// The module with its version.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/prometheus-operator");
const OPERATOR: &str = "github.com/prometheus-operator/prometheus-operator";

/// Returns the CustomResourceDefinition of a kind of the Prometheus operator, such as `prometheusrules`, from its Go module.
///
/// # Errors
/// Go is missing, the download failed, or the definition cannot be parsed.
pub fn prometheus_operator_crd(plural: &str) -> Result<Value> {
    let folder = go::source(Path::new(MODULE), OPERATOR)?.join("example/prometheus-operator-crd");
    let path = folder.join(format!("monitoring.coreos.com_{plural}.yaml"));
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let document = yaml::read(&text).into_iter().next();
    Ok(document
        .with_context(|| format!("{} is empty", path.display()))??
        .value)
}
