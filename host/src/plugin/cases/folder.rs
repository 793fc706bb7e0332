//! Finds the cases in a directory, and reads them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use trainyard_api::{
    InputError, Inputs, Location, Object,
    inputs::{self, MAX_FILE_BYTES},
};
use trainyard_model::text::{MAX_LINE, clean, clean_to};

use crate::{
    output,
    report::ErrorList,
    runtimes::{Runtime, shipped},
};

/// The file with the objects that a case is rendered to.
pub(in crate::plugin) const OBJECTS: &str = "expected.yaml";
/// The file with the errors of a case that is refused.
pub(in crate::plugin) const REFUSAL: &str = "expected.txt";
/// The file with the warnings of a case that is not refused.
pub(in crate::plugin) const WARNINGS: &str = "warnings.txt";
/// The directory of a case with the expected files for each shipped runtime.
pub(in crate::plugin) const RUNTIMES: &str = "runtimes";
/// The end of the name of the directory with the expected files of a case that is a single file.
const BESIDE: &str = ".expected";

/// A case: a file or a directory of files.
pub(in crate::plugin) struct Case {
    /// Its name in the directory of cases.
    pub(in crate::plugin) name: String,
    /// The files with its input.
    files: Vec<PathBuf>,
    /// The directory of its expected files.
    expected: PathBuf,
}

/// The input of a case.
pub(super) struct Read {
    pub(super) objects: Vec<Object>,
    pub(super) errors: ErrorList,
    pub(super) warnings: Vec<String>,
}

/// Returns the cases in a directory, by name.
pub(super) fn find(folder: &Path) -> Result<Vec<Case>, ErrorList> {
    let shown = output::path(folder);
    let failed = |problem: String| ErrorList::from_iter([format!("{shown}: {problem}")]);
    let paths = entries(folder).map_err(|error| {
        failed(format!(
            "the directory of cases cannot be read: {error}; pass another one with --cases"
        ))
    })?;
    let (mut cases, mut failure) = (Vec::new(), ErrorList::default());
    for path in paths {
        let name = file_name(&path);
        let case = match (path.is_dir(), is_input(&path)) {
            _ if name.starts_with('.') => continue,
            (true, _) if name.ends_with(BESIDE) => continue,
            (true, _) => Case::of_folder(&path, name),
            (false, true) => Case::of_file(folder, path, name),
            (false, false) => continue,
        };
        match case {
            Ok(case) => cases.push(case),
            Err(problem) => failure.add(problem),
        }
    }
    if cases.is_empty() && failure.is_empty() {
        return Err(failed(
            "has no cases; write a TrainJob and its runtime to NAME/input.yaml in it".to_owned(),
        ));
    }
    failure.or_ok(cases)
}

impl Case {
    fn of_file(folder: &Path, file: PathBuf, name: String) -> Result<Self, String> {
        let expected = folder.join(format!("{name}{BESIDE}"));
        check_readable(&file)?;
        check_runtimes(&expected.join(RUNTIMES))?;
        Ok(Self {
            name: clean(&name),
            files: vec![file],
            expected,
        })
    }

    fn of_folder(folder: &Path, name: String) -> Result<Self, String> {
        let shown = output::path(folder);
        let files = entries(folder).map_err(|error| format!("{shown}: {error}"))?;
        let is_expected = |file: &Path| file_name(file) == OBJECTS;
        let files: Vec<_> = files
            .into_iter()
            .filter(|file| is_input(file) && !is_expected(file) && !file.is_dir())
            .collect();
        if files.is_empty() {
            return Err(format!(
                "{shown}: the case has no input; write a TrainJob and its runtime to input.yaml in it, or remove the directory"
            ));
        }
        files.iter().try_for_each(|file| check_readable(file))?;
        check_runtimes(&folder.join(RUNTIMES))?;
        Ok(Self {
            name: clean(&name),
            files,
            expected: folder.to_owned(),
        })
    }

    /// Returns the directory of the expected files, with the case's own runtimes or with a shipped one.
    pub(in crate::plugin) fn expected(&self, runtime: Option<&str>) -> PathBuf {
        match runtime {
            None => self.expected.clone(),
            Some(name) => self.expected.join(RUNTIMES).join(name),
        }
    }

    /// Whether the case is expected to be refused.
    pub(super) fn is_refused(&self) -> bool {
        self.expected.join(REFUSAL).exists()
    }

    /// Whether the case is expected to be refused with a shipped runtime.
    pub(super) fn is_refused_on_shipped(&self) -> bool {
        let refusal = |runtime: &Runtime| self.expected(Some(runtime.name)).join(REFUSAL);
        shipped().iter().any(|runtime| refusal(runtime).exists())
    }

    /// Reads the input. Errors and warnings have the names of the files without their directory, so that they are the same everywhere.
    pub(super) fn read(&self) -> Read {
        let mut read = Read {
            objects: Vec::new(),
            errors: ErrorList::default(),
            warnings: Vec::new(),
        };
        for file in &self.files {
            let name = file_name(file);
            match inputs::read_file(file, MAX_FILE_BYTES) {
                Ok(text) => {
                    let Inputs {
                        objects,
                        errors,
                        warnings,
                    } = Inputs::read_text(&name, &text);
                    read.objects.extend(objects);
                    errors.iter().for_each(|error| read.errors.add(error));
                    let warnings = warnings.iter().map(ToString::to_string);
                    read.warnings
                        .extend(warnings.map(|line| clean_to(&line, MAX_LINE)));
                }
                Err(problem) => read.errors.add(InputError {
                    location: Location::file(name),
                    problem,
                }),
            }
        }
        read
    }
}

/// Refuses expected files of runtimes that are not shipped, which nothing would compare.
fn check_runtimes(folder: &Path) -> Result<(), String> {
    let is_unknown = |path: &&PathBuf| {
        let name = file_name(path);
        !shipped().iter().any(|runtime| runtime.name == name)
    };
    // It need not exist.
    let entries = entries(folder).unwrap_or_default();
    entries.iter().find(is_unknown).map_or(Ok(()), |path| {
        Err(format!(
            "{}: no shipped runtime has this name; remove the directory, or rename it to one that `trainyard runtimes` lists",
            output::path(path)
        ))
    })
}

/// Returns the entries of a directory, sorted.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn is_input(path: &Path) -> bool {
    let known = ["yaml", "yml", "json"];
    path.extension()
        .is_some_and(|ending| known.iter().any(|known| ending == *known))
}

/// Checks that a file of an input can be read: otherwise the error would be what the case expects.
fn check_readable(file: &Path) -> Result<(), String> {
    let failed = |problem: String| format!("{}: {problem}", output::path(file));
    match fs::metadata(file) {
        // Opening another kind of file, such as a pipe, may wait for ever.
        Ok(metadata) if metadata.is_file() => fs::File::open(file)
            .map(drop)
            .map_err(|error| failed(format!("cannot be read: {error}"))),
        Ok(_) => Err(failed("is not a regular file; remove it".to_owned())),
        Err(error) => Err(failed(format!("cannot be read: {error}"))),
    }
}
