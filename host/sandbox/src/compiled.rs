//! A directory of plugins that were compiled before, such as when an image was built, so that no pod has to wait for it.

use std::{
    fs, io,
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use trainyard_model::plugin_info::PluginInfo;

use crate::{
    cache::{ENDING, regular_file},
    trusted_code::TrustedCode,
};

/// The permissions of its files: others can read them, such as the user of the container.
const FILE_MODE: u32 = 0o644;

/// A directory of compiled plugins. Its code is trusted like this program, so only root and this user may be able to write to it.
pub(crate) struct CompiledFolder(PathBuf);

impl CompiledFolder {
    /// Opens the directory.
    ///
    /// # Errors
    /// It is not a directory, or others can write to it.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(folder)?;
        if !metadata.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if !is_trusted(&metadata) {
            return Err(io::Error::other(
                "it does not belong to root or to the user of this process, or others can write to it; run `chown` and `chmod go-w` on it",
            ));
        }
        Ok(Self(folder.to_owned()))
    }

    /// Returns the code of a plugin, if it is there and can be trusted.
    pub(crate) fn get(&self, name: &str, plugin: &PluginInfo) -> Option<TrustedCode> {
        let path = path(&self.0, name);
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            tracing::warn!(plugin = %plugin.id, folder = %self.0.display(), "the directory of compiled plugins does not have this plugin for this version of Trainyard; run `trainyard plugin compile` again");
            return None;
        };
        if !is_trusted(&metadata) {
            tracing::warn!(path = %path.display(), "a compiled plugin does not belong to root or to the user of this process, or others can write to it; it is not used");
            return None;
        }
        regular_file(&path).map(TrustedCode::new)
    }
}

/// Writes the code of a plugin into a directory, which is created if it does not exist.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(folder: &Path, name: &str, code: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(FILE_MODE))
        .tempfile_in(folder)?;
    file.write_all(code)?;
    file.persist(path(folder, name))?;
    Ok(())
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.{ENDING}"))
}

/// Whether only root and the user of this process can write to it.
fn is_trusted(metadata: &fs::Metadata) -> bool {
    let owners = [0, rustix::process::geteuid().as_raw()];
    owners.contains(&metadata.uid()) && metadata.mode() & 0o022 == 0
}
