//! Names, and the keys and values of labels.

use serde_json::{Map, Value};
use trainyard_api::StackPath;
use trainyard_model::names::{
    DNS_SUBDOMAIN, is_dns_label, is_dns_subdomain, is_label_value, is_qualified_name,
};

use super::PodProblems;

/// Checks a DNS label, such as the name of a container. An absent one is not checked.
pub(super) fn label(problems: &mut PodProblems, at: &StackPath<'_>, name: &str) {
    if !name.is_empty() {
        let form = "a DNS label (at most 63 characters `a-z`, `0-9` and `-`, not beginning or ending with `-`)";
        problems.form(at, name, is_dns_label, form);
    }
}

/// Checks the name of another object. An absent one is not checked.
pub(super) fn object(problems: &mut PodProblems, at: &StackPath<'_>, name: &str) {
    if !name.is_empty() && !is_dns_subdomain(name) {
        problems.add(
            at,
            format!("`{name}` is not the name of an object ({DNS_SUBDOMAIN}); correct it"),
        );
    }
}

/// Checks the key of a label, an annotation or a toleration.
pub(super) fn key(problems: &mut PodProblems, at: &StackPath<'_>, key: &str) {
    let form = "a key such as `example.com/name` (a domain and `/` or nothing, and at most 63 letters, digits, `-`, `_` and `.`)";
    problems.form(at, key, is_qualified_name, form);
}

/// Checks the value of a label.
pub(super) fn value(problems: &mut PodProblems, at: &StackPath<'_>, value: &str) {
    let form = "a label's value (at most 63 letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit)";
    problems.form(at, value, is_label_value, form);
}

/// Checks labels, or a selector of them.
pub(super) fn labels(
    problems: &mut PodProblems,
    at: &StackPath<'_>,
    labels: Option<&Map<String, Value>>,
) {
    for (name, text) in labels.into_iter().flatten() {
        let at = at.key(name);
        key(problems, &at, name);
        value(problems, &at, text.as_str().unwrap_or_default());
    }
}
