//! Every folder of `tests/cases` and of `plugins/NAME/cases` renders to its expected objects, or is refused with its expected errors.
//!
//! A case has an `input.yaml`, whose first line states what it proves, and either an `expected.yaml` (standard output) or an
//! `expected.txt` (standard error of a refusal). Warnings of an accepted input are in `warnings.txt`. `UPDATE_EXPECTED=1` writes the
//! expected files again; review the diff.

use std::{collections::BTreeMap, fs, path::Path};

use trainyard_model::names::without_digests;

use crate::common::{cases, trainyard};

/// Renders a case; returns its expected files by name.
fn render(case: &Path) -> BTreeMap<&'static str, String> {
    let output = trainyard(case, &["render", "-f", "input.yaml"]);
    let (out, err) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    let mut files = BTreeMap::new();
    match output.status.code() {
        Some(0) => {
            files.insert("expected.yaml", out);
            if !err.is_empty() {
                files.insert("warnings.txt", without_digests(&err));
            }
        }
        Some(1) => {
            assert_eq!(
                out,
                "",
                "{}: standard output is piped to apply and stays empty",
                case.display()
            );
            files.insert("expected.txt", without_digests(&err));
        }
        code => panic!("{}: exit code {code:?}: {err}", case.display()),
    }
    files
}

const EXPECTED: [&str; 3] = ["expected.txt", "expected.yaml", "warnings.txt"];

#[test]
fn every_case_renders_as_expected() {
    let update = std::env::var_os("UPDATE_EXPECTED").is_some();
    let mut wrong = Vec::new();
    for case in cases().into_values() {
        let made = render(&case);
        for file in EXPECTED {
            let path = case.join(file);
            let expected = fs::read_to_string(&path).ok();
            let got = made.get(file);
            if update {
                match got {
                    Some(text) => fs::write(&path, text).unwrap(),
                    None => drop(fs::remove_file(&path)),
                }
            } else if got != expected.as_ref() {
                let (got, expected) = (
                    got.map_or("nothing", |s| s),
                    expected.as_deref().unwrap_or("nothing"),
                );
                wrong.push(format!(
                    "{}: expected\n{expected}\ngot\n{got}",
                    path.display()
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_case_has_a_distinct_result() {
    let mut seen = BTreeMap::new();
    for case in cases().into_values() {
        let input = fs::read_to_string(case.join("input.yaml")).unwrap();
        let first = input.lines().next().unwrap();
        let proves = first
            .strip_prefix("# Proves: ")
            .unwrap_or_else(|| panic!("{}: no `# Proves:`", case.display()));
        if let Some(other) = seen.insert(proves.to_owned(), case.clone()) {
            panic!("{} and {} prove the same", case.display(), other.display());
        }
    }
    assert!(seen.len() >= 30, "{} cases", seen.len());
}
