//! The tokens of clients, and what the API server says about them.

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use kube::{Api, Client, api::PostParams};
use sha2::{Digest as _, Sha256};

use crate::client::without_content;

/// The most bytes of a token. Those of API servers have about one KiB.
const LARGEST: usize = 8 << 10;

/// Returns the credential of a header `Authorization`, if it is exactly one bearer token. As in the reference, the scheme has any case, and
/// any white space may surround both words.
pub(crate) fn bearer(header: &str) -> Option<&str> {
    let mut words = header.split_whitespace();
    let scheme = words.next()?;
    let token = words.next()?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && words.next().is_none();
    (is_bearer && token.len() <= LARGEST).then_some(token)
}

/// Returns the digest by which a token is remembered.
pub(crate) fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Asks the API server about a token, which has to be for one of the audiences; without any, for the API server itself.
///
/// # Errors
/// The API server does not answer. The message does not quote the token.
pub(crate) async fn review(
    client: &Client,
    token: &str,
    audiences: Option<Vec<String>>,
) -> Result<TokenReviewStatus, kube::Error> {
    let review = TokenReview {
        spec: TokenReviewSpec {
            token: token.to_owned(),
            audiences,
        },
        ..TokenReview::default()
    };
    let reviews = Api::<TokenReview>::all(client.clone());
    let reviewed = reviews.create(&PostParams::default(), &review).await;
    // The answer repeats the token.
    Ok(reviewed
        .map_err(without_content)?
        .status
        .unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of the reference's tests.
    #[test]
    fn a_header_has_exactly_one_bearer_token() {
        for header in [
            "Bearer token",
            "bearer token",
            "Bearer \t token",
            "  Bearer token  ",
        ] {
            assert_eq!(bearer(header), Some("token"), "{header}");
        }
        for header in [
            "",
            "   ",
            "Bearer",
            "token",
            "Basic dXNlcjpwYXNz",
            "Bearerx token",
            "Bearer token another",
        ] {
            assert_eq!(bearer(header), None, "{header}");
        }
        assert_eq!(bearer(&format!("Bearer {}", "a".repeat(LARGEST + 1))), None);
    }
}
