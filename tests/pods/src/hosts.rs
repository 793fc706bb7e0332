//! The `/etc/hosts` of a pod.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Result;

/// A file that is mounted as `/etc/hosts`, so it is changed in place.
#[derive(Debug)]
pub struct HostsFile {
    path: PathBuf,
    text: String,
}

impl HostsFile {
    /// Creates the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: PathBuf, text: String) -> Result<Self> {
        fs::write(&path, &text)?;
        Ok(Self { path, text })
    }

    /// Returns its path on this machine.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Changes its contents. If they only get longer, no reader sees a part of the old ones.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set(&mut self, text: String) -> Result<()> {
        if let Some(more) = text.strip_prefix(&self.text) {
            let mut file = OpenOptions::new().append(true).open(&self.path)?;
            file.write_all(more.as_bytes())?;
        } else {
            fs::write(&self.path, &text)?;
        }
        self.text = text;
        Ok(())
    }
}
