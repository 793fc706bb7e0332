//! Reads bundles, which are untrusted.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    io::Read as _,
    path::Path,
};

use serde_json::Value;
use tar::{Archive, EntryType};
use thiserror::Error;
use trainyard_api::{error::InputProblem, inputs::check_regular, yaml};
use trainyard_model::{names::sha256_digest, text::clean};

use super::{
    FORM, INDEX, Index, JobEntry, MAX_BYTES, MAX_JSON_BYTES, MAX_TRAIN_JOBS, is_collected,
    most_bytes,
};
use crate::finding::Finding;

/// An invalid bundle.
#[derive(Debug, Error)]
#[error("{file}: {problem}")]
pub(crate) struct BundleError {
    /// The bundle.
    pub(crate) file: String,
    pub(crate) problem: BundleProblem,
}

/// The problem of an invalid bundle.
#[derive(Debug, Error)]
pub(crate) enum BundleProblem {
    #[error(transparent)]
    Read(#[from] InputProblem),
    #[error("is larger than {MAX_BYTES} bytes, the limit for a bundle")]
    TooLarge,
    #[error("is not a tar archive, or is damaged; record it again")]
    Tar,
    #[error("is not a Trainyard bundle: its first file is not `{INDEX}`")]
    NoIndex,
    #[error("`{INDEX}`: {0}")]
    Index(String),
    #[error(
        "has format version {0}, but this release reads version {FORM}; replay it with the release that recorded it"
    )]
    Form(u64),
    #[error(
        "has no rendering to replay, because `trainyard support-bundle` wrote it; record one with `trainyard explain trainjob/NAME --record`"
    )]
    Support,
    #[error("`{0}`: is not a file of a bundle")]
    Name(String),
    #[error("`{name}`: is {what}, but a bundle has only regular files")]
    Kind { name: String, what: &'static str },
    #[error("`{name}`: has {bytes} bytes, but at most {most} are allowed")]
    Size { name: String, bytes: u64, most: u64 },
    #[error("`{0}`: appears twice")]
    Twice(String),
    #[error("`{0}`: is incomplete, because the bundle is truncated; record or copy it again")]
    Cut(String),
    #[error("`{0}`: is not listed in `{INDEX}`")]
    NotListed(String),
    #[error("`{0}`: is listed in `{INDEX}` but missing; the bundle is truncated or was changed")]
    Missing(String),
    #[error("`{0}`: does not belong to a plugin or TrainJob of `{INDEX}`")]
    Unused(String),
    #[error("`{0}`: belongs to two plugins or TrainJobs of `{INDEX}`, or twice to one")]
    Shared(String),
    #[error("`{name}`: has the recorded values but not the recorded bytes; it was changed")]
    Respelled { name: String },
    #[error(
        "`{name}`: has the digest {found}, but `{INDEX}` lists {listed}; it was changed or damaged"
    )]
    Digest {
        name: String,
        found: String,
        listed: String,
    },
    #[error("`{name}`: {problem}")]
    Json { name: String, problem: String },
}

/// A bundle in memory that matches its index.
#[derive(Debug)]
pub(crate) struct Bundle {
    /// The file that it was read from.
    pub(crate) file: String,
    pub(crate) index: Index,
    files: BTreeMap<String, Vec<u8>>,
}

impl Finding for BundleError {}

impl Bundle {
    /// Reads and checks a bundle. Its plugins are not loaded.
    pub(crate) fn read(path: &Path) -> Result<Self, BundleError> {
        let file = clean(&path.display().to_string());
        let read = || {
            let bytes = bytes_of(path)?;
            let mut files = entries(&bytes)?;
            let index = index(files.remove(INDEX).as_deref().unwrap_or_default())?;
            check(&index, &files)?;
            Ok((index, files))
        };
        match read() {
            Ok((index, files)) => Ok(Self { file, index, files }),
            Err(problem) => Err(BundleError { file, problem }),
        }
    }

    /// Removes a file from the bundle and returns its content.
    pub(crate) fn take(&mut self, name: &str) -> Result<Vec<u8>, BundleError> {
        let content = self.files.remove(name);
        content.ok_or_else(|| self.error(BundleProblem::Missing(clean(name))))
    }

    /// Returns the digest of a file that the index lists.
    pub(crate) fn digest(&self, name: &str) -> &str {
        let listed = self.index.files.get(name);
        listed.map_or("", |entry| &entry.digest)
    }

    /// Removes a JSON file from the bundle and returns its value, within the budget of input.
    pub(crate) fn take_json(&mut self, name: &str) -> Result<Value, BundleError> {
        let content = self.take(name)?;
        self.json(name, &content)
    }

    /// Parses the content of a JSON file, within the budget of input.
    pub(crate) fn json(&self, name: &str, content: &[u8]) -> Result<Value, BundleError> {
        let text = str::from_utf8(content).map_err(|error| error.to_string());
        let value = text.and_then(|text| {
            yaml::read_json(text).map_err(|error| {
                format!(
                    "line {}, column {}: {}",
                    error.line, error.column, error.kind
                )
            })
        });
        value.map_err(|problem| {
            let name = clean(name);
            self.error(BundleProblem::Json { name, problem })
        })
    }

