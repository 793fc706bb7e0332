//! A folder in the OCI image layout, such as one that a site without a network gets. Nothing in it is used without its digest.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use trainyard_text::{clean, listed};

use crate::{
    artifact::{Blob, Manifest},
    digest::Digest,
    error::{LayoutError, Problem},
    index::{self, Listed, NAME},
    limits::MANIFEST_BYTES,
    regular_file,
};

const MARKER: &str = "oci-layout";
/// The content of the marker.
const VERSION: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;
const INDEX: &str = "index.json";
const BLOBS: &str = "blobs/sha256";
/// How long to wait before another attempt to lock the index.
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// The most names in an error.
const NAMES: usize = 8;

/// A folder.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    folder: PathBuf,
}

impl Layout {
    pub(crate) fn new(folder: &Path) -> Self {
        let folder = folder.to_owned();
        Self { folder }
    }

    /// Creates the folder, if it does not exist.
    pub(crate) async fn create(&self) -> Result<(), Problem> {
        let blobs = self.folder.join(BLOBS);
        fs::create_dir_all(&blobs).map_err(|source| io_error(&blobs, source))?;
        let marker = self.folder.join(MARKER);
        if !marker.exists() {
            // Another process may be as fast, and hold the lock already.
            let file = self.unfinished(&marker, VERSION);
            let written = file.and_then(|file| Ok(file.persist_noclobber(&marker)?));
            let is_new = |error: &io::Error| error.kind() != io::ErrorKind::AlreadyExists;
            if let Some(source) = written.err().filter(is_new) {
                return Err(io_error(&marker, source).into());
            }
        }
        let _lock = self.lock().await?;
        if !self.folder.join(INDEX).exists() {
            self.write_index(&[])?;
        }
        Ok(())
    }

    /// Returns what its index lists.
    pub(crate) fn entries(&self) -> Result<Vec<Listed>, LayoutError> {
        let failure = |what| LayoutError::NotALayout {
            folder: self.folder.clone(),
            what,
        };
        if !self.folder.join(MARKER).exists() {
            return Err(failure(MARKER));
        }
        let path = self.folder.join(INDEX);
        let bytes = read(&path, MANIFEST_BYTES)?;
        index::parse(&bytes).map_err(|_| failure(INDEX))
    }

    /// Returns the manifest with that name or digest, or the only one that has a name.
    pub(crate) fn find(
        &self,
        name: Option<&str>,
        digest: Option<&Digest>,
    ) -> Result<Manifest, Problem> {
        let entries = self.entries()?;
        // What was copied by its digest has the digest in its name.
        let with_digest = name.zip(digest);
        let with_digest = with_digest.map(|(name, digest)| format!("{name}@{digest}"));
        let fits = |entry: &&Listed| {
            let is_named = |name| entry.name() == Some(name);
            (name.is_none_or(is_named) || with_digest.as_deref().is_some_and(is_named))
                && digest.is_none_or(|digest| entry.digest == digest.as_str())
                && (name.is_some() || digest.is_some() || entry.name().is_some())
        };
        let mut fitting = entries.iter().filter(fits);
        let found = fitting.next();
        let is_one = fitting.all(|other| Some(&other.digest) == found.map(|found| &found.digest));
        let names = || {
            let names: Vec<_> = entries.iter().filter_map(Listed::name).map(clean).collect();
            if names.is_empty() {
                "none".to_owned()
            } else {
                listed(&names, NAMES)
            }
        };
        match found {
            Some(entry) if is_one => self.manifest(&entry.blob()?),
            Some(_) => Err(LayoutError::Several { names: names() }.into()),
            None => {
                let digest = digest.map(Digest::to_string);
                let wanted = name
                    .map(clean)
                    .or(digest)
                    .unwrap_or_else(|| "with a name".to_owned());
                Err(LayoutError::NotFound {
                    wanted,
                    names: names(),
                }
                .into())
            }
        }
    }

    /// Returns a manifest that the index lists.
    pub(crate) fn manifest(&self, blob: &Blob) -> Result<Manifest, Problem> {
        let bytes = self.content(&blob.digest, MANIFEST_BYTES)?;
        Ok(Manifest::parse(bytes, Some(&blob.media_type))?)
    }

