//! Validation of Kubernetes names.

/// Returns whether the string is a DNS label (RFC 1123), such as the name of a container, volume or resource claim of a pod: at most
/// 63 characters `a-z`, `0-9` and `-`, not beginning or ending with `-`.
///
/// ```
/// use trainyard_sdk::names::{is_dns_label, is_dns_subdomain};
///
/// assert!(is_dns_label("node-0") && !is_dns_label("example.com"));
/// assert!(is_dns_subdomain("example.com"));
/// ```
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_part(text)
}

/// The rule of [`is_dns_subdomain`], for errors.
pub const DNS_SUBDOMAIN: &str =
    "at most 253 characters `a-z`, `0-9`, `-` and `.`, not beginning or ending with `-` or `.`";

/// Returns whether the string is a DNS subdomain (RFC 1123), such as the name of most objects: at most 253 characters, consisting of
/// DNS labels of any length, separated by dots.
#[must_use]
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

fn is_part(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}
