//! Kubernetes' rules for names, with its messages.

use crate::format::is_dns_label;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
    and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation \
    is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
    character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
    start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Checks a DNS subdomain, which the name of a custom resource must be.
pub(crate) fn subdomain(name: &str) -> Vec<String> {
    subdomain_counting(name, "characters")
}

/// Checks a DNS label, which the name of a namespace must be.
pub(crate) fn label(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 63 {
        problems.push("must be no more than 63 characters".to_owned());
    }
    if !is_dns_label(name) {
        let dots = name.split('.').count() > 1 && name.split('.').all(is_dns_label);
        problems.push(if dots { "must not contain dots" } else { LABEL }.to_owned());
    }
    problems
}

/// Checks a DNS label that starts with a letter, which a kind in lower case must be.
pub(crate) fn dns_1035(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 63 {
        problems.push("must be no more than 63 characters".to_owned());
    }
    if !is_dns_label(name) || name.starts_with(|c: char| c.is_ascii_digit()) {
        problems.push(DNS_1035.to_owned());
    }
    problems
}

/// Checks the key of a label or annotation, or a finalizer.
pub(crate) fn qualified(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            problems.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let prefix = subdomain_counting(prefix, "bytes").into_iter();
            problems.extend(prefix.map(|problem| format!("prefix part {problem}")));
            name
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_word(name) {
        problems.push(format!("name part {KEY}"));
    }
    problems
}

/// Checks the value of a label.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > 63 {
        problems.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_word(value) {
        problems.push(VALUE.to_owned());
    }
    problems
}

/// Checks a segment of a URL's path; `whole` if it is not only a prefix.
pub(crate) fn path_segment(name: &str, whole: bool) -> Vec<String> {
    if whole && (name == "." || name == "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|part| name.contains(part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// Returns a prefix in the form in which it is checked. It can end with a dash, because a suffix follows.
pub(crate) fn without_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut name = rest.to_owned();
            name.pop();
            name.push('a');
            name
        }
        _ => prefix.to_owned(),
    }
}

fn subdomain_counting(name: &str, unit: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 253 {
        problems.push(format!("must be no more than 253 {unit}"));
    }
    if !name.split('.').all(is_dns_label) {
        problems.push(SUBDOMAIN.to_owned());
    }
    problems
}

fn is_word(name: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    ends(name.chars().next())
        && ends(name.chars().next_back())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}
