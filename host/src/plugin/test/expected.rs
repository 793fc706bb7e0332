//! Compares a rendering with its expected files, and writes them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;
use trainyard_api::{error::InputProblem, inputs, yaml};
use trainyard_model::text::clean;

use crate::{
    field_changes::{FieldChange, Found, changes, objects_of},
    output,
    plugin::cases::{OBJECTS, REFUSAL, RUNTIMES, RenderedJob, Rendering, WARNINGS},
    report::ErrorList,
};

/// The names of the expected files.
const NAMES: [&str; 3] = [REFUSAL, OBJECTS, WARNINGS];

/// The largest expected file that is read, in bytes.
const MOST: u64 = 64 << 20;

/// A rendering beside its expected files.
pub(super) struct Comparison {
    folder: PathBuf,
    /// What the files have to be.
    files: BTreeMap<&'static str, String>,
    pub(super) differences: Vec<FileDifference>,
}

/// An expected file that differs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileDifference {
    /// The file.
    pub(super) file: String,
    #[serde(flatten)]
    pub(super) kind: DifferenceKind,
}

/// How a file differs.
#[derive(Serialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub(super) enum DifferenceKind {
    /// It does not exist.
    Missing,
    /// It exists, but the rendering has no such result.
    NotExpected,
    /// It cannot be read.
    Unreadable { problem: String },
    /// It has other fields.
    Fields { fields: Vec<FieldChange> },
    /// It has other lines.
    Lines {
        /// The lines that only the file has.
        expected: Vec<String>,
        /// The lines that only the result has.
        found: Vec<String>,
    },
}

impl Comparison {
    /// Compares a rendering with its files.
    pub(super) fn of(rendering: &Rendering<'_>) -> Self {
        let folder = rendering.case.expected(rendering.runtime);
        let files = rendering.files();
        let mut differences = Vec::new();
        for name in NAMES {
            let path = folder.join(name);
            let found = files.get(name);
            let kind = match (read(&path), found) {
                (Ok(None), None) => continue,
                (Ok(None), Some(_)) => DifferenceKind::Missing,
                (Ok(Some(_)), None) => DifferenceKind::NotExpected,
                (Ok(Some(expected)), Some(found)) if expected == *found => continue,
                (Ok(Some(expected)), Some(found)) => differ(name, &expected, found, rendering),
                (Err(problem), _) => DifferenceKind::Unreadable {
                    problem: problem.to_string(),
                },
            };
            differences.push(FileDifference {
                file: output::path(&path),
                kind,
            });
        }
        Self {
            folder,
            files,
            differences,
        }
    }
}

/// Returns how two texts of an expected file differ.
fn differ(name: &str, expected: &str, found: &str, rendering: &Rendering<'_>) -> DifferenceKind {
    if name == OBJECTS {
        return match object_changes(expected, &rendering.jobs) {
            Ok(fields) if fields.is_empty() => lines(expected, found),
            Ok(fields) => DifferenceKind::Fields { fields },
            Err(problem) => DifferenceKind::Unreadable { problem },
        };
    }
    lines(expected, found)
}

/// Returns the fields that differ between the documents of an expected file and the result of these TrainJobs. Empty if only the notation
/// differs.
///
/// # Errors
/// Why the expected file cannot be read.
fn object_changes(expected: &str, jobs: &[RenderedJob]) -> Result<Vec<FieldChange>, String> {
    let documents = yaml::read(expected).into_iter();
    let expected = documents
        .map(|document| document.map(|document| document.value))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| clean(&error.to_string()))?;
    let expected: Vec<&Value> = expected.iter().collect();
    let found = jobs.iter().flat_map(|job| objects_of(&job.rendered));
    let found: Vec<Found<'_>> = found.collect();
    Ok(changes(&expected, &found))
}

/// Returns the lines that only one of two texts has, or else the first line that differs.
fn lines(expected: &str, found: &str) -> DifferenceKind {
    let only = |one: &str, other: &str| {
        let others: BTreeSet<&str> = other.lines().collect();
        let lines = one.lines().filter(|line| !others.contains(line));
        lines.map(clean).collect::<Vec<_>>()
    };
    let (mut of_expected, mut of_found) = (only(expected, found), only(found, expected));
    if of_expected.is_empty() && of_found.is_empty() {
        let pairs = expected.lines().zip(found.lines());
        for (one, other) in pairs.filter(|(one, other)| one != other).take(1) {
            (of_expected, of_found) = (vec![clean(one)], vec![clean(other)]);
        }
    }
    DifferenceKind::Lines {
        expected: of_expected,
        found: of_found,
    }
}

/// Reads an expected file. `None` if it does not exist.
fn read(path: &Path) -> Result<Option<String>, InputProblem> {
    match inputs::read_file(path, MOST) {
        Ok(text) => Ok(Some(text)),
        Err(InputProblem::Read(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// Writes the files that differ, and removes those that are not expected. Returns their number.
pub(super) fn write<'c>(all: impl Iterator<Item = &'c Comparison>) -> Result<usize, ErrorList> {
    let all: Vec<_> = all.filter(|one| !one.differences.is_empty()).collect();
    all.iter().try_for_each(|one| check_within(&one.folder))?;
    let mut changed = 0;
    for Comparison {
        folder,
        files,
        differences,
    } in all
    {
        for name in NAMES {
            let path = folder.join(name);
            let failed = |error: io::Error| {
                ErrorList::from_iter([format!("{}: {error}", output::path(&path))])
            };
            match files.get(name) {
                Some(text) => {
                    fs::create_dir_all(folder).map_err(failed)?;
                    output::replace(&path, text.as_bytes()).map_err(failed)?;
                }
                None => match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(failed(error));
                    }
                    _ => {}
                },
            }
        }
        if files.is_empty() {
            // It may have other files.
            let _ = fs::remove_dir(folder);
        }
        changed += differences.len();
    }
    Ok(changed)
}

/// Checks that a directory of expected files is not a link to another place, nor in one: cases of others may have such links.
fn check_within(folder: &Path) -> Result<(), ErrorList> {
    let is_of_runtime = folder
        .parent()
        .and_then(Path::file_name)
        .is_some_and(|name| name == RUNTIMES);
    // Up to the directory of the cases.
    let levels = if is_of_runtime { 4 } else { 2 };
    for directory in folder.ancestors().take(levels) {
        let metadata = fs::symlink_metadata(directory);
        if metadata.is_ok_and(|metadata| metadata.is_symlink()) {
            let shown = output::path(directory);
            let problem =
                "is a symbolic link, and nothing is written through it; replace it by a directory";
            return Err(ErrorList::from_iter([format!("{shown}: {problem}")]));
        }
    }
    Ok(())
}
