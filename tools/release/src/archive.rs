//! Archives whose bytes depend on the names, the contents and the executable bits of files, and on nothing else.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// An archive could not be made of a folder.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file or a folder cannot be read.
    #[error("{}: cannot be read: {error}", .path.display())]
    Read {
        /// The file or the folder.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// It is a link, a device or a socket.
    #[error("{}: is neither a file nor a folder; remove it", .path.display())]
    Special {
        /// Its path.
        path: PathBuf,
    },
    /// Archives have names in UTF-8.
    #[error("{}: the name is not UTF-8; rename it", .path.display())]
    Name {
        /// The file or the folder.
        path: PathBuf,
    },
    /// The archive cannot be written.
    #[error("{name}: cannot be archived: {error}")]
    Write {
        /// The entry.
        name: String,
        /// The cause.
        error: io::Error,
    },
}

/// The entries of an archive by name. Names are relative and have `/` between their parts; those of folders end with it.
#[derive(Debug, Default)]
pub struct Archive(BTreeMap<String, Entry>);

#[derive(Debug)]
struct Entry {
    content: Vec<u8>,
    executable: bool,
}

impl Archive {
    /// Reads a folder. Owners, times and all bits except for the executable bit are left out. Links are refused, because what they point to
    /// may not be in the archive.
    ///
    /// # Errors
    ///
    /// If something in it is neither a file nor a folder, or cannot be read.
    pub fn of_folder(folder: &Path) -> Result<Self, ArchiveError> {
        let mut archive = Self::default();
        archive.add_folder(folder, "")?;
        Ok(archive)
    }

    /// Keeps the entries whose names the function accepts.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| keep(name));
    }

    /// Puts everything into a folder.
    #[must_use]
    pub fn below(self, folder: &str) -> Self {
        let entries = self.0.into_iter();
        Self(
            entries
                .map(|(name, entry)| (format!("{folder}/{name}"), entry))
                .collect(),
        )
    }

    /// Returns the entries as a tar file. All belong to root, and have the time 0.
    ///
    /// # Errors
    ///
    /// If a name is too long.
    pub fn tar(&self) -> Result<Vec<u8>, ArchiveError> {
        let mut builder = Builder::new(Vec::new());
        for (name, entry) in &self.0 {
            let is_folder = name.ends_with('/');
            let mut header = Header::new_gnu();
            header.set_entry_type(if is_folder {
                EntryType::Directory
            } else {
                EntryType::Regular
            });
            header.set_mode(if is_folder || entry.executable {
                0o755
            } else {
                0o644
            });
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_size(entry.content.len() as u64);
            builder
                .append_data(&mut header, name, entry.content.as_slice())
                .map_err(|error| write_error(name, error))?;
        }
        builder
            .into_inner()
            .map_err(|error| write_error("the end", error))
    }

    fn add_folder(&mut self, folder: &Path, prefix: &str) -> Result<(), ArchiveError> {
        let read = |path: &Path, error| ArchiveError::Read {
            path: path.to_owned(),
            error,
        };
        for entry in fs::read_dir(folder).map_err(|error| read(folder, error))? {
            let path = entry.map_err(|error| read(folder, error))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(name) = name.map(|name| format!("{prefix}{name}")) else {
                return Err(ArchiveError::Name { path });
            };
            let metadata = path
                .symlink_metadata()
                .map_err(|error| read(&path, error))?;
            if metadata.is_dir() {
                let name = format!("{name}/");
                self.add_folder(&path, &name)?;
                self.add(name, Vec::new(), false);
            } else if metadata.is_file() {
                let content = fs::read(&path).map_err(|error| read(&path, error))?;
                self.add(name, content, metadata.permissions().mode() & 0o111 != 0);
            } else {
                return Err(ArchiveError::Special { path });
            }
        }
        Ok(())
    }

    fn add(&mut self, name: String, content: Vec<u8>, executable: bool) {
        self.0.insert(
            name,
            Entry {
                content,
                executable,
            },
        );
    }
}

/// Compresses bytes without a time or a file's name.
///
/// # Errors
///
/// Never in practice, because the result is in memory.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .map_err(|error| write_error("gzip", error))
}

fn write_error(name: &str, error: io::Error) -> ArchiveError {
    ArchiveError::Write {
        name: name.to_owned(),
        error,
    }
}
