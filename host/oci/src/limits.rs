//! How much a registry may send, and how long it may take.

use std::time::Duration;

/// The limits of one operation with a registry or a folder.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a plugin file. Default 32 MiB, as much as a plugin that is loaded may have.
    pub file_bytes: u64,
    /// Bytes of any other content that is copied, such as an SBOM. Default 32 MiB.
    pub blob_bytes: u64,
    /// How long a connection, the beginning of an answer, and each further piece of it may take. Default 15 s.
    pub answer: Duration,
    /// How long the whole operation may take. Default 5 minutes.
    pub total: Duration,
    /// Referrers of a plugin that are listed or copied, such as signatures. Default 64.
    pub referrers: usize,
    /// Bytes that are read of all referrers of a plugin and of their lists, with 4 KiB for each request, to copy them or to find a signature.
    /// Default 256 MiB.
    pub referrer_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 32 << 20,
            blob_bytes: 32 << 20,
            answer: Duration::from_secs(15),
            total: Duration::from_secs(300),
            referrers: 64,
            referrer_bytes: 256 << 20,
        }
    }
}

/// The most bytes of a manifest, which registries accept by the distribution specification.
pub(crate) const MANIFEST_BYTES: u64 = 4 << 20;

/// The most bytes of an answer with a list of referrers, which repeats the annotations of several manifests.
pub(crate) const LIST_BYTES: u64 = 16 << 20;

/// The most bytes of an answer with a token, or with an error.
pub(crate) const ANSWER_BYTES: u64 = 256 << 10;

/// The most redirects of one request.
pub(crate) const REDIRECTS: usize = 5;
