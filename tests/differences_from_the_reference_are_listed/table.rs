//! Reads the tables about TrainJobs in divergences.md, and in the pages of that name of the plugins.

use std::{collections::BTreeSet, fs, path::Path};

use super::plugins::PLUGINS;

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

/// The page of the rows that belong to no plugin.
pub(crate) const SHARED: &str = "tests/reference/divergences.md";

/// Returns the rows of all pages.
pub(crate) fn read() -> Vec<TableRow> {
    let rows: Vec<_> = pages().iter().flat_map(|page| rows_of(page)).collect();
    assert!(
        rows.len() > 50,
        "only {} rows were found: has the table moved?",
        rows.len()
    );
    rows
}

/// Returns the rows of a page.
pub(crate) fn rows_of(page: &str) -> Vec<TableRow> {
    let text = read_file(page);
    let rows = rows(&text, "What a TrainJob becomes");
    rows.into_iter().map(row).collect()
}

/// Returns the page of a plugin's folder.
pub(crate) fn page_of(folder: &str) -> String {
    format!("{folder}/reference/divergences.md")
}

fn pages() -> Vec<String> {
    let with_rows = PLUGINS.iter().filter(|(_, plugin)| !plugin.rows.is_empty());
    let of_plugins = with_rows.map(|(folder, _)| page_of(folder));
    [SHARED.to_owned()].into_iter().chain(of_plugins).collect()
}

/// Returns the IDs of the rows about the shipped runtimes.
pub(crate) fn shipped() -> Vec<String> {
    let text = read_file(SHARED);
    let rows = rows(&text, "Shipped runtimes");
    rows.into_iter()
        .flat_map(|line| quoted(columns(line)[0]))
        .collect()
}

/// Returns the IDs of the rows that refuse TrainJobs which the reference renders, from the section that lists them.
pub(crate) fn refusing() -> BTreeSet<String> {
    let texts: Vec<_> = pages().iter().map(|page| read_file(page)).collect();
    let rows = texts
        .iter()
        .flat_map(|text| rows(text, "What only Trainyard refuses"));
    let ids: Vec<_> = rows.flat_map(|line| quoted(columns(line)[0])).collect();
    let distinct: BTreeSet<_> = ids.iter().cloned().collect();
    assert_eq!(ids.len(), distinct.len(), "a row is listed twice: {ids:?}");
    distinct
}

/// Returns the IDs in the first column of the tables of a page.
pub(crate) fn of_page(path: &str) -> BTreeSet<String> {
    first_columns(&lines_with_ids(&read_file(path)))
}

/// Returns the IDs in the first column of the table in a section of a page.
pub(crate) fn of_section(path: &str, section: &str) -> BTreeSet<String> {
    first_columns(&rows(&read_file(path), section))
}

fn first_columns(lines: &[&str]) -> BTreeSet<String> {
    let first = lines.iter().flat_map(|line| quoted(columns(line)[0]));
    first.collect()
}

fn read_file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(path)).unwrap()
}

/// Returns the lines of the tables in a section that begin with an ID.
fn rows<'t>(text: &'t str, section: &str) -> Vec<&'t str> {
    let section = text.split(&format!("\n## {section}\n")).nth(1);
    let section = section.unwrap_or_default();
    let section = section.split("\n## ").next().unwrap();
    lines_with_ids(section)
}

fn lines_with_ids(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines.filter(|line| line.starts_with("| `")).collect()
}

fn columns(line: &str) -> Vec<&str> {
    line.trim_matches('|').split(" | ").map(str::trim).collect()
}

/// Returns the words in backquotes.
fn quoted(column: &str) -> BTreeSet<String> {
    let words = column.split('`').skip(1).step_by(2);
    words.map(str::to_owned).collect()
}

fn row(line: &str) -> TableRow {
    let columns = columns(line);
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
