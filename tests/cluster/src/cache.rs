//! A cache of build results, outside the repository.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// A folder of the cache with the result of a build from one state of some files, and a lock on it.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The folder of a complete result.
    pub(crate) folder: PathBuf,
}

/// Prevents other processes from building into an entry while it is held.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock goes when the file is closed")] File);

impl Entry {
    /// Returns the entry of this name for the current state of the files, built by this version of a tool.
    pub(crate) fn of(name: &str, files: &[PathBuf], tool: &str) -> Result<Self> {
        let folder = root()?.join(name).join(key(files, tool)?);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self { folder })
    }

    /// Waits until no other process builds into it.
    pub(crate) fn lock(&self) -> Result<Lock> {
        let file = File::create(self.folder.join(".lock"))?;
        file.lock().context("cannot lock the cache")?;
        Ok(Lock(file))
    }
}

fn root() -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    let base = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".cache")))
        .context("no folder for the cache of build results; set XDG_CACHE_HOME or HOME")?;
    Ok(base.join("trainyard"))
}

/// Returns a digest of the inputs of a build.
fn key(files: &[PathBuf], tool: &str) -> Result<String> {
    let mut digest = Sha256::new();
    for path in files {
        let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(&text);
    }
    digest.update(format!("{tool} {} {}", env::consts::OS, env::consts::ARCH));
    let mut key = hex::encode(digest.finalize());
    key.truncate(16);
    Ok(key)
}
