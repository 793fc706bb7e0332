//! The tables of divergences.md about TrainJobs, of the pages of that name of the plugins, and of the pages that say what to do.

use std::collections::BTreeSet;

/// A row of a table about TrainJobs.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// Its ID, in the first column.
    pub id: String,
    /// What the reference does.
    pub reference: String,
    /// What Trainyard does.
    pub trainyard: String,
    /// Why.
    pub why: String,
    /// Whether Kueue can see the difference.
    pub kueue: Kueue,
    /// The cases that show it.
    pub cases: BTreeSet<String>,
}

/// Whether Kueue can see a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kueue {
    /// It can.
    Yes,
    /// The reference agrees with Trainyard, or is not compared.
    Alone,
    /// It cannot.
    No,
}

/// The page of the rows that belong to no plugin.
pub const SHARED: &str = "tests/reference/divergences.md";

/// The title of the section with the rows.
pub const ROWS: &str = "What a TrainJob becomes";

/// The title of the section with the rows about runtimes that both sides ship.
pub const SHIPPED: &str = "Shipped runtimes";

/// The title of the section with the rows that refuse TrainJobs.
pub const REFUSING: &str = "What only Trainyard refuses";

const SHARED_TEXT: &str = include_str!("../../../tests/reference/divergences.md");
const MOVE: &str = include_str!("../../../docs/move.md");
const KUEUE: &str = include_str!("../../../docs/kueue.md");

/// The pages of the plugins, each with the folder of its plugin.
const OF_PLUGINS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Returns all pages, each with its path and its text.
pub fn pages() -> impl Iterator<Item = (String, &'static str)> {
    let of_plugins = OF_PLUGINS.iter();
    let of_plugins = of_plugins.map(|(folder, text)| (page_of(folder), *text));
    [(SHARED.to_owned(), SHARED_TEXT)]
        .into_iter()
        .chain(of_plugins)
}

/// Returns the page of a plugin's folder.
#[must_use]
pub fn page_of(folder: &str) -> String {
    format!("{folder}/reference/divergences.md")
}

/// Returns the rows of all pages, each with the path of its page.
pub fn read() -> impl Iterator<Item = (String, TableRow)> {
    pages().flat_map(|(path, text)| {
        let rows = rows_of(text).into_iter();
        rows.map(move |row| (path.clone(), row))
    })
}

/// Returns the rows of a page. A line that is not a row is left out.
#[must_use]
pub fn rows_of(text: &str) -> Vec<TableRow> {
    let lines = lines(text, ROWS).into_iter();
    lines.filter_map(row).collect()
}

/// Returns what to do about a row, if a page says it.
#[must_use]
pub fn advice(id: &str) -> Option<&'static str> {
    let is_its = |line: &&&str| {
        columns(line)
            .first()
            .is_some_and(|first| quoted(first).contains(id))
    };
    let of_page = |text: &'static str| {
        let lines = lines_with_ids(text);
        let line = *lines.iter().find(is_its)?;
        columns(line).last().copied()
    };
    of_page(MOVE).or_else(|| of_page(KUEUE))
}

/// Returns why TrainJobs of a row are refused which the reference renders, or what would happen to them there.
#[must_use]
pub fn refusal(id: &str) -> Option<&'static str> {
    let lines = pages().flat_map(|(_, text)| lines(text, REFUSING));
    let mut columns = lines.map(columns);
    let of_row =
        columns.find(|columns| columns.first().is_some_and(|it| quoted(it).contains(id)))?;
    of_row.last().copied()
}

/// Returns the paths of the fields of a kind that the reference's CRD does not have, such as `.spec.plugins`. Lists have `[]` behind
/// their name. The page lists all of them, which a test of `trainyard-schema` checks.
pub fn fields_without_reference(kind: &str) -> impl Iterator<Item = &'static str> {
    let section = SHARED_TEXT.split("\n## CRDs\n").nth(1);
    let section = section.unwrap_or_default().split("\n## ").next();
    let kinds = match kind.ends_with("Runtime") {
        true => "| both runtimes |",
        false => "| TrainJob |",
    };
    let lines = section.unwrap_or_default().lines();
    let lines = lines.filter(move |line| line.starts_with(kinds));
    let quoted = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
    let added = quoted.filter_map(|place| place.strip_suffix(" added"));
    added.filter(|path| path.starts_with('.'))
}

/// Returns the IDs in the first column of the tables in a section.
#[must_use]
pub fn ids(text: &str, section: &str) -> Vec<String> {
    first_columns(&lines(text, section))
}

/// Returns the IDs in the first column of the tables of a page.
#[must_use]
pub fn all_ids(text: &str) -> Vec<String> {
    first_columns(&lines_with_ids(text))
}

fn first_columns(lines: &[&str]) -> Vec<String> {
    let first = lines
        .iter()
        .filter_map(|line| columns(line).first().copied());
    first.flat_map(quoted).collect()
}

/// Returns the lines of the tables in a section that begin with an ID.
fn lines<'t>(text: &'t str, section: &str) -> Vec<&'t str> {
    let section = text.split(&format!("\n## {section}\n")).nth(1);
    let section = section.unwrap_or_default().split("\n## ").next();
    lines_with_ids(section.unwrap_or_default())
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

fn row(line: &str) -> Option<TableRow> {
    let columns = columns(line);
    let [id, reference, trainyard, why, kueue, cases] = columns.as_slice() else {
        return None;
    };
    let kueue = match kueue.split(':').next()? {
        "yes" => Kueue::Yes,
        "yes, alone" => Kueue::Alone,
        "no" => Kueue::No,
        _ => return None,
    };
    Some(TableRow {
        id: quoted(id).into_iter().next()?,
        reference: (*reference).to_owned(),
        trainyard: (*trainyard).to_owned(),
        why: (*why).to_owned(),
        kueue,
        cases: quoted(cases),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn rows_with_advice_have_it() {
        let ids: BTreeSet<_> = [MOVE, KUEUE].into_iter().flat_map(all_ids).collect();
        assert!(ids.len() > 15, "{ids:?}");
        for id in ids {
            assert!(
                advice(&id).is_some_and(|advice| advice.ends_with('.')),
                "{id}"
            );
        }
        let refusing: Vec<_> = pages().flat_map(|(_, text)| ids_of(text)).collect();
        assert!(refusing.len() > 20, "{refusing:?}");
        assert!(
            refusing.iter().all(|id| refusal(id).is_some()),
            "{refusing:?}"
        );
        assert_eq!(
            (advice("no-such-row"), refusal("no-such-row")),
            (None, None)
        );
    }

    fn ids_of(text: &str) -> Vec<String> {
        ids(text, REFUSING)
    }
}
