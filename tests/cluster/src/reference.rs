//! The reference's controller, built from its published module.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::cache::Entry;
use crate::go;

/// The module that names its version.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reference/controller");
const PACKAGE: &str = "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager";

/// The program of the reference's controller, built once, which takes minutes.
///
/// # Errors
/// No Go, or what its build said.
pub fn reference_controller() -> Result<PathBuf> {
    let module = Path::new(FOLDER);
    let files = [module.join("go.mod"), module.join("go.sum")];
    let entry = Entry::of("reference-controller", &files, &go::version()?)?;
    let program = entry.folder.join("trainer-controller-manager");
    let _lock = entry.lock()?;
    if !program.exists() {
        let scratch = tempfile::tempdir_in(&entry.folder)?;
        let built = scratch.path().join("built");
        go::build(module, &[PACKAGE], &built)?;
        fs::rename(built, &program)?;
    }
    Ok(program)
}
