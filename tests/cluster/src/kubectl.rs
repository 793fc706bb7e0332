//! kubectl of the same Kubernetes as the control plane, as users run it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use trainyard_api::{Inputs, Object};

use crate::{binaries::TOOLS, go};

const PACKAGE: &str = "k8s.io/kubernetes/cmd/kubectl";

/// Returns the path of kubectl, which is built if it is missing.
///
/// # Errors
/// Go is missing, or the build failed.
pub fn kubectl() -> Result<PathBuf> {
    go::program("kubectl", Path::new(TOOLS), PACKAGE)
}

/// Returns the output of `kubectl kustomize` for a folder: objects in the order in which they are applied.
///
/// # Errors
/// Go is missing, kubectl failed, or its output cannot be parsed.
pub fn kustomized(folder: &Path) -> Result<Vec<Object>> {
    let built = Command::new(kubectl()?)
        .arg("kustomize")
        .arg(folder)
        .output();
    let built = built.context("cannot run kubectl")?;
    let name = format!("kubectl kustomize {}", folder.display());
    ensure!(
        built.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&built.stderr).trim()
    );
    let inputs = Inputs::read_text(&name, &String::from_utf8(built.stdout)?).into_result()?;
    ensure!(!inputs.objects.is_empty(), "{name} is empty");
    Ok(inputs.objects)
}
