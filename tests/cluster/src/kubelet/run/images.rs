//! What this machine has instead of images.

use std::{collections::BTreeMap, path::PathBuf};

/// The environment in which the containers of an image run on this machine, whose files they see.
#[derive(Clone, Debug, Default)]
pub struct Image {
    pub(super) paths: Vec<PathBuf>,
    pub(super) env: Vec<(String, String)>,
    pub(super) entrypoint: Vec<String>,
    pub(super) files: Vec<(PathBuf, PathBuf)>,
}

impl Image {
    /// Adds a folder to the start of `PATH`, after those that were added before.
    #[must_use]
    pub fn path(mut self, folder: impl Into<PathBuf>) -> Self {
        self.paths.push(folder.into());
        self
    }

    /// Sets an env var, unless the container sets it.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the command of containers without one.
    #[must_use]
    pub fn entrypoint(mut self, command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.entrypoint = command.into_iter().map(Into::into).collect();
        self
    }

    /// Mounts a file or folder of this machine at a path, before the volumes are mounted.
    #[must_use]
    pub fn file(mut self, from: impl Into<PathBuf>, to: impl Into<PathBuf>) -> Self {
        self.files.push((from.into(), to.into()));
        self
    }
}

/// The images that pods may use.
#[derive(Clone, Debug, Default)]
pub struct Images {
    named: BTreeMap<String, Image>,
    otherwise: Option<Image>,
}

impl Images {
    /// Returns a set without images. A pod with another image than those in the set fails.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an image, by its name in the containers.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, image: Image) -> Self {
        self.named.insert(name.into(), image);
        self
    }

    /// Sets the environment of all other images.
    #[must_use]
    pub fn otherwise(mut self, image: Image) -> Self {
        self.otherwise = Some(image);
        self
    }

    pub(super) fn get(&self, name: &str) -> Option<&Image> {
        self.named.get(name).or(self.otherwise.as_ref())
    }
}
