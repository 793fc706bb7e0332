//! Errors of feeds.

use kube::core::Status;
use thiserror::Error;
use tokio::task::JoinError;

use super::LARGEST_LIST;
use crate::wire::Malformed;

/// An error of a feed, which retries.
#[derive(Debug, Error)]
pub enum FeedError {
    /// A list or the start of a watch failed.
    #[error("{0}")]
    Call(#[from] kube::Error),
    /// An answer is not JSON.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The API server sent no `resourceVersion` to watch from.
    #[error("the API server sent a list without a resourceVersion")]
    NoVersion,
    /// The API server ended the watch with an error.
    #[error("the API server ended the watch: {} (code {})", .0.message, .0.code)]
    Ended(Box<Status>),
    /// The connection was lost.
    #[error("connection lost: {0}")]
    Broken(#[from] std::io::Error),
    /// The connection hangs.
    #[error("the API server did not end the watch in time")]
    Hangs,
    /// The API server ends each watch immediately.
    #[error("the API server ended the watch as soon as it began")]
    Short,
    /// The list is too large to be held in memory.
    #[error("the list exceeds {} MiB and is not read; delete objects or make them smaller", LARGEST_LIST >> 20)]
    TooLarge,
    /// The process ends.
    #[error("decoding the API server's answer failed: {0}")]
    Decoding(#[from] JoinError),
}

impl FeedError {
    /// Whether the kind is no longer served.
    pub(crate) fn is_not_served(&self) -> bool {
        self.code() == Some(404)
    }

    /// Returns the error as one of the client.
    pub(crate) fn into_call(self) -> kube::Error {
        match self {
            Self::Call(error) => error,
            error => kube::Error::Service(Box::new(error)),
        }
    }

    fn code(&self) -> Option<u16> {
        match self {
            Self::Call(kube::Error::Api(status)) | Self::Ended(status) => Some(status.code),
            _ => None,
        }
    }

    /// Whether the API server may still have the version that was reached: it is too busy, stops, or ended the watch at once.
    pub(super) fn leaves_version(&self) -> bool {
        self.code() == Some(429) || matches!(self, Self::Short)
    }
}
