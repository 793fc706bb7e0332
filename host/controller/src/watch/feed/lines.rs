//! The lines of a watch.

use std::{io, pin::Pin};

use futures_util::{AsyncBufRead, AsyncBufReadExt as _};
use tokio::time::{Instant, timeout_at};

use super::{EARLY, FeedError, WATCH_GRACE};
use crate::wire::Malformed;

/// The answer to a watch, which is read line by line.
pub struct WatchLines {
    body: Pin<Box<dyn AsyncBufRead + Send>>,
    until: Instant,
}

impl WatchLines {
    /// Returns the lines of an answer that ends by that time.
    pub fn new(body: impl AsyncBufRead + Send + 'static, until: Instant) -> Self {
        Self {
            body: Box::pin(body),
            until,
        }
    }

    /// Whether the requested time is over.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() + WATCH_GRACE + EARLY >= self.until
    }

    /// Returns the next complete line; `None` at the end.
    ///
    /// # Errors
    /// The answer ends within a line, is not UTF-8, or does not end in time.
    pub async fn next(&mut self) -> Result<Option<String>, FeedError> {
        loop {
            let mut line = Vec::new();
            let read = timeout_at(self.until, self.body.read_until(b'\n', &mut line)).await;
            match read.map_err(|_| FeedError::Hangs)? {
                Ok(_) if line.trim_ascii().is_empty() && line.ends_with(b"\n") => {}
                Ok(0) => return Ok(None),
                Ok(_) if !line.ends_with(b"\n") => {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
                Ok(_) => {
                    let line = String::from_utf8(line);
                    return line.map(Some).map_err(|_| Malformed::default().into());
                }
                // Some API servers also end a watch like this when its time is over.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && self.is_over() => {
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
