//! How large an object may be.

use serde_json::Value;
use std::io;

/// The most bytes that an API server reads as the body of one request.
pub const REQUEST_LIMIT: usize = 3 * 1024 * 1024;

/// The most bytes that etcd takes in one request, by its default `--max-request-bytes`.
pub const STORED_LIMIT: usize = 1536 * 1024;

/// An object that is too large to be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// The API server would not even read it.
    #[error(
        "the object has {size} bytes as JSON, and an API server reads at most {REQUEST_LIMIT}; \
         move what is large into a ConfigMap, a volume or an image"
    )]
    Request {
        /// Its size as compact JSON, in bytes.
        size: usize,
    },
    /// etcd would not store it.
    #[error(
        "the object has {size} bytes as JSON, and etcd stores at most {STORED_LIMIT}; \
         move what is large into a ConfigMap, a volume or an image"
    )]
    Stored {
        /// Its size as compact JSON, in bytes.
        size: usize,
    },
}

/// Refuses an object that is too large for a cluster with default settings; returns its size as compact JSON, in bytes.
///
/// What a server adds (managedFields, a UID) counts there too, and is not counted here: an object just below the limit may
/// still be refused.
pub fn check_size(object: &Value) -> Result<usize, TooLarge> {
    match bytes(object) {
        size if size > REQUEST_LIMIT => Err(TooLarge::Request { size }),
        size if size > STORED_LIMIT => Err(TooLarge::Stored { size }),
        size => Ok(size),
    }
}

/// Returns the size of a value as compact JSON, in bytes.
pub(crate) fn bytes(value: &Value) -> usize {
    let mut counter = Counter(0);
    // Writing a JSON value to a counter can't fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
