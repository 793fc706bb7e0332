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

/// An invalid bundle.
#[derive(Debug, Error)]
#[error("{file}: {problem}")]
pub struct BundleError {
    /// The bundle.
    pub file: String,
    /// What is wrong with it.
    pub problem: BundleProblem,
}

/// The problem of an invalid bundle.
#[derive(Debug, Error)]
pub enum BundleProblem {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] InputProblem),
    /// It is too large.
    #[error("is larger than {MAX_BYTES} bytes, the limit for a bundle")]
    TooLarge,
    /// It is not an archive.
    #[error("is not a tar archive, or is damaged; record it again")]
    Tar,
    /// It is another archive.
    #[error("is not a Trainyard bundle: its first file is not `{INDEX}`")]
    NoIndex,
    /// The index is invalid, for this reason.
    #[error("`{INDEX}`: {0}")]
    Index(String),
    /// It has a format version that this release does not read.
    #[error(
        "has format version {0}, but this release reads version {FORM}; replay it with the release that recorded it"
    )]
    Form(u64),
    /// It is a support bundle.
    #[error(
        "has no rendering to replay, because `trainyard support-bundle` wrote it; record one with `trainyard explain trainjob/NAME --record`"
    )]
    Support,
    /// A bundle has no file of this name.
    #[error("`{0}`: is not a file of a bundle")]
    Name(String),
    /// A file is not regular.
    #[error("`{name}`: is {what}, but a bundle has only regular files")]
    Kind { name: String, what: &'static str },
    /// A file is too large.
    #[error("`{name}`: has {bytes} bytes, but at most {most} are allowed")]
    Size { name: String, bytes: u64, most: u64 },
    /// Two files have this name.
    #[error("`{0}`: appears twice")]
    Twice(String),
    /// The archive ends within this file.
    #[error("`{0}`: is incomplete, because the bundle is truncated; record or copy it again")]
    Cut(String),
    /// The index does not list this file.
    #[error("`{0}`: is not listed in `{INDEX}`")]
    NotListed(String),
    /// The archive does not have this file.
    #[error("`{0}`: is listed in `{INDEX}` but missing; the bundle is truncated or was changed")]
    Missing(String),
    /// The index lists this file and does not use it.
    #[error("`{0}`: does not belong to a plugin or TrainJob of `{INDEX}`")]
    Unused(String),
    /// The index uses this file twice.
    #[error("`{0}`: belongs to two plugins or TrainJobs of `{INDEX}`, or twice to one")]
    Shared(String),
    /// An output is spelled differently than it was recorded.
    #[error("`{name}`: has the recorded values but not the recorded bytes; it was changed")]
    Respelled { name: String },
    /// A file has another content than the index lists.
    #[error(
        "`{name}`: has the digest {found}, but `{INDEX}` lists {listed}; it was changed or damaged"
    )]
    Digest {
        name: String,
        found: String,
        listed: String,
    },
    /// A file is not JSON, or not what it is used for.
    #[error("`{name}`: {problem}")]
    Json { name: String, problem: String },
}

/// A bundle in memory that matches its index.
#[derive(Debug)]
pub struct Bundle {
    /// The file that it was read from.
    pub file: String,
    /// Its index.
    pub index: Index,
    files: BTreeMap<String, Vec<u8>>,
}

impl Bundle {
    /// Reads and checks a bundle. Its plugins are not loaded.
    ///
    /// # Errors
    /// A file that cannot be read or is not a bundle.
    pub fn read(path: &Path) -> Result<Self, BundleError> {
        let file = clean(&path.display().to_string());
        match bytes_of(path) {
            Ok(bytes) => Self::parse(file, &bytes),
            Err(problem) => Err(BundleError { file, problem }),
        }
    }

    /// Parses and checks the bytes of a bundle.
    ///
    /// # Errors
    /// Bytes that are not a bundle.
    pub fn parse(file: String, bytes: &[u8]) -> Result<Self, BundleError> {
        let parse = || {
            let mut files = entries(bytes)?;
            let index = index(files.remove(INDEX).as_deref().unwrap_or_default())?;
            check(&index, &files)?;
            Ok((index, files))
        };
        match parse() {
            Ok((index, files)) => Ok(Self { file, index, files }),
            Err(problem) => Err(BundleError { file, problem }),
        }
    }

    /// Removes a file from the bundle and returns its content.
    ///
    /// # Errors
    /// A file that the bundle does not have.
    pub fn take(&mut self, name: &str) -> Result<Vec<u8>, BundleError> {
        let content = self.files.remove(name);
        content.ok_or_else(|| self.error(BundleProblem::Missing(clean(name))))
    }

    /// Returns the digest of a file that the index lists.
    #[must_use]
    pub fn digest(&self, name: &str) -> &str {
        let listed = self.index.files.get(name);
        listed.map_or("", |entry| &entry.digest)
    }

    /// Removes a JSON file from the bundle and returns its value, within the budget of input.
    ///
    /// # Errors
    /// A file that the bundle does not have or that is not JSON.
    pub fn take_json(&mut self, name: &str) -> Result<Value, BundleError> {
        let content = self.take(name)?;
        self.json(name, &content)
    }

    /// Parses the content of a JSON file, within the budget of input.
    ///
    /// # Errors
    /// Content that is not JSON or is too large.
    pub fn json(&self, name: &str, content: &[u8]) -> Result<Value, BundleError> {
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
    #[must_use]
    pub fn error(&self, problem: BundleProblem) -> BundleError {
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
