//! The bodies of requests, bounded in size.

use std::error::Error;

use axum::{body::to_bytes, extract::Request};
use http::{StatusCode, header::CONTENT_LENGTH};
use http_body_util::LengthLimitError;
use thiserror::Error as ThisError;

/// Why a body cannot be read.
#[derive(Debug, ThisError)]
pub(crate) enum BodyError {
    #[error("the body has more than {0} bytes")]
    TooLarge(usize),
    #[error("the body was not received within {0} s")]
    TooSlow(u64),
    #[error("the body cannot be read: {0}")]
    Unreadable(#[source] axum::Error),
    #[error("the body is not UTF-8")]
    NotUtf8,
}

impl BodyError {
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Unreadable(_) | Self::NotUtf8 => StatusCode::BAD_REQUEST,
        }
    }
}

/// Returns the most bytes that a request's body can have: those that its head declares, or else `most`.
pub(crate) fn length(request: &Request, most: usize) -> Result<usize, BodyError> {
    let length = request.headers().get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    match length {
        Some(length) if length > most => Err(BodyError::TooLarge(most)),
        length => Ok(length.unwrap_or(most)),
    }
}

/// Reads a body of at most `most` bytes.
pub(crate) async fn text(request: Request, most: usize) -> Result<String, BodyError> {
    let bytes = to_bytes(request.into_body(), most).await;
    let bytes = bytes.map_err(|error| match is_too_large(&error) {
        true => BodyError::TooLarge(most),
        false => BodyError::Unreadable(error),
    })?;
    String::from_utf8(bytes.into()).map_err(|_| BodyError::NotUtf8)
}

/// Whether reading a body failed because it is too large.
fn is_too_large(error: &axum::Error) -> bool {
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