    /// Returns the content with a digest.
    pub(crate) fn content(&self, digest: &Digest, limit: u64) -> Result<Vec<u8>, LayoutError> {
        let path = self.path(digest);
        let bytes = read(&path, limit)?;
        let found = Digest::of(&bytes);
        if found == *digest {
            Ok(bytes)
        } else {
            Err(LayoutError::Damaged { path, found })
        }
    }

    pub(crate) fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(BLOBS).join(digest.hex())
    }

    /// Writes content under its digest.
    pub(crate) fn put(&self, bytes: &[u8]) -> Result<(), LayoutError> {
        let digest = Digest::of(bytes);
        if self.content(&digest, bytes.len() as u64).is_ok() {
            return Ok(());
        }
        self.write(&format!("{BLOBS}/{}", digest.hex()), bytes)
    }

    /// Writes a manifest, and lists it: under a name that no other has then, or without a name as what refers to another. Nothing of what it
    /// says itself is in the list, which all plugins of the folder share.
    pub(crate) async fn put_manifest(
        &self,
        manifest: &Manifest,
        name: Option<&str>,
    ) -> Result<(), Problem> {
        self.put(&manifest.bytes)?;
        let _lock = self.lock().await?;
        let mut entries = self.entries()?;
        entries.retain(|entry| match name {
            Some(name) => entry.name() != Some(name),
            None => entry.digest != manifest.digest.as_str() || entry.name().is_some(),
        });
        let annotations = name.map(|name| [(NAME.to_owned(), name.to_owned())].into());
        entries.push(Listed {
            annotations,
            ..Listed::of(manifest)
        });
        self.write_index(&entries)
    }

    /// Returns the search for what refers to a manifest.
    pub(crate) fn referrers(&self, digest: &Digest) -> Result<Referrers<'_>, Problem> {
        Ok(Referrers {
            layout: self,
            digest: digest.clone(),
            rest: Box::new(index::manifests(self.entries()?)),
        })
    }

    /// Removes the plugins whose file is not to be kept, with what refers to them, and the content that nothing needs. What was written less
    /// than a time ago stays, because another process may be about to list it. Returns how many plugins were removed.
    pub(crate) async fn retain(
        &self,
        is_kept: impl Fn(&Digest) -> bool,
        younger: Duration,
    ) -> Result<usize, Problem> {
        let _lock = self.lock().await?;
        let entries = self.entries()?;
        let all = entries.len();
        let mut needed = BTreeSet::new();
        let mut plugins = BTreeSet::new();
        let (named, others): (Vec<_>, Vec<_>) = entries
            .into_iter()
            .partition(|entry| entry.name().is_some());
        let before = named.len();
        let mut kept: Vec<_> = named
            .into_iter()
            .filter(|entry| {
                let Some(blobs) = self.needs(entry) else {
                    return false;
                };
                let stays = |digest| is_kept(digest) || self.is_younger(digest, younger);
                let remains = blobs.iter().any(stays);
                if remains {
                    plugins.insert(entry.digest.clone());
                    needed.extend(blobs);
                }
                remains
            })
            .collect();
        let removed = before - kept.len();
        kept.extend(others.into_iter().filter(|entry| {
            let subject = entry.blob().ok().and_then(|blob| self.manifest(&blob).ok());
            let subject = subject.and_then(|manifest| manifest.subject());
            let remains = subject.is_some_and(|subject| plugins.contains(&subject));
            if remains {
                needed.extend(self.needs(entry).into_iter().flatten());
            }
            remains
        }));
        if kept.len() < all {
            self.write_index(&kept)?;
        }
        self.remove_others(&needed, younger)?;
        Ok(removed)
    }

    /// Notes that content is used, so that no other process removes it now. A folder that is read-only is not cleaned up either.
    pub(crate) fn mark_used(&self, digest: &Digest) {
        let file = fs::File::options().write(true).open(self.path(digest));
        let marked = file.and_then(|file| file.set_modified(SystemTime::now()));
        if let Err(error) = marked {
            tracing::debug!(%digest, %error, "a stored plugin cannot be marked as used");
        }
    }

    /// Returns the digests of a manifest and of all that it names; `None` if it cannot be read.
    fn needs(&self, entry: &Listed) -> Option<Vec<Digest>> {
        let manifest = self.manifest(&entry.blob().ok()?).ok()?;
        let blobs = manifest.blobs().ok()?.into_iter();
        let own = std::iter::once(manifest.digest.clone());
        Some(own.chain(blobs.map(|blob| blob.digest)).collect())
    }

    /// Removes the files of content that is not needed. Whatever else is there is not ours.
    fn remove_others(
        &self,
        needed: &BTreeSet<Digest>,
        younger: Duration,
    ) -> Result<(), LayoutError> {
        let folder = self.folder.join(BLOBS);
        let failed = |source| io_error(&folder, source);
        // A link could lead to other files.
        if !fs::symlink_metadata(&folder).map_err(failed)?.is_dir() {
            return Err(failed(io::Error::from(io::ErrorKind::NotADirectory)));
        }
        for file in fs::read_dir(&folder).map_err(failed)? {
            let file = file.map_err(failed)?;
            let (name, path) = (file.file_name(), file.path());
            let is_needed = needed.iter().any(|digest| name == digest.hex());
            let is_ours = file.file_type().map_err(failed)?.is_file() && is_content(&name);
            if is_needed || !is_ours || is_younger(&path, younger) {
                continue;
            }
            fs::remove_file(&path).map_err(|source| io_error(&path, source))?;
        }
        Ok(())
    }

    fn is_younger(&self, digest: &Digest, than: Duration) -> bool {
        is_younger(&self.path(digest), than)
    }

    /// Waits until no other process writes the list.
    async fn lock(&self) -> Result<fs::File, LayoutError> {
        let path = self.folder.join(MARKER);
        // A network file system lets only those lock a file that may write it.
        let file = fs::File::options().read(true).write(true).open(&path);
        let file = file.map_err(|source| io_error(&path, source))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(fs::TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
                Err(fs::TryLockError::Error(source)) => return Err(io_error(&path, source)),
            }
        }
    }

    fn write_index(&self, entries: &[Listed]) -> Result<(), Problem> {
        Ok(self.write(INDEX, &index::write(entries)?)?)
    }

    /// Replaces a file as a whole.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), LayoutError> {
        let path = self.folder.join(name);
        let file = self.unfinished(&path, bytes);
        let written = file.and_then(|file| Ok(file.persist(&path)?));
        written.map_err(|source| io_error(&path, source)).map(drop)
    }

    /// Writes a file that does not have its name yet.
    fn unfinished(&self, path: &Path, bytes: &[u8]) -> io::Result<tempfile::NamedTempFile> {
        let folder = path.parent().unwrap_or(&self.folder);
        let mut file = tempfile::Builder::new();
        file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
        let mut file = file.prefix(UNFINISHED).tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        Ok(file)
    }
}

