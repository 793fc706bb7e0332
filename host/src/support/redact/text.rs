//! Texts without what looks like a credential.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// What stands in the place of a removed value.
pub(crate) const REMOVED: &str = "(removed)";

/// Words of names whose values are credentials.
const WORDS: &str = r"(?:access|api|auth|encryption|private|secret|signing|ssh)[-_. ]?keys?|auth(?:orization|[-_. ]?token)?|bearer|cookie|credentials?|pass(?:phrase|w(?:or)?d)?|pwd|secrets?|session[-_. ]?id|tokens?";

/// A name that ends with one of these words, or with one and an `id` or a number.
static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?i)(?:^|[^a-z])(?:{WORDS})(?:[-_.]?(?:id|value|[0-9]+))?$"
    ))
    .ok()
});

/// The same in camel case, such as `apiKey` and `clientSecret`.
static CAMEL_CASE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"[a-z0-9](?:Keys?|Auth|Authorization|Bearer|Cookie|Credentials?|Pass(?:phrase|word|wd)?|Pwd|Secrets?|Tokens?)$").ok()
});

/// Values that follow such a name in a text, and values that are credentials by their form.
static VALUES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = [
        // Keys in PEM.
        r"(?s)-----BEGIN (?:[A-Z0-9 ]*PRIVATE KEY)-----(?P<value>.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)".to_owned(),
        // The user and the password of a URL.
        r"(?i)(?:[a-z][a-z0-9+.-]*://)(?P<value>[^\s/@\x22']+)@".to_owned(),
        // The scheme and the credentials of a header.
        r"(?i)(?:\b(?:basic|bearer)[ +]+)(?P<value>[a-z0-9._~+/=-]{6,})".to_owned(),
        // A name, and its value after `=` or `:`, with or without quotes.
        format!(r#"(?i)(?:[a-z0-9_.-]*(?:{WORDS})[a-z0-9_.-]*\\*["']?\s*[=:]\s*)(?P<value>\\*"(?:[^"\\]|\\[^"])*|'[^']*|[^\s"',;&}}\])]+)"#),
        // A flag, and its value after a space.
        format!(r"(?i)(?:--?[a-z0-9-]*(?:{WORDS})[ ]+)(?P<value>[^\s-]\S*)"),
        // Forms of tokens: GitHub, GitLab, Hugging Face, Slack, AWS, Google, OpenAI, and JSON Web Tokens.
        r"(?P<value>\b(?:gh[pousr]_|github_pat_|glpat-|hf_|xox[abprs]-|AKIA|ASIA|AIza|sk-|eyJ)[A-Za-z0-9._-]{10,})".to_owned(),
    ];
    let compiled = patterns
        .iter()
        .filter_map(|pattern| Regex::new(pattern).ok());
    compiled.collect()
});

/// Long words that may be random: they have capitals, small letters and digits.
static LONG: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[A-Za-z0-9+/_=-]{32,}").ok());

/// Whether the value of a key, a flag or a variable of that name is a credential.
pub(crate) fn is_credential(name: &str) -> bool {
    let fits = |pattern: &LazyLock<Option<Regex>>| {
        pattern
            .as_ref()
            .is_none_or(|pattern| pattern.is_match(name))
    };
    fits(&NAME) || fits(&CAMEL_CASE)
}

/// Whether the patterns can be used. Without them, nothing could be collected.
pub(crate) fn is_ready() -> bool {
    NAME.is_some() && CAMEL_CASE.is_some() && LONG.is_some() && VALUES.len() == 6
}

/// Returns a text without what looks like a credential, and calls `removed` with each value.
pub(crate) fn without_credentials(text: &str, mut removed: impl FnMut(&str)) -> String {
    let mut text = text.to_owned();
    for pattern in VALUES.iter() {
        let replaced = pattern.replace_all(&text, |found: &Captures<'_>| {
            let whole = whole(found);
            let Some(value) = found.name("value").map(|value| value.as_str()) else {
                return whole.to_owned();
            };
            let (before, after) = whole.rsplit_once(value).unwrap_or_default();
            if value.is_empty() || value.contains(REMOVED) {
                return whole.to_owned();
            }
            removed(value.trim_matches(['"', '\'', '\\']));
            format!("{before}{REMOVED}{after}")
        });
        text = replaced.into_owned();
    }
    if let Some(long) = LONG.as_ref() {
        let replaced = long.replace_all(&text, |found: &Captures<'_>| {
            let word = whole(found);
            if !is_random(word) {
                return word.to_owned();
            }
            removed(word);
            REMOVED.to_owned()
        });
        text = replaced.into_owned();
    }
    text
}

fn whole<'t>(found: &Captures<'t>) -> &'t str {
    found.get(0).map_or("", |found| found.as_str())
}

/// Whether a long word may be a random one. Names of Kubernetes and digests have no capitals.
fn is_random(word: &str) -> bool {
    let has = |is: fn(&u8) -> bool| word.bytes().any(|byte| is(&byte));
    has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_credentials_are_known() {
        assert!(is_ready());
        for name in [
            "HF_TOKEN",
            "token",
            "apiKey",
            "api-key",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "password",
            "DB_PASSWD",
            "clientSecret",
            "example.com/auth-token",
            "WANDB_API_KEY",
            "Authorization",
            "private_key",
            "TOKEN_2",
            "bearerToken",
        ] {
            assert!(is_credential(name), "{name}");
        }
        for name in [
            "PET_NNODES",
            "key",
            "monkey",
            "name",
            "tokenizer",
            "KEYBOARD",
            "secretName",
            "passes",
            "compass",
        ] {
            assert!(!is_credential(name), "{name}");
        }
    }

    #[test]
    fn values_of_credentials_are_removed_from_texts() {
        for (text, secret) in [
            ("--hf-token=hunter2", "hunter2"),
            ("--hf-token hunter2 --rest x", "hunter2"),
            ("password: hunter2\nother: x", "hunter2"),
            (r#"{"apiKey": "hunter 2", "a": 1}"#, "hunter 2"),
            (r#"{\"apiKey\": \"hunter2\", \"a\": 1}"#, "hunter2"),
            ("'secret': 'hunter 2'", "hunter 2"),
            ("postgres://me:hunter2@db/x", "hunter2"),
            ("https://hunter2@github.com/x", "hunter2"),
            ("Authorization: Bearer hunter2.abc", "hunter2"),
            ("got ghp_abcdefghijklmnop", "ghp_abcdefghijklmnop"),
            ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "K7MDENG"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
                "hunter2",
            ),
            ("-----BEGIN PRIVATE KEY-----\nhunter2", "hunter2"),
            ("curl -H 'X-Auth-Token: hunter2'", "hunter2"),
        ] {
            let mut removed = Vec::new();
            let text = without_credentials(text, |value| removed.push(value.to_owned()));
            assert!(!text.contains(secret), "{text}");
            assert!(text.contains(REMOVED), "{text}");
            assert!(
                removed.iter().any(|value| value.contains(secret)),
                "{removed:?}"
            );
        }
    }

    #[test]
    fn other_texts_stay() {
        for text in [
            "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
            "https://kubernetes.default.svc/api/v1/namespaces",
            "trainyard_plugin_call_duration_seconds_bucket{le=\"0.5\",plugin=\"torch\"} 2",
            "torchrun --nnodes=4 --tokenizer=llama train.py",
        ] {
            let kept = without_credentials(text, |_| {});
            // A name such as `tokenizer` is one too many rather than one too few.
            if !text.contains("tokenizer") {
                assert_eq!(kept, text);
            }
        }
    }
}
