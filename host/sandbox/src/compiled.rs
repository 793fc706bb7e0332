//! A directory of plugins that were compiled before, such as when an image was built, so that no pod has to wait for it.

use std::{
    fs, io,
    io::{Read, Write},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use trainyard_model::plugin_info::PluginInfo;

use crate::{
    cache::ENDING,
    regular_file::{self, MAX_BYTES},
    trusted_code::TrustedCode,
};

/// The permissions of its files: others can read them, such as the user of the container.
const FILE_MODE: u32 = 0o644;
/// The permissions of the directory, if it does not exist.
const FOLDER_MODE: u32 = 0o755;
/// The bits of a mode that let the group or others write.
const OTHERS_WRITE: u32 = 0o022;
/// The bit of a directory's mode that lets users replace only their own files.
const STICKY: u32 = 0o1000;

/// A directory of compiled plugins. Its code is trusted like this program, so only root and this user may be able to write to it.
pub(crate) struct CompiledFolder(PathBuf);

impl CompiledFolder {
    /// Opens the directory.
    ///
    /// # Errors
    /// It is not a directory, or others can write to it or replace it.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        // The links of the path are resolved once, so nobody can change them later.
        let folder = folder.canonicalize()?;
        let metadata = fs::metadata(&folder)?;
        if !metadata.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if !is_trusted(&metadata) {
            return Err(io::Error::other(
                "it does not belong to root or to the user of this process, or others can write to it; write it again, as a user whose umask is 022",
            ));
        }
        for parent in folder.ancestors().skip(1) {
            if !is_trusted_parent(&fs::metadata(parent)?) {
                return Err(io::Error::other(format!(
                    "others can replace it, because they can write to {}; move it elsewhere",
                    parent.display()
                )));
            }
        }
        Ok(Self(folder))
    }

    /// Returns the code of a plugin, if it is there and can be trusted.
    pub(crate) fn get(&self, name: &str, plugin: &PluginInfo) -> Option<TrustedCode> {
        let path = path(&self.0, name);
        match read(&path) {
            Ok(code) => Some(TrustedCode::new(code)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tracing::warn!(plugin = %plugin.id, folder = %self.0.display(), "the directory of compiled plugins does not have this plugin for this version of Trainyard; run `trainyard plugin compile` again");
                None
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a compiled plugin is not used; compiling it again");
                None
            }
        }
    }
}

/// Reads a file that can be trusted. The open file is checked, because another one could replace it.
///
/// # Errors
/// It cannot be read, or others can write to it.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = regular_file::open(path)?;
    if !is_trusted(&file.metadata()?) {
        return Err(io::Error::other(
            "it does not belong to root or to the user of this process, or others can write to it",
        ));
    }
    let mut code = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut code)?;
    Ok(code)
}

/// Writes the code of a plugin into a directory, which is created if it does not exist.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(folder: &Path, name: &str, code: &[u8]) -> io::Result<()> {
    if !folder.exists() {
        fs::create_dir_all(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(FOLDER_MODE))?;
    }
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(code)?;
    // Other users read it, whatever the umask is.
    file.as_file()
        .set_permissions(fs::Permissions::from_mode(FILE_MODE))?;
    file.persist(path(folder, name))?;
    Ok(())
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.{ENDING}"))
}

/// Whether only root and the user of this process can write to it.
fn is_trusted(metadata: &fs::Metadata) -> bool {
    is_owned(metadata) && metadata.mode() & OTHERS_WRITE == 0
}

/// Whether only root and the user of this process can replace what is in a directory: others cannot write to it, or only their own files.
fn is_trusted_parent(metadata: &fs::Metadata) -> bool {
    is_trusted(metadata) || is_owned(metadata) && metadata.mode() & STICKY != 0
}

/// Whether it belongs to root or the user of this process.
fn is_owned(metadata: &fs::Metadata) -> bool {
    [0, rustix::process::geteuid().as_raw()].contains(&metadata.uid())
}
