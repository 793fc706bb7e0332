//! The input of one run: objects from files, folders and standard input.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;

use crate::{
    error::{InputError, InputErrors, InputProblem},
    kustomization::{fields_beyond_the_folder, is_kustomization},
    list,
    location::{Located, Location, STANDARD_INPUT, Source},
    object::Object,
    yaml::{self, DocumentText, MAX_ERRORS},
};

/// The maximum size of a file, or of standard input, in bytes.
pub const MAX_FILE_BYTES: u64 = 32 << 20;

/// The maximum size of all texts that are kept for the lines of errors, in bytes. Errors of further texts have the number of the document
/// instead.
const MAX_KEPT_BYTES: usize = 8 << 20;

/// All objects of one run, in the order of the input.
#[derive(Debug, Default)]
pub struct Inputs {
    pub objects: Vec<Object>,
    /// All files that cannot be read, and all documents that are not Kubernetes objects.
    pub errors: Vec<InputError>,
    /// Files of a folder that were skipped although they change its meaning.
    pub warnings: Vec<Located>,
}

impl Inputs {
    /// Reads files, folders and `stdin`, for which the path is `-`. Of a folder, `*.yaml`, `*.yml` and `*.json` are read, sorted by name;
    /// subdirectories and a Kustomization, which lists the same files, are skipped.
    pub fn read(paths: &[PathBuf], stdin: impl Read) -> Self {
        let mut reader = Reader::default();
        let mut stdin = Some(stdin);
        for path in paths {
            if path.as_os_str() == "-" {
                match stdin.take() {
                    Some(stdin) => reader.stream(STANDARD_INPUT, stdin),
                    None => reader.fail(
                        Location::file(STANDARD_INPUT),
                        InputProblem::StandardInputTwice,
                    ),
                }
            } else {
                reader.path(path);
            }
        }
        reader.finish()
    }

    /// Reads the documents of a text, which errors call `file`.
    pub fn read_text(file: &str, text: &str) -> Self {
        let mut reader = Reader::default();
        reader.text(file, text);
        reader.finish()
    }

    /// Returns the input if it has no errors.
    ///
    /// # Errors
    /// All errors of the input.
    pub fn into_result(self) -> Result<Self, InputErrors> {
        if self.errors.is_empty() {
            Ok(self)
        } else {
            Err(InputErrors(self.errors))
        }
    }
}

#[derive(Default)]
struct Reader {
    objects: Vec<Object>,
    errors: Vec<InputError>,
    warnings: Vec<Located>,
    /// Whether the current file was found in a folder, and not given by name.
    is_of_folder: bool,
    budget: yaml::Budget,
    /// The size of the texts that are kept, in bytes.
    kept: usize,
    /// Whether the budget is exceeded, so that reading stops.
    is_full: bool,
}

impl Reader {
    fn finish(self) -> Inputs {
        Inputs {
            objects: self.objects,
            errors: self.errors,
            warnings: self.warnings,
        }
    }

    fn fail(&mut self, location: Location, problem: InputProblem) {
        match self.errors.len() {
            0..MAX_ERRORS => self.errors.push(InputError { location, problem }),
            MAX_ERRORS => self.errors.push(InputError {
                location: Location::file(location.file),
                problem: InputProblem::More,
            }),
            _ => {}
        }
    }

    fn path(&mut self, path: &Path) {
        if !path.is_dir() {
            return self.file(path);
        }
        match yaml_files_in(path) {
            Ok(files) if files.is_empty() => {
                self.fail(Location::file(shown(path)), InputProblem::EmptyFolder)
            }
            Ok(files) => files.iter().for_each(|file| self.file_of_folder(file)),
            Err(error) => self.fail(Location::file(shown(path)), InputProblem::Read(error)),
        }
    }

    /// Reads a file of a folder, unless it is a FIFO, from which reading could block forever.
    fn file_of_folder(&mut self, path: &Path) {
        match check_regular(path) {
            Ok(()) => {
                self.is_of_folder = true;
                self.file(path);
                self.is_of_folder = false;
            }
            Err(problem) => self.fail(Location::file(shown(path)), problem),
        }
    }

    fn file(&mut self, path: &Path) {
        match File::open(path) {
            Ok(file) => self.stream(&shown(path), file),
            Err(error) => self.fail(Location::file(shown(path)), InputProblem::Read(error)),
        }
    }

    fn stream(&mut self, name: &str, stream: impl Read) {
        match read_bounded(stream, MAX_FILE_BYTES) {
            Ok(text) => self.text(name, &text),
            Err(problem) => self.fail(Location::file(name), problem),
        }
    }

