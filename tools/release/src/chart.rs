//! The package of the chart, with the files that `helm package` would put into it, but without the time.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::archive::{Archive, ArchiveError, gzip};

/// The chart could not be packaged.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// The files cannot be archived.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The list of files that are left out cannot be read.
    #[error("{}: cannot be read: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// A line of `.helmignore` is a pattern.
    #[error(".helmignore: {line}: is a pattern; name each file")]
    Pattern {
        /// The line.
        line: String,
    },
}

/// Returns the package of the chart in a folder, whose name is the chart's.
///
/// # Errors
///
/// If a file cannot be read, or if `.helmignore` has patterns.
pub fn package(folder: &Path) -> Result<Vec<u8>, ChartError> {
    let path = folder.join(".helmignore");
    let ignored = fs::read_to_string(&path).map_err(|error| ChartError::Read { path, error })?;
    let ignored: Vec<_> = ignored
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    if let Some(line) = ignored
        .iter()
        .find(|line| line.contains(['*', '?', '[', '!']))
    {
        let line = (*line).to_owned();
        return Err(ChartError::Pattern { line });
    }
    let mut files = Archive::of_folder(folder)?;
    // Helm packages only files.
    files.retain(|name| !name.ends_with('/') && !ignored.contains(&name));
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("chart");
    Ok(gzip(&files.below(name).tar()?)?)
}
