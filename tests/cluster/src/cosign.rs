//! Sigstore's cosign, which signs plugins.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::go;

/// The module with the version of cosign.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cosign");
const PACKAGE: &str = "github.com/sigstore/cosign/v3/cmd/cosign";

/// Returns the program, which is built into the cache if it is not there.
///
/// # Errors
/// Go is missing, or the build failed.
pub fn cosign() -> Result<PathBuf> {
    go::program("cosign", Path::new(MODULE), PACKAGE)
}
