//! Buffers the output, because nothing is printed if a part of the input is refused.

use std::io::{BufWriter, Seek, Write};

use tempfile::SpooledTempFile;
use thiserror::Error;

use super::print_from;
use crate::{args::ObjectFormat, finding::Finding, report::ErrorList};

/// The maximum size of the output of a command.
const MAX_OUTPUT: u64 = 1 << 30;

/// The number of bytes that are buffered in memory. Larger output is buffered in an unnamed file.
const IN_MEMORY: usize = 16 << 20;

/// The format of a list of texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    open: &'static str,
    between: &'static str,
    close: &'static str,
    /// The list without texts.
    empty: &'static str,
    /// The indentation of each line of a text after the first.
    indent: &'static str,
}

impl List {
    const DOCUMENTS: Self = Self {
        open: "",
        between: "---\n",
        close: "",
        empty: "",
        indent: "",
    };
    pub(crate) const PARAGRAPHS: Self = Self {
        between: "\n",
        ..Self::DOCUMENTS
    };
    pub(crate) const JSON: Self = Self {
        open: "[\n  ",
        between: ",\n  ",
        close: "\n]\n",
        empty: "[]\n",
        indent: "  ",
    };
    const JSON_OBJECTS: Self = Self {
        open: "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"List\",\n  \"items\": [\n    ",
        between: ",\n    ",
        close: "\n  ]\n}\n",
        empty: "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"List\",\n  \"items\": []\n}\n",
        indent: "    ",
    };

    /// Returns the format of texts without separators, between `open` and `close`. `empty` is the list without texts.
    pub(crate) const fn of_texts(
        open: &'static str,
        close: &'static str,
        empty: &'static str,
    ) -> Self {
        Self {
            open,
            close,
            between: "",
            empty,
            indent: "",
        }
    }

    /// Returns the list for objects in a format.
    pub(crate) const fn of_objects(format: ObjectFormat) -> Self {
        match format {
            ObjectFormat::Yaml => Self::DOCUMENTS,
            ObjectFormat::Json => Self::JSON_OBJECTS,
        }
    }
}

/// An error of buffering a text.
#[derive(Debug, Error)]
pub(crate) enum BufferError {
    /// The output is too large.
    #[error("the output exceeds {limit} bytes; select fewer TrainJobs")]
    TooMuch {
        /// The maximum size in bytes.
        limit: u64,
    },
    /// The temporary file cannot be written or read.
    #[error(
        "cannot buffer the output in the directory for temporary files: {0}; set TMPDIR to a directory with enough space"
    )]
    File(#[from] std::io::Error),
}

impl Finding for BufferError {}

/// A list of texts that is printed when it is complete.
pub(crate) struct BufferedList {
    list: List,
    file: BufWriter<SpooledTempFile>,
    bytes: u64,
    most: u64,
}

impl BufferedList {
    pub(crate) fn new(list: List) -> Self {
        Self::of_at_most(list, MAX_OUTPUT, IN_MEMORY)
    }

    fn of_at_most(list: List, most: u64, in_memory: usize) -> Self {
        Self {
            list,
            file: BufWriter::new(SpooledTempFile::new(in_memory)),
            bytes: 0,
            most,
        }
    }

    /// Whether it has no texts.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Adds a text. `of` names its subject in errors.
    pub(crate) fn add(&mut self, of: impl std::fmt::Display, text: &str) -> Result<(), ErrorList> {
        let before = if self.is_empty() {
            self.list.open
        } else {
            self.list.between
        };
        let lines = text.split_inclusive('\n').enumerate();
        let mut parts = [before].into_iter().chain(lines.flat_map(|(at, line)| {
            let indent = if at == 0 { "" } else { self.list.indent };
            [indent, line]
        }));
        let (file, bytes, most) = (&mut self.file, &mut self.bytes, self.most);
        parts
            .try_for_each(|part| write(file, bytes, most, part))
            .map_err(|error| ErrorList::from_iter([format!("{of}: {error}")]))
    }

    /// Prints the list.
    pub(crate) fn print(self) -> Result<(), ErrorList> {
        print_from(
            self.finish()
                .map_err(|error| ErrorList::from_iter([error]))?,
        )
    }

    /// Completes the list and rewinds the file.
    fn finish(mut self) -> Result<SpooledTempFile, BufferError> {
        let end = if self.is_empty() {
            self.list.empty
        } else {
            self.list.close
        };
        self.file.write_all(end.as_bytes())?;
        let mut file = self.file.into_inner().map_err(|error| error.into_error())?;
        file.rewind()?;
        Ok(file)
    }
}

fn write(file: &mut impl Write, bytes: &mut u64, most: u64, text: &str) -> Result<(), BufferError> {
    *bytes += text.len() as u64;
    if *bytes > most {
        return Err(BufferError::TooMuch { limit: most });
    }
    Ok(file.write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Read;

    use serde_json::{Value, json};

    use super::*;

    fn text(list: List, texts: &[String]) -> String {
        let mut buffered = BufferedList::of_at_most(list, MAX_OUTPUT, 8);
        for text in texts {
            buffered.add("a", text).unwrap();
        }
        let mut all = String::new();
        buffered.finish().unwrap().read_to_string(&mut all).unwrap();
        all
    }

    #[test]
    fn json_lists_are_formatted_like_single_values() {
        let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
        for values in [
            vec![],
            vec![json!({"a": [1, {}]})],
            vec![json!(1), json!([2, "\n"])],
        ] {
            let texts: Vec<_> = values.iter().map(pretty).collect();
            let whole = pretty(&json!(values)) + "\n";
            assert_eq!(text(List::JSON, &texts), whole);
            let whole = pretty(&trainyard_api::list::list(values)) + "\n";
            assert_eq!(text(List::JSON_OBJECTS, &texts), whole);
        }
    }

    #[test]
    fn output_is_bounded() {
        let mut buffered = BufferedList::of_at_most(List::DOCUMENTS, 20, 8);
        buffered.add("a", "0123456789").unwrap();
        let refused = buffered.add("TrainJob ml/b", "0123456789").unwrap_err();
        let wanted = ErrorList::from_iter([
            "TrainJob ml/b: the output exceeds 20 bytes; select fewer TrainJobs",
        ]);
        assert_eq!(format!("{refused:?}"), format!("{wanted:?}"));
    }
}
