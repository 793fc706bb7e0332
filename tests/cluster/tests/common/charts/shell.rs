//! A shell in which a version of helm runs, as in a source checkout.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Result, ensure};
use tempfile::TempDir;
use trainyard_cluster::{Helm, Trainyard, chart, kubectl};

use super::{copied, reference::copy_the_references};

/// A folder with both charts, and with the programs of the documentation.
pub(crate) struct Shell {
    helm: Helm,
    folder: TempDir,
}

impl Shell {
    /// Makes the folder.
    pub(crate) fn new(helm: Helm) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let shell = Self { helm, folder };
        let programs = shell.path("bin");
        fs::create_dir(&programs)?;
        for (name, program) in [
            ("helm", PathBuf::from(helm.command()?.get_program())),
            ("kubectl", kubectl()?),
            ("trainyard", Trainyard::program()?),
        ] {
            symlink(program, programs.join(name))?;
        }
        fs::create_dir(shell.path("charts"))?;
        copied(&chart(), &shell.path("charts/trainyard"))?;
        copy_the_references(&shell.path("charts/kubeflow-trainer"))?;
        Ok(shell)
    }

    /// Returns a path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Arguments for an installation over objects that something else created. Version 4 applies on the server, where that something has
    /// the fields.
    pub(crate) fn taking_over(&self) -> &'static [&'static str] {
        match self.helm {
            Helm::Three => &["--take-ownership"],
            Helm::Four => &["--take-ownership", "--force-conflicts"],
        }
    }

    /// Runs a command in the folder with the permissions of a kubeconfig file. Returns its output.
    pub(crate) async fn run(&self, kubeconfig: &Path, command: &str) -> Result<String> {
        let folders =
            env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
        let path = env::join_paths([self.path("bin")].into_iter().chain(folders))?;
        let mut shell = Command::new("sh");
        shell
            .args(["-euc", command])
            .env("PATH", path)
            .env("KUBECONFIG", kubeconfig)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || shell.output()).await??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        ensure!(
            output.status.success(),
            "{:?}: {command}: {}: {out}{error}",
            self.helm,
            output.status
        );
        Ok(out)
    }
}