/// Whether a file has the name of content, or of content that is being written.
fn is_content(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        name.starts_with(UNFINISHED) || format!("sha256:{name}").parse::<Digest>().is_ok()
    })
}

/// Whether a file was written less than a time ago. A file of the future is.
fn is_younger(path: &Path, than: Duration) -> bool {
    let written = fs::metadata(path).and_then(|metadata| metadata.modified());
    written.is_ok_and(|written| written.elapsed().unwrap_or_default() < than)
}

/// The search for what refers to a manifest.
pub(crate) struct Referrers<'l> {
    layout: &'l Layout,
    digest: Digest,
    /// The manifests that were not read yet.
    rest: Box<dyn Iterator<Item = Blob> + Send>,
}

impl Referrers<'_> {
    /// Returns the descriptors of the next ones, and at most so many.
    pub(crate) async fn next(&mut self, most: usize) -> Vec<Blob> {
        let mut found = Vec::new();
        while found.len() < most
            && let Some(blob) = self.rest.next()
        {
            // Reading files never waits, so that the deadline would not be noticed.
            tokio::task::yield_now().await;
            // Other kinds of manifests in the folder are none of ours.
            let Ok(manifest) = self.layout.manifest(&blob) else {
                continue;
            };
            if manifest.subject().as_deref() == Some(self.digest.as_str()) {
                found.push(Blob {
                    annotations: manifest.annotations(),
                    artifact_type: Some(manifest.artifact_type()),
                    ..blob
                });
            }
        }
        found
    }
}

/// The prefix of a file that is being written.
const UNFINISHED: &str = "unfinished-";

fn io_error(path: &Path, source: io::Error) -> LayoutError {
    let path = path.to_owned();
    LayoutError::Io { path, source }
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, LayoutError> {
    let mut bytes = Vec::new();
    let read = regular_file::read(path, limit, &mut bytes);
    read.map_err(|source| io_error(path, source))?;
    Ok(bytes)
}
