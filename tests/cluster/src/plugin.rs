//! Plugins as their authors build them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::trainyard::Trainyard;

/// Builds the component of a plugin's crate, with these variables in the environment of its compiler. All guests are built in one
/// folder, beside what cargo builds for this machine.
///
/// # Errors
/// The program was not built, or it does not build the crate: with what it said.
pub fn build_plugin(
    crate_folder: &Path,
    component: &Path,
    variables: &[(&str, &str)],
) -> Result<()> {
    let program = Trainyard::program()?;
    let target = program.ancestors().nth(2);
    let target = target.context("the program stands in a folder of target/")?;
    let mut build = Command::new(&program);
    build
        .env("CARGO_TARGET_DIR", target)
        .args(["plugin", "build"])
        .arg(crate_folder)
        .arg("--output")
        .arg(component);
    // Those of the test, which cargo runs too.
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_PKG"))
    {
        build.env_remove(name);
    }
    build.env_remove("CARGO_MANIFEST_DIR");
    let built = build.envs(variables.iter().copied()).output()?;
    ensure!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    Ok(())
}
