//! Frameworks that are Python packages.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

use super::{Installed, PROGRAMS, program};
use crate::python::Packages;

/// A framework's packages and program.
pub(super) struct Requirements {
    name: &'static str,
    /// The name of its files in the folder of the programs, and in the cache.
    file: &'static str,
    /// The program that starts a script.
    launcher: &'static str,
    /// The space that its packages need, as measured with the pinned version.
    size: &'static str,
}

impl Requirements {
    pub(super) const TORCH: Self = Self {
        name: "PyTorch",
        file: "torch",
        launcher: "torchrun",
        size: "2.9 GB to download, 5.4 GB on disk, and as much again until pip has moved them",
    };
    pub(super) const JAX: Self = Self {
        name: "JAX",
        file: "jax",
        launcher: "python3",
        size: "140 MB to download, 600 MB on disk",
    };
    pub(super) const XGBOOST: Self = Self {
        name: "XGBoost",
        file: "xgboost",
        launcher: "python3",
        size: "60 MB to download, 250 MB on disk",
    };

    /// Hugging Face's Trainer, without the packages of [`Self::TORCH`], which it needs.
    const TRANSFORMERS: Self = Self {
        name: "Transformers",
        file: "transformers",
        launcher: "torchrun",
        size: "60 MB to download, 195 MB on disk, beside PyTorch",
    };

    pub(super) fn install(&self) -> Result<Installed> {
        let (version, packages) = self.packages(&[])?;
        let script = program(&format!("{}_sum.py", self.file));
        Ok(self.installed(version, &packages, &script))
    }

    /// Installs Hugging Face's Trainer. The command trains with it.
    pub(super) fn install_transformers() -> Result<Installed> {
        let (_, torch) = Self::TORCH.packages(&[])?;
        let (version, packages) = Self::TRANSFORMERS.packages(&["--no-deps"])?;
        let script = program("transformers_train.py");
        Ok(Self::TRANSFORMERS.installed(version, &packages.with(torch), &script))
    }

    fn installed(&self, version: String, packages: &Packages, script: &Path) -> Installed {
        Installed {
            version,
            command: vec![self.launcher.to_owned(), script.display().to_string()],
            image: packages.image(Path::new(PROGRAMS)),
        }
    }

    /// Installs the packages with further options of pip, and returns them with the name and the version of the first one.
    fn packages(&self, options: &[&str]) -> Result<(String, Packages)> {
        let file = self.file;
        let requirements = program(&format!("{file}.txt"));
        let version = version(&requirements)?;
        let version = format!("{} {version}", self.name);
        let announce = |folder: &Path| {
            println!(
                "installing {version} into {}: {}",
                folder.display(),
                self.size
            );
        };
        let options = [&["--no-cache-dir", "--root-user-action=ignore"], options].concat();
        let cached = format!("framework-{file}");
        let packages = Packages::install(&cached, &requirements, &options, announce)
            .with_context(|| {
                format!(
                    "{version} is missing and pip cannot install it; it needs Python 3.11 or newer with pip, and {}",
                    self.size
                )
            })?;
        Ok((version, packages))
    }
}

/// Returns the version of the first package in a requirements file.
fn version(requirements: &Path) -> Result<String> {
    let text = fs::read_to_string(requirements)?;
    let first = text.lines().next().and_then(|line| line.split_once("=="));
    let (_, version) = first.with_context(|| {
        format!(
            "{}: the first line has no version; pin it with ==",
            requirements.display()
        )
    })?;
    Ok(version.to_owned())
}
