//! Names, keys, values and paths.

use serde_json::{Map, Value};
use trainyard_api::StackPath;
use trainyard_model::names::{
    DNS_SUBDOMAIN, is_dns_label, is_dns_subdomain, is_domain_path, is_label_value,
    is_qualified_name,
};

use super::FieldProblems;

/// Checks a DNS label, such as the name of a container.
pub(super) fn label(problems: &mut FieldProblems, at: &StackPath<'_>, name: &str) {
    let form = "a DNS label (at most 63 characters `a-z`, `0-9` and `-`, not beginning or ending with `-`)";
    problems.form(at, name, is_dns_label, form);
}

/// Checks the name of another object.
pub(super) fn object(problems: &mut FieldProblems, at: &StackPath<'_>, name: &str) {
    if !is_dns_subdomain(name) {
        problems.add(
            at,
            format!("`{name}` is not the name of an object ({DNS_SUBDOMAIN}); correct it"),
        );
    }
}

/// Checks the key of a label, an annotation or a toleration, or another qualified name.
pub(super) fn key(problems: &mut FieldProblems, at: &StackPath<'_>, key: &str) {
    let form = "a key such as `example.com/name` (a domain and `/` or nothing, and at most 63 letters, digits, `-`, `_` and `.`)";
    problems.form(at, key, is_qualified_name, form);
}

/// Checks the value of a label.
pub(super) fn value(problems: &mut FieldProblems, at: &StackPath<'_>, value: &str) {
    let form = "a label's value (at most 63 letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit)";
    problems.form(at, value, is_label_value, form);
}

/// Checks labels, or a selector of them.
pub(super) fn labels(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    labels: &Value,
    _: &Map<String, Value>,
) {
    for (name, text) in labels.as_object().into_iter().flatten() {
        let at = at.key(name);
        key(problems, &at, name);
        value(problems, &at, text.as_str().unwrap_or_default());
    }
}

/// The most bytes of the keys and values of an object's annotations.
const MAX_ANNOTATIONS: usize = 256 * 1_024;

/// Checks the size of annotations, and their keys, whose case the API server ignores.
pub(super) fn annotations(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    annotations: &Value,
    _: &Map<String, Value>,
) {
    let all = annotations.as_object().into_iter().flatten();
    let sizes = all.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len));
    let size: usize = sizes.sum();
    if size > MAX_ANNOTATIONS {
        let message = format!(
            "has {size} bytes, but at most {MAX_ANNOTATIONS} are allowed; shorten or remove some"
        );
        problems.add(at, message);
    }
    for name in annotations.as_object().into_iter().flat_map(Map::keys) {
        key(problems, &at.key(name), &name.to_ascii_lowercase());
    }
}

/// Checks the key of a ConfigMap or a Secret.
pub(super) fn config_key(problems: &mut FieldProblems, at: &StackPath<'_>, key: &str) {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let is_parent = key == "." || key == ".." || key.starts_with("..");
    if key.len() > 253 || is_parent || !key.bytes().all(is_inner) {
        problems.add(at, format!("`{key}` is not a key (at most 253 letters, digits, `-`, `_` and `.`, not beginning with `..`); correct it"));
    }
}

/// Checks the name of a controller of Jobs.
pub(super) fn controller(problems: &mut FieldProblems, at: &StackPath<'_>, name: &str) {
    let is_known = |name: &str| is_domain_path(name) && name.len() <= 63;
    let form = "a domain and a path, such as `example.com/controller`, of at most 63 characters";
    problems.form(at, name, is_known, form);
}

/// Checks the name of a port.
pub(super) fn port(problems: &mut FieldProblems, at: &StackPath<'_>, name: &str) {
    let form = "the name of a port (at most 15 characters `a-z`, `0-9` and `-`, at least one of them a letter, no `--`, not beginning or ending with `-`)";
    problems.form(at, name, is_port_name, form);
}

fn is_port_name(name: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    name.len() <= 15
        && name.bytes().all(is_inner)
        && name.bytes().any(|b| b.is_ascii_lowercase())
        && !name.contains("--")
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// Checks a path inside of a volume.
pub(super) fn inner_path(problems: &mut FieldProblems, at: &StackPath<'_>, path: &str) {
    below(problems, at, path, "inside of the volume");
}

/// Checks a path below the directory of the kubelet's profiles.
pub(super) fn profile_path(problems: &mut FieldProblems, at: &StackPath<'_>, path: &str) {
    below(
        problems,
        at,
        path,
        "below the kubelet's directory of profiles",
    );
}

fn below(problems: &mut FieldProblems, at: &StackPath<'_>, path: &str, place: &str) {
    if path.starts_with('/') || has_parent(path) {
        problems.add(
            at,
            format!("`{path}` is not a path {place}; remove a leading `/` and parts `..`"),
        );
    }
}

/// Checks the path of a file that the kubelet writes, whose own files begin with `..`.
pub(super) fn file_path(problems: &mut FieldProblems, at: &StackPath<'_>, path: &str) {
    if path.starts_with("..") && !has_parent(path) {
        let message = format!("`{path}` begins with `..`, which the kubelet reserves; change it");
        problems.add(at, message);
    }
    inner_path(problems, at, path);
}

/// Checks a path of the host.
pub(super) fn host_path(problems: &mut FieldProblems, at: &StackPath<'_>, path: &str) {
    if has_parent(path) {
        problems.add(at, "has a part `..`; remove it");
    }
}

/// Checks a path that must be absolute.
pub(super) fn absolute_path(problems: &mut FieldProblems, at: &StackPath<'_>, path: &str) {
    if !path.starts_with('/') {
        let message = format!("`{path}` is not an absolute path; begin it with `/`");
        problems.add(at, message);
    }
}

fn has_parent(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// Checks an IP address. Some releases accept leading zeros, and other forms of IPv6 than others.
pub(super) fn ip(problems: &mut FieldProblems, at: &StackPath<'_>, ip: &str) {
    let is_byte = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_digit())
            && part.trim_start_matches('0').len() <= 3
            && part.parse::<u32>().is_ok_and(|byte| byte <= 255)
    };
    let is_inner = |b: u8| b.is_ascii_hexdigit() || matches!(b, b':' | b'.');
    let is_v4 = ip.split('.').count() == 4 && ip.split('.').all(is_byte);
    if !(is_v4 || ip.contains(':') && ip.bytes().all(is_inner)) {
        problems.add(
            at,
            format!("`{ip}` is not an IP address such as `10.9.8.7` or `2001:db8::1`; correct it"),
        );
    }
}
