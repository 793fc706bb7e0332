//! Parses YAML and JSON into JSON values as Kubernetes' tools do, and writes YAML.
//!
//! kubectl and the API server parse YAML with `sigs.k8s.io/yaml`, which resolves scalars as go-yaml v2 does: with the booleans of
//! YAML 1.1 (`y`, `on`, `No`), `0755` as an octal number, and so on. A TrainJob must mean the same here. The syntax is parsed by
//! `saphyr-parser`; only the resolution is our own. Duplicate keys are errors, as in Kubernetes' strict decoding.

mod anchor;
mod budget;
mod build;
mod error;
mod json;
mod lines;
mod scalar;
mod split;
mod write;

use anchor::AnchorNames;
pub use budget::{Budget, MAX_ALIAS_BYTES, MAX_VALUE_BYTES, memory_of};
use build::Builder;
pub use error::{Error, ErrorKind};
pub use json::read_json;
pub use lines::DocumentText;
pub(crate) use lines::Part;
use saphyr_parser::{Event, Parser};
use serde_json::Value;
use split::Chunk;
pub use write::{write, write_documents};

/// The maximum depth of nested lists and mappings.
pub const MAX_DEPTH: usize = 127;

/// The bytes in which kubectl looks for the first `{` of JSON.
const JSON_STARTS_WITHIN: usize = 4096;

/// The maximum number of errors that are listed in one run.
pub(crate) const MAX_ERRORS: usize = 1000;

/// A document of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its number in the text, from 1. Empty documents are counted.
    pub number: usize,
    /// Its value; never null.
    pub value: Value,
    /// Its position in the text. `None` for one of several JSON values.
    pub(crate) part: Option<Part>,
}

impl Document {
    /// Keeps the text that the document was read from, so that errors can name the lines of its fields.
    #[must_use]
    pub fn text(&self, text: &str) -> DocumentText {
        match self.part {
            Some(part) => DocumentText::new(without_mark(text).into(), part),
            None => DocumentText::default(),
        }
    }
}

/// Parses all documents of a text, YAML or JSON.
///
/// An invalid document does not hide the others: each gives one result, in order. Documents that are empty, null or consist of comments
/// are skipped, but counted. A text that starts with `{` is first parsed as a sequence of JSON values, as in Kubernetes. Parsing stops
/// when the [`Budget`] is exceeded, or when there are more errors than are listed.
pub fn read(text: &str) -> Vec<Result<Document, Error>> {
    read_within(text, &mut Budget::default())
}

/// Parses one of several texts that share a budget.
pub(crate) fn read_within(text: &str, budget: &mut Budget) -> Vec<Result<Document, Error>> {
    let text = without_mark(text);
    let content = text.trim_start();
    if !content.starts_with('{') || text.len() - content.len() >= JSON_STARTS_WITHIN {
        return read_yaml(text, budget);
    }
    let before = budget.clone();
    match json::read_stream(text, budget) {
        Ok(mut documents) => {
            if let [document] = documents.as_mut_slice() {
                // One JSON value is YAML, too.
                document.part = Some(Part {
                    start: 0,
                    end: text.len(),
                    lines_before: 0,
                    documents_before: 0,
                });
            }
            documents.into_iter().map(Ok).collect()
        }
        Err(json) if json.kind.is_of_json_only() => vec![Err(json)],
        Err(json) => {
            // The JSON values are dropped.
            *budget = before;
            let documents = read_yaml(text, budget);
            match documents
                .iter()
                .find_map(|document| document.as_ref().err())
            {
                // The parser that got further has understood more of the text, so its message is more helpful.
                Some(yaml) if (json.line, json.column) > (yaml.line, yaml.column) => {
                    vec![Err(json)]
                }
                _ => documents,
            }
        }
    }
}

/// Removes the byte order mark that some editors write.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn read_yaml(text: &str, budget: &mut Budget) -> Vec<Result<Document, Error>> {
    let mut builder = Builder::new(budget);
    let mut results = Vec::new();
    let (mut counted, mut errors) = (0, 0);
    for chunk in split::chunks(text) {
        read_chunk(&chunk, &mut builder, &mut counted, &mut results);
        if let Some(Err(error)) = results.last() {
            errors += 1;
            if errors > MAX_ERRORS || error.kind.ends_reading() {
                break;
            }
        }
    }
    results
}

/// Finds a character that not all readers of YAML take for the end of a line, with its line and column, both from 1.
fn line_break(text: &str) -> Option<(ErrorKind, (usize, usize))> {
    let is_break = |at: usize, found: char| match found {
        '\r' => !text.get(at + 1..).unwrap_or_default().starts_with('\n'),
        _ => matches!(found, '\u{85}' | '\u{2028}' | '\u{2029}'),
    };
    let (at, found) = text.char_indices().find(|(at, it)| is_break(*at, *it))?;
    let before = text.get(..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let place = (before.matches('\n').count() + 1, line.chars().count() + 1);
    Some((ErrorKind::LineBreak(found), place))
}

/// Parses the documents of a chunk, which usually is one document.
fn read_chunk(
    chunk: &Chunk<'_>,
    builder: &mut Builder<'_>,
    counted: &mut usize,
    results: &mut Vec<Result<Document, Error>>,
) {
    let mut open = false;
    let before = *counted;
    if let Some((kind, (line, column))) = line_break(chunk.text).or_else(|| chunk.beside_marker()) {
        *counted += 1;
        let (line, column) = chunk.place(line, column);
        let document = *counted;
        return results.push(Err(Error {
            document,
            line,
            column,
            kind,
        }));
    }
    let mut names = AnchorNames::of(chunk.text);
    for event in Parser::new_from_str(chunk.text) {
        let outcome = match event {
            Ok((Event::DocumentStart(is_marked), span)) if !is_marked && *counted > before => {
                Err((
                    ErrorKind::NotSeparated,
                    (span.start.line(), span.start.col()),
                ))
            }
            Ok((Event::DocumentStart(_), _)) => {
                builder.start();
                *counted += 1;
                open = true;
                Ok(())
            }
            Ok((Event::DocumentEnd, span)) => {
                let kept = builder.finish().map(|value| {
                    open = false;
                    if !value.is_null() {
                        let part = Part {
                            start: chunk.start,
                            end: chunk.start + chunk.text.len(),
                            lines_before: chunk.lines_before,
                            documents_before: *counted - before - 1,
                        };
                        results.push(Ok(Document {
                            number: *counted,
                            value,
                            part: Some(part),
                        }));
                    }
                });
                kept.map_err(|kind| (kind, (span.start.line(), span.start.col())))
            }
            Ok((event, span)) => {
                let at = (span.start.line(), span.start.col());
                let checked = names.check(&event, span.start.index());
                checked
                    .map_err(|kind| (kind, at))
                    .and_then(|()| builder.event(event, at))
            }
            Err(error) => {
                let at = (error.marker().line(), error.marker().col());
                Err((ErrorKind::Syntax(error.info().to_owned()), at))
            }
        };
        if let Err((kind, (line, column))) = outcome {
            if !open {
                *counted += 1;
            }
            let (line, column) = chunk.place(line, column + 1);
            results.push(Err(Error {
                document: *counted,
                line,
                column,
                kind,
            }));
            return;
        }
    }
}
