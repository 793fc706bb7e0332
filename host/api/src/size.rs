//! The maximum size of an object.

use std::io;

use serde_json::Value;

/// The maximum size of a request that an API server accepts, in bytes.
pub const REQUEST_LIMIT: usize = 3 * 1024 * 1024;

/// The maximum size of a request that etcd accepts with its default `--max-request-bytes`, in bytes.
pub const STORED_LIMIT: usize = 1536 * 1024;

/// An object that is too large to be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// The API server refuses the request.
    #[error(
        "the object has {size} bytes as JSON, but an API server accepts at most {REQUEST_LIMIT}; \
         move large values into a ConfigMap, a volume or an image"
    )]
    Request {
        /// Its size as compact JSON, in bytes.
        size: usize,
    },
    /// etcd does not store it.
    #[error(
        "the object has {size} bytes as JSON, but etcd stores at most {STORED_LIMIT}; \
         move large values into a ConfigMap, a volume or an image"
    )]
    Stored {
        /// Its size as compact JSON, in bytes.
        size: usize,
    },
}

/// Refuses an object that is too large for a cluster with default settings; returns its size as compact JSON, in bytes.
///
/// Fields that a server adds (managedFields, a UID) are not counted here, so a server can refuse an object just below the limit.
pub fn check_size(object: &Value) -> Result<usize, TooLarge> {
    match bytes(object) {
        size if size > REQUEST_LIMIT => Err(TooLarge::Request { size }),
        size if size > STORED_LIMIT => Err(TooLarge::Stored { size }),
        size => Ok(size),
    }
}

/// Returns the size of a value as compact JSON, in bytes.
#[must_use]
pub fn bytes(value: &Value) -> usize {
    let mut counter = Counter(0);
    // Writing a JSON value to a counter cannot fail.
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
