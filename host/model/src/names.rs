//! Rules for names in Kubernetes, and the hashes that make names unique.

use sha2::{Digest, Sha256};

/// The label of pods with the name of their JobSet, which JobSet sets (`JobSetNameKey` in api/jobset/v1alpha2).
pub const JOB_SET_NAME: &str = "jobset.sigs.k8s.io/jobset-name";

/// The label of pods with the name of their replicated job, which JobSet sets (`ReplicatedJobNameKey`).
pub const REPLICATED_JOB_NAME: &str = "jobset.sigs.k8s.io/replicatedjob-name";

/// The first `digits` hexadecimal digits (at most 64) of the SHA-256 over the parts, each with its length before it.
#[must_use]
pub fn short_hash(parts: &[&str], digits: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let mut hash = hex::encode(hash.finalize());
    hash.truncate(digits);
    hash
}

/// Whether the text is the name of a Linux capability as in a pod spec, such as `IPC_LOCK`.
#[must_use]
pub fn is_capability(text: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    (1..=63).contains(&text.len()) && text.bytes().all(is_letter) && !text.starts_with("CAP_")
}

/// Returns the digest of content in the format of image digests: `sha256:` and 64 hexadecimal digits.
#[must_use]
pub fn sha256_digest(content: impl AsRef<[u8]>) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(content)))
}

/// Returns the beginning of a digest, for texts that people read: `sha256:` and 12 hexadecimal digits.
#[must_use]
pub fn short_digest(digest: &str) -> &str {
    digest.get(..19).unwrap_or(digest)
}

/// Returns a text without the digits of the digests of plugins in parentheses, which change with each build.
#[must_use]
pub fn without_digests(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("(sha256:") {
        out.push_str(before);
        out.push_str("(sha256:...");
        rest = after.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    out + rest
}

/// The length of the hash at the end of a name that [`fit_name`] changed.
const FIT_HASH: usize = 8;

/// Returns the text as a DNS label (RFC 1123) of at most `max` characters, and at most 63. A text that is too long or contains other
/// characters is changed, and ends with a hash of the whole text, so that two texts do not get the same name. Empty if the text must be
/// changed and `max` is too small for the hash.
#[must_use]
pub fn fit_name(text: &str, max: u32) -> String {
    let max = usize::try_from(max).unwrap_or(63).min(63);
    let mapped: String = text
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| {
            if c.is_ascii_lowercase() || c.is_ascii_digit() {
                c
            } else {
                '-'
            }
        })
        .collect();
    let label = mapped.trim_matches('-');
    if label == text && label.len() <= max && !label.is_empty() {
        return label.to_owned();
    }
    if max < FIT_HASH {
        return String::new();
    }
    let hash = short_hash(&[text], FIT_HASH);
    let head: String = label
        .chars()
        .take(max.saturating_sub(FIT_HASH + 1))
        .collect();
    match head.trim_end_matches('-') {
        "" => hash,
        head => format!("{head}-{hash}"),
    }
}

/// The rule of [`is_dns_subdomain`], for errors.
pub const DNS_SUBDOMAIN: &str =
    "at most 253 characters `a-z`, `0-9`, `-` and `.`, not beginning or ending with `-` or `.`";

/// Whether the text is a DNS subdomain (RFC 1123), the form of most object names: at most 253 characters.
#[must_use]
pub fn is_dns_subdomain(text: &str) -> bool {
    let label = |l: &str| {
        !l.is_empty()
            && !l.starts_with('-')
            && !l.ends_with('-')
            && l.bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

/// Whether the text is a domain and a path, such as `example.com/controller`, the form of names that must not collide.
#[must_use]
pub fn is_domain_path(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~%!$&'()*+,;=:/".contains(c);
    text.split_once('/').is_some_and(|(domain, path)| {
        is_dns_subdomain(domain) && !path.is_empty() && path.chars().all(allowed)
    })
}

/// Whether the text is a DNS label (RFC 1123): a container's, volume's or replicated job's name; at most 63 characters.
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && !text.contains('.') && is_dns_subdomain(text)
}

/// Whether the text is a qualified name, such as the key of a label: with or without a domain.
#[must_use]
pub fn is_qualified_name(text: &str) -> bool {
    let (domain, name) = match text.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, text),
    };
    domain.is_none_or(is_dns_subdomain) && !name.is_empty() && is_label_value(name)
}

/// Whether the text is a valid label value. The empty text is one.
#[must_use]
pub fn is_label_value(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let is_outer = |b: Option<&u8>| b.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.iter().all(|b| is_inner(*b))
        && is_outer(bytes.first())
        && is_outer(bytes.last())
}

/// Whether the text is a valid name of an env var in a pod.
#[must_use]
pub fn is_env_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 253 && text.bytes().all(|b| b.is_ascii_graphic() && b != b'=')
}

/// The problem if [`is_api_version`] or [`is_kind`] is false.
pub(crate) const NO_KIND: &str =
    "the API version must be one such as `v1` or `apps/v1`, and the kind one such as `ConfigMap`";

/// Whether the text is an API version, such as `v1` or `resource.k8s.io/v1`. A valid one is unambiguous in the key of a claim and in a
/// path of the API server.
#[must_use]
pub fn is_api_version(text: &str) -> bool {
    match text.split_once('/') {
        Some((group, version)) => is_dns_subdomain(group) && is_dns_label(version),
        None => is_dns_label(text),
    }
}

/// Whether the text is a kind, such as `ConfigMap`.
#[must_use]
pub fn is_kind(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// The resource of a kind: its plural in lower case.
#[must_use]
pub fn resource_of(kind: &str) -> String {
    let mut word = kind.to_ascii_lowercase();
    match &*word {
        "endpoints" | "endpointslices" => return word,
        // In the group metrics.k8s.io, the resources of kinds are named after what is measured.
        "nodemetrics" => return "nodes".to_owned(),
        "podmetrics" => return "pods".to_owned(),
        _ => {}
    }
    if ["s", "x", "z", "ch", "sh"]
        .iter()
        .any(|end| word.ends_with(end))
    {
        return word + "es";
    }
    let stem = word.strip_suffix('y');
    if stem.is_some_and(|stem| stem.ends_with(|c| !matches!(c, 'a' | 'e' | 'i' | 'o' | 'u'))) {
        word.pop();
        return word + "ies";
    }
    word + "s"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitted_names_are_labels_and_do_not_meet() {
        assert_eq!(fit_name("llama-node", 63), "llama-node");
        let (a, b) = (fit_name(&"a".repeat(80), 20), fit_name(&"a".repeat(81), 20));
        assert_ne!(a, b);
        assert!(a.len() <= 20 && is_dns_label(&a));
        assert_ne!(fit_name("Gpu_0", 63), fit_name("gpu-0", 63));
        assert!(is_dns_label(&fit_name("---", 63)));
        assert_eq!(fit_name("anything", 3), "");
        // A label that fits needs no hash.
        assert_eq!(fit_name("ab", 7), "ab");
        assert_eq!(fit_name("Ab", 7), "");
    }
}
