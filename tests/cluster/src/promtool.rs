//! promtool, built from its module.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::go;

/// The module with its version, and tests of the chart's alerts.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/promtool");
const PACKAGE: &str = "github.com/prometheus/prometheus/cmd/promtool";

/// Returns the path of promtool, which is built if it is missing.
///
/// # Errors
/// Go is missing, or the build failed.
pub fn promtool() -> Result<PathBuf> {
    go::program("promtool", Path::new(MODULE), PACKAGE)
}
