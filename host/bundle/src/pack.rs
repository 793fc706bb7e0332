//! Writes bundles.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

use tar::{Builder, EntryType, Header};
use thiserror::Error;

use super::{FileEntry, INDEX, Index, MAX_BYTES, MAX_TRAIN_JOBS, most_bytes};

/// An error of writing a bundle.
#[derive(Debug, Error)]
pub enum PackError {
    /// A file or the bundle is too large.
    #[error("{path}: {what} has {bytes} bytes, but at most {most} fit in a bundle; record fewer TrainJobs at once", path = .path.display())]
    TooLarge {
        /// The bundle.
        path: PathBuf,
        /// The file in it, or the bundle.
        what: String,
        /// Its size in bytes.
        bytes: u64,
        /// The maximum size in bytes.
        most: u64,
    },
    /// There are too many TrainJobs.
    #[error("{path}: there are {count} TrainJobs, but at most {MAX_TRAIN_JOBS} fit in a bundle; record fewer at once", path = .path.display())]
    TooMany {
        /// The bundle.
        path: PathBuf,
        /// Their number.
        count: usize,
    },
    /// The path is that of another file.
    #[error("{path}: already exists and is not a bundle; pass the path of a new file, or of a bundle to replace", path = .path.display())]
    NotBundle {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("{path}: cannot be written: {error}", path = .path.display())]
    Write {
        /// The bundle.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
}

/// Writes a bundle. An existing bundle is replaced atomically; another existing file is an error.
///
/// # Errors
/// A file that is not a bundle, a bundle that would be too large, and errors of writing.
pub fn pack(path: &Path, index: Index, files: &BTreeMap<String, Vec<u8>>) -> Result<(), PackError> {
    if index.train_jobs.len() > MAX_TRAIN_JOBS {
        return Err(PackError::TooMany {
            path: path.to_owned(),
            count: index.train_jobs.len(),
        });
    }
    let too_large = |what: &str, bytes: u64, most: u64| PackError::TooLarge {
        path: path.to_owned(),
        what: what.to_owned(),
        bytes,
        most,
    };
    for (name, content) in files {
        let (bytes, most) = (content.len() as u64, most_bytes(name).unwrap_or(MAX_BYTES));
        if bytes > most {
            return Err(too_large(name, bytes, most));
        }
    }
    let failed = |error: std::io::Error| PackError::Write {
        path: path.to_owned(),
        error,
    };
    if !is_writable(path).map_err(failed)? {
        return Err(PackError::NotBundle {
            path: path.to_owned(),
        });
    }
    let archive = archive(index, files).map_err(failed)?;
    if archive.len() as u64 > MAX_BYTES {
        return Err(too_large("the bundle", archive.len() as u64, MAX_BYTES));
    }
    write(path, &archive).map_err(failed)
}

/// Completes the index with these files and returns the bundle. It is the same for the same files: they are sorted by name and have no
/// owner or time.
///
/// # Errors
/// A name that is too long for an archive.
pub fn archive(mut index: Index, files: &BTreeMap<String, Vec<u8>>) -> std::io::Result<Vec<u8>> {
    index.files = files
        .iter()
        .map(|(name, content)| (name.clone(), FileEntry::of(content)))
        .collect();
    let mut index = serde_json::to_vec_pretty(&index)?;
    index.push(b'\n');
    let mut archive = Builder::new(Vec::new());
    append(&mut archive, INDEX, &index)?;
    for (name, content) in files {
        append(&mut archive, name, content)?;
    }
    archive.into_inner()
}

fn append(archive: &mut Builder<Vec<u8>>, name: &str, content: &[u8]) -> std::io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_path(name)?;
    header.set_cksum();
    archive.append(&header, content)
}

/// Whether the path may be written: no file exists, or an empty one, or a bundle.
fn is_writable(path: &Path) -> std::io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
        Ok(there) if !there.is_file() => return Ok(false),
        Ok(_) => {}
    }
    // An archive begins with the name of its first file, padded with zeros.
    let name = [INDEX.as_bytes(), &[0]].concat();
    let mut begins = Vec::new();
    std::fs::File::open(path)?
        .take(name.len() as u64)
        .read_to_end(&mut begins)?;
    Ok(begins.is_empty() || begins == name)
}

/// Replaces a file atomically.
fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let directory = match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".trainyard-")
        .tempfile_in(directory)?;
    file.write_all(content)?;
    file.persist(path)?;
    Ok(())
}
