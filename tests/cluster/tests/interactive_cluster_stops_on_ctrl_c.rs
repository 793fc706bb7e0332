//! `make cluster` prints a kubeconfig that works, with the runtimes of deploy/, and Ctrl-C leaves no process and no file behind.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};
use trainyard_cluster::{ControlPlane, Test, Trainyard, client_of};

/// The program of `make cluster`. It is killed if the test fails.
struct Interactive {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Drop for Interactive {
    fn drop(&mut self) {
        // It has exited, unless the test has failed.
        let _ = self.child.kill();
    }
}

/// Starts the program in a process group of its own, as a shell does, and reads the path of the kubeconfig that it prints.
fn start() -> Result<(Interactive, PathBuf)> {
    let program = Trainyard::program()?.with_file_name("examples/cluster");
    let mut child = Command::new(&program)
        .process_group(0)
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{}: build it with `make cluster`", program.display()))?;
    let output = child.stdout.take().context("no output")?;
    let output = BufReader::new(output);
    let mut interactive = Interactive { child, output };
    let mut line = String::new();
    while interactive.output.read_line(&mut line)? > 0 {
        if let Some((_, path)) = line.split_once("export KUBECONFIG=") {
            return Ok((interactive, path.trim_end().into()));
        }
        line.clear();
    }
    bail!("the program printed no kubeconfig")
}

/// Returns the processes whose arguments contain the folder.
fn processes_of(folder: &Path) -> Result<Vec<String>> {
    let folder = folder.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        // Processes can exit meanwhile.
        let arguments = fs::read(entry?.path().join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
        if arguments.contains(&folder) {
            found.push(arguments);
        }
    }
    Ok(found)
}

async fn ctrl_c_leaves_nothing_behind(_: &ControlPlane) -> Result<()> {
    let (mut interactive, kubeconfig) = start()?;
    let folder = kubeconfig.parent().context("no folder")?;
    let client = client_of(&kubeconfig).await?;
    let kind = GroupVersionKind::gvk("trainer.kubeflow.org", "v1alpha1", "ClusterTrainingRuntime");
    let runtimes: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&kind));
    let runtimes = runtimes.list(&ListParams::default()).await?.items;
    ensure!(runtimes.len() >= 5, "{runtimes:#?}");
    ensure!(processes_of(folder)?.len() >= 5);
    let group = format!("-{}", interactive.child.id());
    let sent = Command::new("kill").args(["-INT", "--", &group]).status()?;
    ensure!(sent.success());
    let status = interactive.child.wait()?;
    ensure!(status.success(), "{status}");
    ensure!(!folder.exists());
    let left = processes_of(folder)?;
    ensure!(left.is_empty(), "{left:#?}");
    Ok(())
}

pub(crate) fn tests() -> Vec<Test> {
    tests![ctrl_c_leaves_nothing_behind]
}
