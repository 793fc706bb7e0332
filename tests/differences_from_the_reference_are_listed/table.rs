//! Reads the table "What a TrainJob becomes" of divergences.md.

use std::{collections::BTreeSet, fs, path::Path};

/// Returns the ID of each row, and the cases that show it.
pub(super) fn read() -> Vec<(String, BTreeSet<String>)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/divergences.md");
    let text = fs::read_to_string(file).unwrap();
    let section = text.split("\n## What a TrainJob becomes\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let rows: Vec<_> = rows.skip(1).map(row).collect();
    assert!(
        rows.len() > 10,
        "only {} rows were found: has the table moved?",
        rows.len()
    );
    rows
}

fn row(line: &str) -> (String, BTreeSet<String>) {
    let columns: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    let quoted = |column: &str| {
        column
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    let id = quoted(columns.first().unwrap());
    let cases = quoted(columns.last().unwrap());
    assert_eq!(id.len(), 1, "the first column holds the id: {line}");
    assert!(!cases.is_empty(), "nothing proves: {line}");
    (id.into_iter().next().unwrap(), cases)
}
