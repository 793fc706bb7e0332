//! Standard output, and the progress bar on standard error.

mod buffered;
mod file;

use std::{
    borrow::Cow,
    io::{IsTerminal, Read, Write},
    path::Path,
};

use comfy_table::{ContentArrangement, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use serde_json::Value;
pub(crate) use trainyard_model::text::counted;
use trainyard_model::text::{MAX_LINE, clean, clean_to, json_escaped};
use trainyard_oci::Step;

pub(crate) use self::{
    buffered::{BufferedList, List},
    file::replace,
};
use crate::{args::ObjectFormat, report::ErrorList};

/// Prints objects in order.
pub(crate) fn objects(objects: Vec<Value>, format: ObjectFormat) -> Result<(), ErrorList> {
    match format {
        ObjectFormat::Json => json(&trainyard_api::list::list(objects)),
        ObjectFormat::Yaml => print(&trainyard_api::yaml::write_documents(&objects)),
    }
}

/// Returns an object as one text of a [`List`].
pub(crate) fn object(object: &Value, format: ObjectFormat) -> Result<String, ErrorList> {
    match format {
        ObjectFormat::Json => pretty(object),
        ObjectFormat::Yaml => Ok(trainyard_api::yaml::write(object)),
    }
}

/// Returns comments, followed by objects as YAML.
pub(crate) fn commented(comments: &[String], objects: &[Value]) -> String {
    let comment = |line: &String| format!("# {}\n", clean_to(line, MAX_LINE));
    let comments: String = comments.iter().map(comment).collect();
    comments + &trainyard_api::yaml::write_documents(objects)
}

/// Returns a file's name without control characters, because anyone with write access to the directory chooses it.
pub(crate) fn path(path: &Path) -> String {
    clean(&path.display().to_string())
}

/// Prints a value as JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<(), ErrorList> {
    print(&(pretty(value)? + "\n"))
}

/// Returns a value as JSON.
pub(crate) fn pretty<T: Serialize>(value: &T) -> Result<String, ErrorList> {
    let text = serde_json::to_string_pretty(value).map_err(anyhow::Error::from)?;
    let escaped = match json_escaped(&text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(escaped) => Some(escaped),
    };
    Ok(escaped.unwrap_or(text))
}

/// Returns a value as JSON in one line.
pub(crate) fn compact(value: &Value) -> String {
    let text = value.to_string();
    match json_escaped(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    }
}

/// Returns lines of text without control characters.
pub(crate) fn cleaned<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> String {
    let clean = |line: L| clean_to(line.as_ref(), MAX_LINE) + "\n";
    lines.into_iter().map(clean).collect()
}

/// Prints lines of text without control characters.
pub(crate) fn lines<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> Result<(), ErrorList> {
    print(&cleaned(lines))
}

/// Prints text that was already cleaned. A closed pipe is not an error.
pub(crate) fn print(text: &str) -> Result<(), ErrorList> {
    print_from(text.as_bytes())
}

/// Prints a text of any length that was already cleaned. A closed pipe is not an error.
fn print_from(mut text: impl Read) -> Result<(), ErrorList> {
    let mut out = anstream::stdout().lock();
    match std::io::copy(&mut text, &mut out).and_then(|_| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

/// A table that is as wide as the terminal, or as its content if there is none.
pub(crate) struct Table(comfy_table::Table);

impl Table {
    /// Creates a table with these columns.
    pub(crate) fn new(columns: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING);
        // Terminals without a size, such as those of some CI systems, report 0.
        if std::io::stdout().is_terminal() && table.width() != Some(0) {
            table.set_content_arrangement(ContentArrangement::Dynamic);
        }
        table.set_header(columns.iter().map(|column| column.to_uppercase()));
        Self(table)
    }

    /// Adds a row. Each cell is a single line.
    pub(crate) fn row<C: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells = cells.into_iter();
        self.0.add_row(cells.map(|cell| clean(cell.as_ref())));
    }

    /// Returns the lines without surrounding spaces.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.lines().map(|line| line.trim().to_owned())
    }
}

/// A progress bar on standard error, if that is a terminal and there are many steps.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// The number of steps from which the bar is shown.
    const MANY: usize = 50;

    pub(crate) fn new(what: &'static str, steps: usize) -> Self {
        let bar = ProgressBar::with_draw_target(
            Some(steps as u64),
            if steps < Self::MANY {
                ProgressDrawTarget::hidden()
            } else {
                ProgressDrawTarget::stderr()
            },
        );
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self(bar)
    }

    pub(crate) fn step(&self) {
        self.0.inc(1);
    }

    /// Hides the bar while `print` runs.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }

    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// A progress bar of bytes on standard error, if that is a terminal and there are many.
pub(crate) struct Transfer(ProgressBar);

impl Transfer {
    /// The number of bytes from which the bar is shown.
    const MANY: u64 = 1 << 20;

    pub(crate) fn new(what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self(bar)
    }

    /// Returns what a client tells of its transfer.
    pub(crate) fn progress(&self) -> trainyard_oci::Progress {
        let bar = self.0.clone();
        trainyard_oci::Progress::new(move |step| match step {
            Step::Expect(bytes) => {
                bar.inc_length(bytes);
                if bar.length().is_some_and(|length| length >= Self::MANY) {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                }
            }
            Step::Advance(bytes) => bar.inc(bytes),
        })
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A line on standard error, if that is a terminal, with the number of objects that were read.
pub(crate) struct Reading(ProgressBar);

impl Reading {
    pub(crate) fn new(what: String) -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("reading {msg} {pos}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self(bar)
    }

    pub(crate) fn add(&self, objects: usize) {
        self.0.inc(objects as u64);
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
