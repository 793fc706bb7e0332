//! Reads the tables about TrainJobs in divergences.md, and in the pages of that name of the plugins.

use std::{collections::BTreeSet, fs};

use trainyard_divergences::table;
pub(crate) use trainyard_divergences::table::{Kueue, TableRow};

use crate::common::root;

/// Returns the rows of all pages.
pub(crate) fn read() -> Vec<TableRow> {
    let rows: Vec<_> = table::read().map(|(_, row)| row).collect();
    assert!(
        rows.len() > 50,
        "only {} rows were found: has the table moved?",
        rows.len()
    );
    let unproven: Vec<_> = rows.iter().filter(|row| row.cases.is_empty()).collect();
    assert!(unproven.is_empty(), "nothing proves {unproven:?}");
    rows
}

/// Returns the IDs of the rows about the shipped runtimes.
pub(crate) fn shipped() -> Vec<String> {
    table::pages()
        .flat_map(|(_, text)| table::ids(text, table::SHIPPED))
        .collect()
}

/// Returns the IDs of the rows that refuse TrainJobs which the reference renders, from the section that lists them.
pub(crate) fn refusing() -> BTreeSet<String> {
    let ids: Vec<_> = table::pages()
        .flat_map(|(_, text)| table::ids(text, table::REFUSING))
        .collect();
    let distinct: BTreeSet<_> = ids.iter().cloned().collect();
    assert_eq!(ids.len(), distinct.len(), "a row is listed twice: {ids:?}");
    distinct
}

/// Returns the IDs in the first column of the tables of a page.
pub(crate) fn of_page(path: &str) -> BTreeSet<String> {
    table::all_ids(&read_file(path)).into_iter().collect()
}

/// Returns the IDs in the first column of the table in a section of a page.
pub(crate) fn of_section(path: &str, section: &str) -> BTreeSet<String> {
    table::ids(&read_file(path), section).into_iter().collect()
}

fn read_file(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}
