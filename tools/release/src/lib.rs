//! Writes what a release consists of: the image, the chart and the list of files. `tools/image.sh` and `tools/release.sh` build what these
//! contain, and call it.
//!
//! Everything is written without times, owners or the paths of this machine, so the same input gives the same bytes everywhere.

mod archive;
mod chart;
mod contents;
mod image;
mod notes;

pub use archive::{Archive, ArchiveError, gzip};
pub use chart::{ChartError, package};
pub use contents::{Contents, ContentsError};
pub use image::{Image, ImageError, USER};
pub use notes::{NotesError, notes};

use sha2::{Digest as _, Sha256};

/// Returns the digest of bytes as registries write it.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}
