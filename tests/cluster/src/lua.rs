//! The Lua interpreter of Argo CD, built from its module.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::go;

/// The module with its version.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/lua");
const PACKAGE: &str = "github.com/yuin/gopher-lua/cmd/glua";

/// Returns the path of the interpreter, which is built if it is missing.
///
/// # Errors
/// Go is missing, or the build failed.
pub fn lua() -> Result<PathBuf> {
    go::program("glua", Path::new(MODULE), PACKAGE)
}
