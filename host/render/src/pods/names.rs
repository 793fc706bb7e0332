//! Names, and the keys and values of labels.

use serde_json::{Map, Value};
use trainyard_model::names::{
    DNS_SUBDOMAIN, is_dns_label, is_dns_subdomain, is_label_value, is_qualified_name,
};

use super::Faults;
use crate::trail::Trail;

/// Checks a DNS label, such as the name of a container. An absent one is not checked.
pub(super) fn label(faults: &mut Faults, at: &Trail<'_>, name: &str) {
    if !name.is_empty() {
        let form = "a DNS label (at most 63 characters `a-z`, `0-9` and `-`, not beginning or ending with `-`)";
        faults.form(at, name, is_dns_label, form);
    }
}

/// Checks the name of another object. An absent one is not checked.
pub(super) fn object(faults: &mut Faults, at: &Trail<'_>, name: &str) {
    if !name.is_empty() && !is_dns_subdomain(name) {
        faults.add(
            at,
            format!("`{name}` is not the name of an object ({DNS_SUBDOMAIN}); correct it"),
        );
    }
}

/// Checks the key of a label, an annotation or a toleration.
pub(super) fn key(faults: &mut Faults, at: &Trail<'_>, key: &str) {
    let form = "a key such as `example.com/name` (a domain and `/` or nothing, and at most 63 letters, digits, `-`, `_` and `.`)";
    faults.form(at, key, is_qualified_name, form);
}

/// Checks the value of a label.
pub(super) fn value(faults: &mut Faults, at: &Trail<'_>, value: &str) {
    let form = "a label's value (at most 63 letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit)";
    faults.form(at, value, is_label_value, form);
}

/// Checks labels, or a selector of them.
pub(super) fn labels(faults: &mut Faults, at: &Trail<'_>, labels: Option<&Map<String, Value>>) {
    for (name, text) in labels.into_iter().flatten() {
        let at = at.key(name);
        key(faults, &at, name);
        value(faults, &at, text.as_str().unwrap_or_default());
    }
}
