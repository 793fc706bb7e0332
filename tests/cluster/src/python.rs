//! Python packages, and programs that use them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{cache::Entry, kubelet::Image, process::Process, wait::PAUSE};

/// The folder of the clients' scripts.
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");

/// Folders with the packages of requirements files.
#[derive(Debug)]
pub(crate) struct Packages(Vec<PathBuf>);

impl Packages {
    /// The Kubeflow SDK, with the models of Trainer's objects.
    pub(crate) fn kubeflow() -> Result<Self> {
        let requirements = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../reference/types/requirements.txt"
        );
        Self::install(
            "python-client",
            Path::new(requirements),
            &["--quiet"],
            |_| (),
        )
    }

    /// Installs them into the cache if they are missing, with these options of pip. Before that, passes their folder to a function.
    pub(crate) fn install(
        name: &str,
        requirements: &Path,
        options: &[&str],
        announce: impl FnOnce(&Path),
    ) -> Result<Self> {
        let version = output(Command::new("python3").arg("--version"))?;
        let files = [requirements.to_owned()];
        let entry = Entry::of(name, &files, &version)?;
        let packages = entry.folder.join("packages");
        if packages.is_dir() {
            return Ok(Self(vec![packages]));
        }
        let _lock = entry.lock()?;
        if !packages.is_dir() {
            announce(&packages);
            let scratch = tempfile::Builder::new()
                .prefix(".installing-")
                .tempdir_in(&entry.folder)?;
            let target = scratch.path().join("packages");
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "install"]).args(options);
            pip.arg("--target").arg(&target);
            // Without --quiet, it shows its progress.
            pip.stdout(Stdio::inherit());
            output(pip.arg("--requirement").arg(requirements))?;
            fs::rename(&target, &packages)?;
        }
        Ok(Self(vec![packages]))
    }

    /// Adds the packages that these need.
    pub(crate) fn with(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Returns the value of `PYTHONPATH`.
    fn path(&self) -> String {
        let folders = self.0.iter().map(|folder| folder.display().to_string());
        folders.collect::<Vec<_>>().join(":")
    }

    /// Returns what pods have whose scripts, in this folder, use these packages.
    pub(crate) fn image(&self, scripts: &Path) -> Image {
        // A clone or a cache in /tmp is not visible in pods, which have a /tmp of their own.
        let image = Image::default()
            .file(scripts, scripts)
            .env("PYTHONPATH", self.path())
            .env("PYTHONDONTWRITEBYTECODE", "1");
        self.0.iter().fold(image, |image, folder| {
            image.file(folder, folder).path(folder.join("bin"))
        })
    }

    /// Returns a command that runs a script with these packages.
    pub(crate) fn run(&self, script: &Path) -> Command {
        let mut command = Command::new("python3");
        command
            .arg(script)
            .env("PYTHONPATH", self.path())
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .context("cannot run python3: install Python 3.10 or newer, with pip")?;
    ensure!(
        output.status.success(),
        "python3 failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A released client of the reference, used by a script in `clients/` that makes one call per run.
#[derive(Debug)]
pub struct PythonClient {
    packages: Packages,
    script: PathBuf,
}

/// The outcome of one call.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The output of the script.
    pub result: Value,
    /// The warnings of the client.
    pub warnings: Vec<String>,
}

impl PythonClient {
    /// Returns the Kubeflow SDK, which is installed into the cache if it is missing.
    ///
    /// # Errors
    /// Python is missing, or the installation failed.
    pub fn kubeflow() -> Result<Self> {
        Ok(Self {
            packages: Packages::kubeflow()?,
            script: Path::new(SCRIPTS).join("kubeflow_client.py"),
        })
    }

    /// Returns NeMo Run, which is installed into the cache if it is missing.
    ///
    /// # Errors
    /// Python is missing, or the installation failed.
    pub fn nemo_run() -> Result<Self> {
        let scripts = Path::new(SCRIPTS);
        Ok(Self {
            packages: Packages::install(
                "nemo-run",
                &scripts.join("nemo_run.txt"),
                &["--quiet", "--no-deps"],
                |_| (),
            )?,
            script: scripts.join("nemo_run_client.py"),
        })
    }

    /// Returns what pods have whose program is a script in `clients/` that uses the client, and the command that runs the script.
    #[must_use]
    pub fn in_pods(&self, script: &str) -> (Image, Vec<String>) {
        let scripts = Path::new(SCRIPTS);
        let script = scripts.join(script).display().to_string();
        (
            self.packages.image(scripts),
            vec!["python3".to_owned(), script],
        )
    }

    /// Makes a call with a kubeconfig file, and writes a log to the folder.
    ///
    /// # Errors
    /// The script failed or returned nothing: with the end of its output.
    pub async fn call<'a>(
        &self,
        kubeconfig: &Path,
        logs: &Path,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Outcome> {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let script = self
            .script
            .file_stem()
            .context("the script has no file name")?;
        let number = CALLS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", script.to_string_lossy());
        let mut command = self.packages.run(&self.script);
        command.env("KUBECONFIG", kubeconfig).args(arguments);
        let process = Process::start(&name, &command, logs)?;
        let status = loop {
            match process.ended()? {
                Some(status) => break status,
                None => tokio::time::sleep(PAUSE).await,
            }
        };
        ensure!(status.success(), "{status}: {}", process.last_words());
        let words = process.last_words();
        let reported = words.lines().next_back().map(serde_json::from_str::<Value>);
        let Some(Ok(mut reported)) = reported else {
            bail!("the script printed no result: {words}");
        };
        let warnings = reported.get("warnings").and_then(Value::as_array);
        let warnings = warnings.into_iter().flatten();
        Ok(Outcome {
            warnings: warnings
                .filter_map(|text| Some(text.as_str()?.to_owned()))
                .collect(),
            result: reported
                .get_mut("result")
                .map(Value::take)
                .unwrap_or_default(),
        })
    }
}
