//! kubectl, built from its library.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::go;

/// The module with its version.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kubectl");
const PACKAGE: &str = "trainyard.dev/tests/cluster/kubectl";

/// Returns the path of kubectl, which is built if it is missing.
///
/// # Errors
/// Go is missing, or the build failed.
pub fn kubectl() -> Result<PathBuf> {
    go::program("kubectl", Path::new(MODULE), PACKAGE)
}
