//! The Go toolchain, which builds Kubernetes and the reference.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, Result, bail, ensure};

use crate::cache::Entry;

/// Returns whether Go is installed.
#[must_use]
pub fn is_installed() -> bool {
    Command::new("go").arg("version").output().is_ok()
}

/// Returns the version of the toolchain.
pub(crate) fn version() -> Result<String> {
    let output = go(Path::new("."), &["env", "GOVERSION"])?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Builds packages of the module in a folder: one into a file, or several into an existing folder, each under the name that Go gives
/// it. Shared packages are built once.
pub(crate) fn build(module: &Path, packages: &[&str], to: &Path) -> Result<()> {
    build_with(module, packages, "", to)
}

/// Builds packages as [`build`] does, with a value for a variable as the linker's `-X` reads it, such as `package.name=value`.
pub(crate) fn build_with(
    module: &Path,
    packages: &[&str],
    variable: &str,
    to: &Path,
) -> Result<()> {
    let to = to.to_str().context("the path is not UTF-8")?;
    let mut flags = "-s -w".to_owned();
    if !variable.is_empty() {
        flags = format!("{flags} -X {variable}");
    }
    let mut args = vec![
        "build",
        "-trimpath",
        // The linker drops debug information. To compile Kubernetes without it takes a sixth less.
        "-gcflags=all=-dwarf=false",
        "-ldflags",
        &flags,
        "-o",
        to,
    ];
    args.extend(packages);
    go(module, &args)?;
    Ok(())
}

/// Returns a program of the module in a folder, which is built into the cache under its name if it is not there.
pub(crate) fn program(name: &str, module: &Path, package: &str) -> Result<PathBuf> {
    let files = [module.join("go.mod"), module.join("go.sum")];
    let entry = Entry::of(name, &files, &version()?)?;
    let program = entry.folder.join(name);
    let _lock = entry.lock()?;
    if !program.exists() {
        let scratch = tempfile::tempdir_in(&entry.folder)?;
        let built = scratch.path().join("built");
        build(module, &[package], &built)?;
        fs::rename(built, &program)?;
    }
    Ok(program)
}

/// Returns the folder with the source of a module that the module in `folder` requires.
pub(crate) fn source(module: &Path, required: &str) -> Result<PathBuf> {
    go(module, &["mod", "download", required])?;
    about(module, required, "{{.Dir}}").map(PathBuf::from)
}

/// Returns what `go list` prints about a module that the module in `folder` requires, in this format.
pub(crate) fn about(module: &Path, required: &str, format: &str) -> Result<String> {
    let output = go(module, &["list", "-m", "-f", format, required])?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn go(folder: &Path, args: &[&str]) -> Result<Output> {
    let output = Command::new("go")
        .args(args)
        .current_dir(folder)
        .env("CGO_ENABLED", "0")
        .output();
    let output = match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "Go is missing: install Go 1.26 or newer. What these tests compare with is built from Go modules; \
             etcd and kube-apiserver can also be taken from a folder that KUBEBUILDER_ASSETS names"
        ),
        output => output.context("cannot run go")?,
    };
    ensure!(
        output.status.success(),
        "`go {}` in {} failed:\n{}",
        args.join(" "),
        folder.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(output)
}
