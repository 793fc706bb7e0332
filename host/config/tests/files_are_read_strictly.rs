//! A configuration file is one YAML document of a known kind and a bounded size.

#![allow(clippy::result_large_err)]

use std::{fs, path::Path};

use trainyard_config::{ConfigFile, TypeMeta};

const KINDS: &[TypeMeta] = &[
    TypeMeta {
        api_version: "example.com/v1",
        kind: "Example",
    },
    TypeMeta {
        api_version: "example.com/v1",
        kind: "Other",
    },
];

const EXPECTED: &str = "`apiVersion: example.com/v1` and `kind: Example`, or `apiVersion: example.com/v1` and `kind: Other`";

fn refused(text: &str) -> String {
    let file = ConfigFile::parse("a.yaml", text, KINDS);
    let file = file.and_then(|file| file.type_meta());
    file.unwrap_err().to_string()
}

#[test]
fn files_of_another_kind_are_refused_with_what_to_write() {
    assert_eq!(
        refused("kind: Exmaple"),
        format!(
            "a.yaml:1: apiVersion `(none)` with kind `Exmaple` is not supported; use {EXPECTED}"
        )
    );
    assert_eq!(
        refused("# Nothing."),
        format!("a.yaml: is empty; it must begin with {EXPECTED}")
    );
    assert_eq!(
        refused("a: 1\n---\nb: 2"),
        "a.yaml: contains 2 YAML documents; merge them into one"
    );
}

#[test]
fn files_that_are_not_yaml_are_refused_with_the_line() {
    assert!(refused("kind: a\nkind: b").starts_with("a.yaml: line 2, column 1: "));
}

#[test]
fn files_over_one_mebibyte_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    let read = |path: &Path| ConfigFile::read(path, KINDS).map(|file| file.type_meta().is_ok());
    let header = "apiVersion: example.com/v1\nkind: Example\n#";
    let of_size = |size: usize| format!("{header}{}", "x".repeat(size - header.len()));
    fs::write(&path, of_size(1 << 20)).unwrap();
    assert!(read(&path).unwrap());
    fs::write(&path, of_size((1 << 20) + 1)).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("is larger than 1048576 bytes"), "{error}");
    let folder = read(folder.path()).unwrap_err().to_string();
    assert!(folder.contains("is not a regular file"), "{folder}");
}
