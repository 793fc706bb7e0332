//! kustomize, built from its module, as users of deploy/ run it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use trainyard_api::{Inputs, Object};

use crate::{cache::Entry, go};

/// The module with its version.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kustomize");
const PACKAGE: &str = "sigs.k8s.io/kustomize/kustomize/v5";

/// Returns the output of `kustomize build` for a folder: objects in the order in which they are applied.
///
/// # Errors
/// Go is missing, kustomize failed, or its output cannot be parsed.
pub fn kustomized(folder: &Path) -> Result<Vec<Object>> {
    let built = Command::new(program()?).arg("build").arg(folder).output();
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

/// Returns the program, which is built if it is not in the cache.
fn program() -> Result<PathBuf> {
    let module = Path::new(MODULE);
    let files = [module.join("go.mod"), module.join("go.sum")];
    let entry = Entry::of("kustomize", &files, &go::version()?)?;
    let program = entry.folder.join("kustomize");
    let _lock = entry.lock()?;
    if !program.is_file() {
        let scratch = tempfile::Builder::new()
            .prefix(".building-")
            .tempdir_in(&entry.folder)?;
        let built = scratch.path().join("kustomize");
        go::build(module, &[PACKAGE], &built)?;
        fs::rename(built, &program)?;
    }
    Ok(program)
}
