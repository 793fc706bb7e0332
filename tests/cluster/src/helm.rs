//! helm, built from its module, as users of charts/trainyard run it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{go, oracle::Oracle};

/// The folder of the modules with their versions.
const MODULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/helm");
/// The folder of the module that requires JobSet's.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tools");
const JOBSET: &str = "sigs.k8s.io/jobset";
/// The oldest Kubernetes that the chart supports. Without official build flags, helm assumes an even older one.
const KUBERNETES: &str = "1.33.0";
/// What precedes the name of a template in a rendered document.
const SOURCE: &str = "# Source: ";

/// A major version of helm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helm {
    /// Version 3.
    Three,
    /// Version 4.
    Four,
}

impl Helm {
    /// Both versions.
    pub const ALL: [Self; 2] = [Self::Three, Self::Four];

    fn number(self) -> u8 {
        match self {
            Self::Three => 3,
            Self::Four => 4,
        }
    }

    /// Returns a command that runs this helm, which is built if it is missing, without the user's settings.
    ///
    /// # Errors
    /// Go is missing, or the build failed.
    pub fn command(self) -> Result<Command> {
        let number = self.number();
        let module = Path::new(MODULES).join(number.to_string());
        let package = format!("helm.sh/helm/v{number}/cmd/helm");
        let program = go::program(&format!("helm-{number}"), &module, &package)?;
        let mut command = Command::new(program);
        command
            .env_remove("KUBECONFIG")
            .env("HELM_NAMESPACE", "kubeflow-system");
        Ok(command)
    }

    /// Returns the output of `helm lint` for the chart with these arguments.
    ///
    /// # Errors
    /// helm cannot be run.
    pub fn lint(self, arguments: &[&str]) -> Result<Output> {
        let mut command = self.command()?;
        command
            .arg("lint")
            .arg(chart())
            .args(["--strict", "--kube-version", KUBERNETES]);
        command.args(arguments).output().context("cannot run helm")
    }

    /// Returns the documents that the chart renders to with these arguments, by template and in order.
    ///
    /// # Errors
    /// helm refuses the values: with its message.
    pub fn template(self, arguments: &[&str]) -> Result<BTreeMap<String, Vec<String>>> {
        let mut command = self.command()?;
        command
            .args(["template", "trainyard"])
            .arg(chart())
            .args(["--kube-version", KUBERNETES]);
        let output = command
            .args(arguments)
            .output()
            .context("cannot run helm")?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let text = String::from_utf8(output.stdout)?;
        by_template(&text)
    }
}

/// Returns the folder of the chart.
#[must_use]
pub fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/trainyard")
}

/// Returns the folder of JobSet's own chart, in its Go module.
///
/// # Errors
/// Go is missing, or the download failed.
pub fn jobset_chart() -> Result<PathBuf> {
    Ok(go::source(Path::new(TOOLS), JOBSET)?.join("charts/jobset"))
}

/// Returns the folder of the reference's chart, in its Go module. The charts that it depends on are not in it.
///
/// # Errors
/// Go is missing, or the download failed.
pub fn reference_chart() -> Result<PathBuf> {
    Ok(Oracle::reference()?.join("charts/kubeflow-trainer"))
}

/// Splits the output of `helm template`. Templates are named relative to the folder `templates`.
fn by_template(text: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let mut documents = BTreeMap::<_, Vec<_>>::new();
    let beginning = format!("---\n{SOURCE}trainyard/templates/");
    let (before, rest) = text
        .split_once(&beginning)
        .context("nothing was rendered")?;
    if !before.is_empty() {
        bail!("helm printed something before the first document: {before}");
    }
    for document in rest.split(&beginning) {
        let (template, text) = document
            .split_once('\n')
            .context("a document without a line")?;
        let list = documents.entry(template.to_owned()).or_default();
        list.push(format!("{}\n", text.trim()));
    }
    Ok(documents)
}