    /// Returns an error of this bundle.
    pub(crate) fn error(&self, problem: BundleProblem) -> BundleError {
        BundleError {
            file: self.file.clone(),
            problem,
        }
    }
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, BundleProblem> {
    check_regular(path)?;
    let file = std::fs::File::open(path).map_err(InputProblem::from)?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(InputProblem::from)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(BundleProblem::TooLarge);
    }
    Ok(bytes)
}

/// Returns the files of the archive. Extensions of tar, such as long names, links and sparse files, are refused.
fn entries(bytes: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, BundleProblem> {
    let damaged = |_: std::io::Error| BundleProblem::Tar;
    let mut archive = Archive::new(bytes);
    let mut files = BTreeMap::new();
    for entry in archive.entries().map_err(damaged)?.raw(true) {
        let mut entry = entry.map_err(damaged)?;
        let name = clean(&String::from_utf8_lossy(&entry.path_bytes()));
        if let Some(what) = not_regular(entry.header().entry_type()) {
            return Err(BundleProblem::Kind { name, what });
        }
        let most = match files.is_empty() {
            true if name == INDEX => MAX_JSON_BYTES,
            true => return Err(BundleProblem::NoIndex),
            false if name == INDEX => return Err(BundleProblem::Twice(name)),
            false => most_bytes(&name).ok_or_else(|| BundleProblem::Name(name.clone()))?,
        };
        let bytes = entry.header().entry_size().map_err(damaged)?;
        if bytes > most {
            return Err(BundleProblem::Size { name, bytes, most });
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(damaged)?;
        if content.len() as u64 != bytes {
            return Err(BundleProblem::Cut(name));
        }
        match files.entry(name) {
            Entry::Vacant(entry) => _ = entry.insert(content),
            Entry::Occupied(entry) => return Err(BundleProblem::Twice(entry.key().clone())),
        }
    }
    if files.is_empty() {
        return Err(BundleProblem::NoIndex);
    }
    Ok(files)
}

/// Returns what an entry is if it is not a regular file.
fn not_regular(kind: EntryType) -> Option<&'static str> {
    Some(match kind {
        EntryType::Regular => return None,
        EntryType::Symlink => "a symbolic link",
        EntryType::Link => "a hard link",
        EntryType::Directory => "a directory",
        EntryType::Char | EntryType::Block | EntryType::Fifo => "a device or a pipe",
        _ => "an extension of tar",
    })
}

fn index(bytes: &[u8]) -> Result<Index, BundleProblem> {
    let wrong = |problem: String| BundleProblem::Index(clean(&problem));
    let text = str::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
    let value = yaml::read_json(text).map_err(|error| wrong(error.kind.to_string()))?;
    match value.get("form").and_then(Value::as_u64) {
        Some(form) if form == u64::from(FORM) => {}
        Some(form) => return Err(BundleProblem::Form(form)),
        None => return Err(wrong("`form` is missing".to_owned())),
    }
    let index: Index = serde_path_to_error::deserialize(value)
        .map_err(|error| wrong(format!("{}: {}", error.path(), error.inner())))?;
    if index.train_jobs.is_empty() && index.files.keys().any(|name| is_collected(name)) {
        return Err(BundleProblem::Support);
    }
    if index.train_jobs.is_empty() || index.train_jobs.len() > MAX_TRAIN_JOBS {
        return Err(wrong(format!(
            "trainJobs: must have 1 to {MAX_TRAIN_JOBS} entries, has {}",
            index.train_jobs.len()
        )));
    }
    Ok(index)
}

/// Checks that the files are those that the index lists, and that the index uses each of them once.
fn check(index: &Index, files: &BTreeMap<String, Vec<u8>>) -> Result<(), BundleProblem> {
    for (name, content) in files {
        let listed = index.files.get(name);
        let listed = listed.ok_or_else(|| BundleProblem::NotListed(name.clone()))?;
        let found = sha256_digest(content);
        if listed.bytes != content.len() as u64 || listed.digest != found {
            return Err(BundleProblem::Digest {
                name: name.clone(),
                found,
                listed: clean(&listed.digest),
            });
        }
    }
    let of_jobs = index.train_jobs.iter();
    let of_jobs = of_jobs
        .flat_map(|job: &JobEntry| [&job.train_job, &job.runtime, &job.lookups, &job.output]);
    let of_plugins = index.plugins.iter().map(|plugin| &plugin.file);
    let mut used = BTreeSet::new();
    for name in of_jobs.chain(of_plugins) {
        if !used.insert(name) {
            return Err(BundleProblem::Shared(clean(name)));
        }
    }
    let mut needed = index.files.keys().chain(used.iter().copied());
    if let Some(missing) = needed.find(|name| !files.contains_key(*name)) {
        return Err(BundleProblem::Missing(clean(missing)));
    }
    let is_unused = |name: &&String| !used.contains(name) && !is_collected(name);
    match files.keys().find(is_unused) {
        Some(unused) => Err(BundleProblem::Unused(clean(unused))),
        None => Ok(()),
    }
}
