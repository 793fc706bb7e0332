//! Splits a text at its document markers, so that an error in one document does not hide the next.

use super::ErrorKind;

/// A part of a text that starts at a `---` line, or at the start of the text.
pub(super) struct Chunk<'t> {
    /// The part, including its `---`.
    pub(super) text: &'t str,
    /// Its start in the whole text, in bytes.
    pub(super) start: usize,
    /// The number of lines of the whole text before it.
    pub(super) lines_before: usize,
}

impl Chunk<'_> {
    /// Returns the error and the place of a document that begins beside its `---`, which kubectl takes for a part of the one before.
    pub(super) fn beside_marker(&self) -> Option<(ErrorKind, (usize, usize))> {
        let line = self.text.lines().next().filter(|_| self.lines_before > 0)?;
        let beside = line.strip_prefix("---")?.trim_start();
        let is_beside = !beside.is_empty() && !beside.starts_with('#');
        let column = line.chars().count() - beside.chars().count() + 1;
        is_beside.then_some((ErrorKind::NotSeparated, (1, column)))
    }

    /// Converts a line and column of the chunk, both from 1, to those of the whole text. A position after the end becomes the end.
    pub(super) fn place(&self, line: usize, column: usize) -> (usize, usize) {
        let lines = self.text.lines().count().max(1);
        if line <= lines {
            return (self.lines_before + line, column);
        }
        let last = self.text.lines().last().unwrap_or_default();
        (self.lines_before + lines, last.chars().count() + 1)
    }
}

/// Splits the text before each `---` marker.
///
/// A YAML value cannot contain such a line without indentation, so this needs no parser. Directives (`%YAML 1.1`) belong to the marker
/// after them.
pub(super) fn chunks(text: &str) -> impl Iterator<Item = Chunk<'_>> {
    let mut lines = text.split_inclusive('\n');
    let mut start = Some((0, 0));
    let (mut offset, mut line_number) = (0, 0);
    let mut prologue = Prologue::Blank;
    std::iter::from_fn(move || {
        let (from, lines_before) = start?;
        let chunk = |to| {
            text.get(from..to).map(|text| Chunk {
                text,
                start: from,
                lines_before,
            })
        };
        for line in lines.by_ref() {
            let marker = is_marker(line);
            let ends = marker && prologue != Prologue::Directives && offset > from;
            let end = (offset, line_number);
            prologue = if marker {
                Prologue::Content
            } else {
                prologue.after(line)
            };
            offset += line.len();
            line_number += 1;
            if ends {
                start = Some(end);
                return chunk(end.0);
            }
        }
        start = None;
        chunk(text.len())
    })
}

fn is_marker(line: &str) -> bool {
    line.strip_prefix("---")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// The lines between the last document and the next marker.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prologue {
    /// Blank lines and comments.
    Blank,
    /// Directives, which belong to the document after them.
    Directives,
    /// A document.
    Content,
}

impl Prologue {
    fn after(self, line: &str) -> Self {
        let text = line.trim();
        match self {
            Self::Content if text == "..." || line.starts_with("... ") => Self::Blank,
            Self::Content => Self::Content,
            _ if text.is_empty() || text.starts_with('#') => self,
            _ if line.starts_with('%') => Self::Directives,
            _ => Self::Content,
        }
    }
}
