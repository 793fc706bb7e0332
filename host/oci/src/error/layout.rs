//! What is wrong with a folder of the OCI image layout.

use std::{io, path::PathBuf};

use thiserror::Error;

use crate::digest::Digest;

/// What is wrong with a folder.
#[derive(Debug, Error)]
pub enum LayoutError {
    /// A file cannot be read or written.
    #[error("{}: {source}; check the folder", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It is not in the layout.
    #[error("{}: is not a folder of the OCI image layout, because it has no valid {what}; write one with `trainyard plugin copy REFERENCE oci:FOLDER`", .folder.display())]
    NotALayout {
        /// The folder.
        folder: PathBuf,
        /// What is missing.
        what: &'static str,
    },
    /// It has no such manifest.
    #[error("the folder has no plugin {wanted}; it has {names}")]
    NotFound {
        /// What is wanted.
        wanted: String,
        /// What there is.
        names: String,
    },
    /// It has several.
    #[error("the folder has several plugins; name one of {names}")]
    Several {
        /// What there is.
        names: String,
    },
    /// A file has another size than its manifest says.
    #[error("{}: does not have the {declared} bytes that its manifest says; the folder is damaged, so copy the plugin into it again", .path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// What the manifest says.
        declared: u64,
    },
    /// A file has another content than its name says.
    #[error("{}: has the digest {found}; the folder is damaged, so copy the plugin into it again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The digest of its content.
        found: Digest,
    },
}