    fn text(&mut self, file: &str, text: &str) {
        if self.is_full {
            return;
        }
        let documents = yaml::read_within(text, &mut self.budget);
        // The budget does not suffice for the documents before it.
        let ends =
            |read: &Result<_, yaml::Error>| matches!(read, Err(error) if error.kind.ends_reading());
        if documents.iter().any(ends) {
            let end = documents.into_iter().find(ends).and_then(Result::err);
            return end.into_iter().for_each(|error| self.refuse(file, error));
        }
        let text = self.keep(text);
        for document in documents {
            match document {
                Ok(document) => {
                    let mut source = Source::new(file, document.number);
                    if let (Some(text), Some(part)) = (&text, document.part) {
                        source.text = DocumentText::new(text.clone(), part);
                    }
                    self.value(source, document.value);
                }
                Err(error) => self.refuse(file, error),
            }
        }
    }

    /// Keeps a text without its byte order mark, if the limit allows it.
    fn keep(&mut self, text: &str) -> Option<Arc<str>> {
        let text = yaml::without_mark(text);
        self.kept = self.kept.saturating_add(text.len());
        (self.kept <= MAX_KEPT_BYTES).then(|| text.into())
    }

    fn refuse(&mut self, file: &str, error: yaml::Error) {
        self.is_full |= error.kind.ends_reading();
        let location = Location::from(&Source::new(file, error.document));
        self.fail(location, InputProblem::Yaml(error));
    }

    fn value(&mut self, source: Source, value: Value) {
        let value = match list::unpack(value) {
            Ok(items) => {
                for (at, item) in items.into_iter().enumerate() {
                    self.value(source.item(at), item);
                }
                return;
            }
            Err(value) => value,
        };
        if self.is_full {
            return;
        }
        if is_kustomization(&source.file, &value) {
            return self.kustomization(&source, &value);
        }
        if value.get("items").is_some() {
            return self.fail(Location::from(&source), InputProblem::Items);
        }
        let header = size_of::<Object>() + source.file.len();
        if let Err(kind) = self.budget.take(header) {
            self.is_full = true;
            return self.fail(Location::from(&source), InputProblem::Memory(kind));
        }
        match Object::read(source, value) {
            Ok(object) => self.objects.push(object),
            Err(errors) => errors
                .into_iter()
                .for_each(|error| self.fail(error.location, error.problem)),
        }
    }

    /// Skips the Kustomization of a folder, whose files are read without it, and refuses one that was given by name.
    fn kustomization(&mut self, source: &Source, document: &Value) {
        let location = Location::from(source);
        if !self.is_of_folder {
            return self.fail(location, InputProblem::Kustomization);
        }
        let fields = fields_beyond_the_folder(document);
        if !fields.is_empty() {
            self.warnings.push(Located {
                location,
                message: format!(
                    "the Kustomization is not built, so its {} has no effect; pipe the output of `kubectl kustomize` into `-f -` instead",
                    fields.join(", ")
                ),
            });
        }
    }
}

/// Reads a text file with at most `limit` bytes.
///
/// # Errors
/// It is not a regular file, cannot be read, is larger, or is not UTF-8 text.
pub fn read_file(path: &Path, limit: u64) -> Result<String, InputProblem> {
    check_regular(path)?;
    read_bounded(File::open(path)?, limit)
}

/// Refuses anything but a regular file or a link to one. Opening a FIFO would block until another process writes to it.
///
/// # Errors
/// It is not a regular file, or does not exist.
pub fn check_regular(path: &Path) -> Result<(), InputProblem> {
    if path.metadata()?.is_file() {
        Ok(())
    } else {
        Err(InputProblem::NotAFile)
    }
}

fn read_bounded(stream: impl Read, limit: u64) -> Result<String, InputProblem> {
    let mut bytes = Vec::new();
    // One byte over the limit is enough, and a device can be endless.
    stream.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(InputProblem::TooLarge { limit });
    }
    String::from_utf8(bytes).map_err(|error| {
        let bytes = error.as_bytes();
        let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        InputProblem::NotUtf8 { utf16 }
    })
}

/// Returns the files of a folder that kubectl would read, sorted by name.
///
/// # Errors
/// The folder cannot be read.
pub fn yaml_files_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        // kubectl also reads a file whose whole name is `.yaml`.
        let ends = |ending: &&str| name.as_encoded_bytes().ends_with(ending.as_bytes());
        let readable = [".yaml", ".yml", ".json"].iter().any(ends);
        if readable && !path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
