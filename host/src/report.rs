//! How a command ends: its errors and warnings on standard error, and its exit code.

use std::{
    borrow::Cow,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use anstyle::{AnsiColor, Style};
use indexmap::IndexMap;
use trainyard_model::text::{MAX_LINE, clean_to};

use crate::finding::{Finding, Parts};

/// The maximum number of errors that a run prints, and of warnings.
pub(crate) const MAX_LINES: usize = 500;

/// The errors of a run, a line each.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorList {
    lines: IndexMap<String, Parts>,
    /// The number of errors beyond the maximum, whose lines are not kept.
    omitted: usize,
}

impl ErrorList {
    /// Adds a line. An error that TrainJobs share, such as one of their runtime, is listed once.
    pub(crate) fn add(&mut self, error: impl Finding) {
        let line = clean_to(&error.to_string(), MAX_LINE);
        self.insert(line, || error.parts());
    }

    fn insert(&mut self, line: String, parts: impl FnOnce() -> Parts) {
        if self.lines.contains_key(&line) {
            return;
        }
        if self.lines.len() < MAX_LINES {
            self.lines.insert(line, parts());
        } else {
            self.omitted += 1;
        }
    }

    /// Counts errors without their lines.
    pub(crate) const fn omit(&mut self, errors: usize) {
        self.omitted += errors;
    }

    /// Whether there is no error.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Adds the errors of another list.
    pub(crate) fn absorb(&mut self, other: Self) {
        for (line, parts) in other.lines {
            self.insert(line, || parts);
        }
        self.omitted += other.omitted;
    }

    /// Returns the errors in their parts, and the number of errors that were not kept.
    pub(crate) fn parts(&self) -> (impl Iterator<Item = &Parts>, usize) {
        (self.lines.values(), self.omitted)
    }

    /// Prints the errors as warnings.
    pub(crate) fn warn(&self) {
        for (line, parts) in &self.lines {
            warn_line(line, || parts.clone());
        }
        if self.omitted > 0 {
            warn(format!("{} more warnings are not printed", self.omitted));
        }
    }

    /// Returns the lines that are printed.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let more = (self.omitted > 0).then(|| {
            let more = "more errors are not printed; correct those above first";
            Cow::from(format!("{} {more}", self.omitted))
        });
        let lines = self.lines.keys().map(|line| line.as_str().into());
        lines.chain(more)
    }

    /// Fails if there is an error.
    pub(crate) fn or_ok<T>(self, value: T) -> Result<T, Self> {
        if self.lines.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl<E: Finding> FromIterator<E> for ErrorList {
    fn from_iter<I: IntoIterator<Item = E>>(errors: I) -> Self {
        let mut failure = Self::default();
        errors.into_iter().for_each(|error| failure.add(error));
        failure
    }
}

impl From<anyhow::Error> for ErrorList {
    fn from(error: anyhow::Error) -> Self {
        [with_causes(&error)].into_iter().collect()
    }
}

/// Formats an error with its causes, without those that the error before already contains.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    let mut parent = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text.clone_from(&cause);
        } else if !parent.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        parent = cause;
    }
    text
}

impl From<std::io::Error> for ErrorList {
    fn from(error: std::io::Error) -> Self {
        [error].into_iter().collect()
    }
}

/// Prints the errors and returns the exit code.
pub(crate) fn exit(result: Result<(), ErrorList>) -> ExitCode {
    match result {
        Ok(()) => exit_with(0),
        Err(failure) => exit_with_errors(&failure, 1),
    }
}

/// Prints errors and returns this exit code.
pub(crate) fn exit_with_errors(failure: &ErrorList, code: u8) -> ExitCode {
    let code = exit_with(code);
    let lines = failure.lines();
    lines.for_each(|line| print("error", AnsiColor::Red, line));
    code
}

/// Returns this exit code.
pub(crate) fn exit_with(code: u8) -> ExitCode {
    warn_of_more();
    ExitCode::from(code)
}

/// Prints an error of the command line, which may contain names of files, and returns the exit code.
pub(crate) fn wrong_usage(error: &clap::Error) -> ExitCode {
    for line in error.render().to_string().lines() {
        anstream::eprintln!("{}", clean_to(line, MAX_LINE));
    }
    ExitCode::from(2)
}

/// The number of warnings so far.
static WARNINGS: AtomicUsize = AtomicUsize::new(0);

/// The warnings that were printed, for a report.
static PRINTED: Mutex<Vec<Parts>> = Mutex::new(Vec::new());

/// Returns the warnings that were printed so far, and the number of those that were not.
pub(crate) fn warnings() -> (Vec<Parts>, usize) {
    let printed = PRINTED.lock();
    let printed = printed.unwrap_or_else(PoisonError::into_inner);
    (printed.clone(), omitted_warnings())
}

/// Prints a warning, unless there were too many before it.
pub(crate) fn warn(warning: impl Finding) {
    warn_line(&warning, || warning.parts());
}

fn warn_line(line: impl std::fmt::Display, parts: impl FnOnce() -> Parts) {
    if WARNINGS.fetch_add(1, Ordering::Relaxed) < MAX_LINES {
        let printed = PRINTED.lock();
        let mut printed = printed.unwrap_or_else(PoisonError::into_inner);
        printed.push(parts());
        drop(printed);
        print("warning", AnsiColor::Yellow, line);
    }
}

/// Returns the number of warnings that were not printed.
fn omitted_warnings() -> usize {
    WARNINGS.load(Ordering::Relaxed).saturating_sub(MAX_LINES)
}

/// Prints the number of warnings that were not printed, if any.
fn warn_of_more() {
    let omitted = omitted_warnings();
    if omitted > 0 {
        let more = format!("{omitted} more warnings are not printed");
        print("warning", AnsiColor::Yellow, more);
    }
}

/// Prints a line that is neither an error nor a warning.
pub(crate) fn note(line: impl std::fmt::Display) {
    anstream::eprintln!("{}", clean_to(&line.to_string(), MAX_LINE));
}

pub(crate) fn print(level: &str, color: AnsiColor, line: impl std::fmt::Display) {
    let line = clean_to(&line.to_string(), MAX_LINE);
    let style = Style::new().bold().fg_color(Some(color.into()));
    anstream::eprintln!("{style}{level}{style:#}: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_kept_once_and_up_to_a_count() {
        let twice = (0..2 * MAX_LINES).flat_map(|at| [at.to_string(), at.to_string()]);
        let failure = ErrorList::from_iter(twice);
        assert_eq!(
            (failure.lines.len(), failure.omitted),
            (MAX_LINES, 2 * MAX_LINES)
        );
    }
}
