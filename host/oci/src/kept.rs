//! What is kept in a folder for later starts.

use std::{collections::BTreeSet, path::Path, time::Duration};

use crate::{digest::Digest, error::OciError, layout::Layout};

/// Returns the file of a plugin that is in a folder, by the digest of the file itself.
///
/// # Errors
/// The folder does not have it, or it is damaged.
pub fn stored_file(folder: &Path, digest: &Digest, limit: u64) -> Result<Vec<u8>, OciError> {
    let content = Layout::new(folder).content(digest, limit);
    content.map_err(|problem| OciError::new(digest, problem.into()))
}

/// Removes the plugins from a folder whose files have none of these digests, with their signatures, unless they were written less than a time
/// ago. Returns how many plugins were removed.
///
/// # Errors
/// The folder cannot be read or written. A folder that does not exist has nothing to remove.
pub async fn discard_others(
    folder: &Path,
    keep: &BTreeSet<String>,
    younger: Duration,
) -> Result<usize, OciError> {
    if !folder.exists() {
        return Ok(0);
    }
    let is_kept = |digest: &Digest| keep.contains(digest.as_str());
    let removed = Layout::new(folder).retain(is_kept, younger).await;
    removed.map_err(|problem| OciError::new(&folder.display(), problem))
}
