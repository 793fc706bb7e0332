//! kustomize, built from its module, as users of deploy/ run it.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use trainyard_api::{Inputs, Object};

use crate::go;

/// The module with its version.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kustomize");
const PACKAGE: &str = "sigs.k8s.io/kustomize/kustomize/v5";

/// Returns the output of `kustomize build` for a folder: objects in the order in which they are applied.
///
/// # Errors
/// Go is missing, kustomize failed, or its output cannot be parsed.
pub fn kustomized(folder: &Path) -> Result<Vec<Object>> {
    let built = Command::new(go::program("kustomize", Path::new(MODULE), PACKAGE)?)
        .arg("build")
        .arg(folder)
        .output();
    let built = built.context("cannot run kustomize")?;
    ensure!(
        built.status.success(),
        "kustomize build {}: {}",
        folder.display(),
        String::from_utf8_lossy(&built.stderr).trim()
    );
    let name = format!("kustomize build {}", folder.display());
    let inputs = Inputs::read_text(&name, &String::from_utf8(built.stdout)?).into_result()?;
    ensure!(!inputs.objects.is_empty(), "{name} is empty");
    Ok(inputs.objects)
}
