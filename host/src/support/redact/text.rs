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

/// The end of a name in a text, with its closing quote. Texts have more names than [`is_credential`] knows, such as `token_of_user`.
const NAME_END: &str = r#"[a-z0-9_.-]*\\*["']?[ \t]*"#;

/// A text in quotes, to its end: in double quotes, in escaped ones, in those that are escaped more than once (up to the end of the line), or in
/// single quotes.
const QUOTED: &str = r#""(?:[^"\\]|\\.)*"?|\\"(?:[^"\\]|\\\\(?:\\.|[^\\])|\\[^"\\])*(?:\\")?|\\{2,}"[^\n]*|'(?:[^'\\]|\\.)*'?"#;

/// A character of a word. A quote is one too, unless it ends a string of JSON.
const CHARACTER: &str = r#"(?:\\.|[^\s"\\]|"[^\s,:;}\])\\])"#;

/// A line feed, which logs quote.
const LINE_FEED: &str = r"(?:\n|\\+n)";

/// Values that follow such a name in a text, and values that are credentials by their form. The order is that in which they are applied.
static VALUES: LazyLock<Option<Vec<Regex>>> = LazyLock::new(|| {
    let patterns = [
        // Keys in PEM.
        r"-----BEGIN (?:[A-Z0-9 ]*PRIVATE KEY)-----(?P<value>.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)".to_owned(),
        // The user and the password of a URL, which may have slashes and more of `@`.
        format!(r"[a-z][a-z0-9+.-]*://(?P<value>{CHARACTER}+)@"),
        // Headers up to the end of the line.
        format!(r#"(?:authorization|cookie)\\*["']?\s*[:=]+\s*(?P<value>{QUOTED}|\[[^\]\n]*|[^\n]+)"#),
        // The scheme and the credentials of a header.
        r"\b(?:basic|bearer)[ +]+(?P<value>[a-z0-9._~+/=-]{6,})".to_owned(),
        // A block of YAML: the indented lines after the name.
        format!(r"(?:{WORDS}){NAME_END}:[ \t]*[|>][^\n\\]*(?P<value>(?:{LINE_FEED}+[ \t]+(?:[^\n\\]|\\[^n\\])*)+)"),
        // A line of YAML.
        format!(r#"(?m:^)[ \t"'-]*[a-z0-9_.-]*(?:{WORDS}){NAME_END}:[ \t]+(?P<value>[^\n]+)"#),
        // A name with `:`, and its value.
        format!(r"(?:{WORDS}){NAME_END}\s*:+\s*(?P<value>{QUOTED}|[\[{{][^\]}}\n]*|{CHARACTER}+)"),
        // A name with `=`, and its value up to white space.
        format!(r"(?:{WORDS}){NAME_END}\s*[:=]*=>?\s*(?P<value>(?:{QUOTED}|{CHARACTER}){CHARACTER}*)"),
        // A flag, and its value after a space, or in the list of arguments.
        format!(r#"--?[a-z0-9_-]*(?:{WORDS})\\*["']?[ \t,]+(?P<value>{QUOTED}|-?(?:\\.|[^\s"\\-]){CHARACTER}*)"#),
        // Forms of tokens: GitHub, GitLab, Hugging Face, Slack, AWS, Google, OpenAI, and JSON Web Tokens.
        r"(?P<value>\b(?-i:gh[pousr]_|github_pat_|glpat-|hf_|xox[abprs]-|AKIA|ASIA|AIza|sk-|eyJ)[A-Za-z0-9._-]{10,})".to_owned(),
    ];
    let compiled = patterns
        .iter()
        .map(|pattern| Regex::new(&format!("(?is){pattern}")).ok());
    compiled.collect()
});

/// What each of these patterns needs. Most texts have none of it, and are searched only once.
static CUES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        "(?i)(?:{WORDS})|PRIVATE KEY|://|basic|gh[pousr]_|github_pat_|glpat-|hf_|xox|AKIA|ASIA|AIza|sk-|eyJ"
    ))
    .ok()
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
    NAME.is_some() && CAMEL_CASE.is_some() && LONG.is_some() && VALUES.is_some() && CUES.is_some()
}

/// Returns a text without what looks like a credential, and calls `removed` with each value.
pub(crate) fn without_credentials(text: &str, mut removed: impl FnMut(&str)) -> String {
    let (Some(values), Some(long), Some(cues)) = (&*VALUES, &*LONG, &*CUES) else {
        return REMOVED.to_owned();
    };
    let mut text = text.to_owned();
    let needed = if cues.is_match(&text) {
        values
    } else {
        &Vec::new()
    };
    for pattern in needed {
        let replaced = pattern.replace_all(&text, |found: &Captures<'_>| {
            let whole = whole(found);
            let Some(value) = found.name("value") else {
                return whole.to_owned();
            };
            let from = found.get(0).map_or(0, |found| found.start());
            let before = whole.get(..value.start() - from).unwrap_or_default();
            let after = whole.get(value.end() - from..).unwrap_or_default();
            let value = value.as_str().trim_matches(['"', '\'', '\\']);
            if value.is_empty() || value == REMOVED {
                return whole.to_owned();
            }
            removed(value);
            format!("{before}{REMOVED}{after}")
        });
        text = replaced.into_owned();
    }
    let replaced = long.replace_all(&text, |found: &Captures<'_>| {
        let word = whole(found);
        if !is_random(word) {
            return word.to_owned();
        }
        removed(word);
        REMOVED.to_owned()
    });
    replaced.into_owned()
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
            ("Authorization: Token hunter2", "hunter2"),
            ("Authorization: ApiKey a hunter2", "hunter2"),
            (r#"curl -H "Cookie: a=b; c=hunter2""#, "hunter2"),
            ("Set-Cookie: a=\"b\", c=hunter2; Path=/", "hunter2"),
            (r#"{"Authorization":["Token hunter2"]}"#, "hunter2"),
            ("map[Authorization:[Token hunter2]]", "hunter2"),
            ("postgres://me:pa/hunter2@word@db/x", "hunter2"),
            ("postgres://me:pa/ss@hunter2@db/x", "hunter2"),
            ("postgres://me:pa\"ss'hunter2@db/x", "hunter2"),
            ("PASSWORD=abc,hunter2", "hunter2"),
            ("PASSWORD=abc)hunter2", "hunter2"),
            ("PASSWORD='it'\\''s-hunter2'", "hunter2"),
            (r#"PASSWORD="a b",hunter2"#, "hunter2"),
            (r#"{"password": "a\"hunter2", "b": 1}"#, "hunter2"),
            (r#"{\"password\": \"a\\\"hunter2\", \"b\": 1}"#, "hunter2"),
            (r#"{\\\"password\\\": \\\"a hunter2\\\"}"#, "hunter2"),
            ("passphrase: 'correct horse hunter2'", "hunter2"),
            ("passphrase: correct horse hunter2", "hunter2"),
            ("password: |\n  first\n\n  hunter2\nb: 1", "hunter2"),
            (
                r#"{"m":"password: |\n  first\n  hunter2\nb: 1"}"#,
                "hunter2",
            ),
            ("--password 'two hunter2'", "hunter2"),
            ("--password -hunter2", "hunter2"),
            (r#"["--password","hunter2","--rest"]"#, "hunter2"),
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
