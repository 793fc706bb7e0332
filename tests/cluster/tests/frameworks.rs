//! The frameworks on this machine, in TrainJobs on a real control plane: `make test-frameworks`.
//!
//! A framework that is missing is installed first. If that fails, its tests are ignored, with a line that says what to install; with
//! `TRAINYARD_FRAMEWORKS_REQUIRED=1`, the program fails instead.

use std::env;

use anyhow::{Context as _, Result, bail, ensure};
use trainyard_cluster::{Framework, Installed, Isolation, Program};

use crate::{
    elastic_torch_goes_on_without_a_node as elastic,
    frameworks_form_their_groups::{Guarantee, tests},
    trainers_report_progress as progress,
};

const FILE: &str = "frameworks_form_their_groups";
/// More tests of PyTorch.
const ELASTIC: &str = "elastic_torch_goes_on_without_a_node";
/// A test of Hugging Face's Trainer.
const PROGRESS: &str = "trainers_report_progress";

/// Returns the tests of the frameworks that the command line selects and that are here.
pub(crate) fn program() -> Result<Program> {
    let mut program = Program::default();
    let mut missing = 0;
    for framework in Framework::ALL {
        let is_torch = framework == Framework::Torch;
        let groups = Guarantee::ALL.map(|guarantee| (FILE, guarantee.test(framework)));
        let elastic = elastic::names().filter(|_| is_torch);
        let elastic = elastic.map(|name| (ELASTIC, name.to_owned()));
        let names: Vec<_> = groups.into_iter().chain(elastic).collect();
        if !names.iter().any(|(file, name)| Program::runs(file, name)) {
            continue;
        }
        match prepare(framework) {
            Ok(installed) => {
                program = program.tests(FILE, tests(framework, &installed));
                if is_torch {
                    program = program.tests(ELASTIC, elastic::tests(&installed));
                }
            }
            Err(error) => {
                println!("skipped: {error:#}");
                missing += 1;
                for (file, name) in &names {
                    program = program.ignored(file, name);
                }
            }
        }
    }
    if Program::runs(PROGRESS, progress::NAME) {
        match prepare_transformers() {
            Ok(installed) => program = program.tests(PROGRESS, progress::tests(&installed)),
            Err(error) => {
                println!("skipped: {error:#}");
                missing += 1;
                program = program.ignored(PROGRESS, progress::NAME);
            }
        }
    }
    if missing > 0 && env::var_os("TRAINYARD_FRAMEWORKS_REQUIRED").is_some() {
        bail!("{missing} frameworks are missing, and TRAINYARD_FRAMEWORKS_REQUIRED is set");
    }
    Ok(program)
}

/// Installs a framework that pods can run on this machine.
fn prepare(framework: Framework) -> Result<Installed> {
    let is_root = Isolation::detect() == Isolation::Root;
    ensure!(
        is_root || !framework.is_mpi(),
        "{} needs pods with namespaces and a user of their own; run this as root",
        framework.name()
    );
    let installed = framework.install().context("cannot be installed")?;
    println!("{}: {}", framework.runtime(), installed.version);
    Ok(installed)
}

/// Installs Hugging Face's Trainer for pods, whose volumes need namespaces.
fn prepare_transformers() -> Result<Installed> {
    let is_separate = Isolation::detect() != Isolation::Loopback;
    ensure!(
        is_separate,
        "Transformers needs pods with namespaces of their own; run this as root"
    );
    let installed = Installed::transformers().context("cannot be installed")?;
    println!("{}", installed.version);
    Ok(installed)
}
