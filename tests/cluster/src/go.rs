//! The Go toolchain, which builds Kubernetes and the reference.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, Result, bail, ensure};

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
    let to = to.to_str().context("the path is not UTF-8")?;
    let mut args = vec!["build", "-trimpath", "-ldflags", "-s -w", "-o", to];
    args.extend(packages);
    go(module, &args)?;
    Ok(())
}

/// Returns the folder with the source of a module that the module in `folder` requires.
pub(crate) fn source(module: &Path, required: &str) -> Result<PathBuf> {
    go(module, &["mod", "download", required])?;
    let output = go(module, &["list", "-m", "-f", "{{.Dir}}", required])?;
    Ok(PathBuf::from(
        String::from_utf8_lossy(&output.stdout).trim(),
    ))
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
