//! Reads the table "What a TrainJob becomes" of divergences.md.

use std::{collections::BTreeSet, fs, path::Path};

/// A row of the table.
pub(crate) struct TableRow {
    /// Its ID, in the first column.
    pub(crate) id: String,
    /// Whether Kueue can see the difference.
    pub(crate) kueue: Kueue,
    /// The cases that show it.
    pub(crate) cases: BTreeSet<String>,
}

/// Whether Kueue can see a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kueue {
    Yes,
    /// The reference agrees with Trainyard, or is not compared.
    Alone,
    No,
}

/// Returns the rows.
pub(crate) fn read() -> Vec<TableRow> {
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

fn row(line: &str) -> TableRow {
    let columns: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    let quoted = |column: &str| {
        column
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    let [id, .., kueue, cases] = columns.as_slice() else {
        panic!("the row has too few columns: {line}");
    };
    let (id, cases) = (quoted(id), quoted(cases));
    assert_eq!(id.len(), 1, "the first column holds the id: {line}");
    assert!(!cases.is_empty(), "nothing proves: {line}");
    let kueue = match kueue.split(':').next() {
        Some("yes") => Kueue::Yes,
        Some("yes, alone") => Kueue::Alone,
        Some("no") => Kueue::No,
        _ => panic!("the column \"Kueue\" starts with `yes`, `yes, alone` or `no`: {line}"),
    };
    TableRow {
        id: id.into_iter().next().unwrap(),
        kueue,
        cases,
    }
}
