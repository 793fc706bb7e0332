//! A folder in the OCI image layout, such as one that a site without a network gets. Nothing in it is used without its digest.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use oci_spec::image;
use serde::Deserialize;
use serde_json::{Value, json};
use trainyard_text::{clean, listed};

use crate::{
    artifact::{Blob, INDEX_TYPE, Manifest},
    digest::Digest,
    error::{LayoutError, Problem},
    limits::MANIFEST_BYTES,
};

/// The annotation with the name of a manifest.
const NAME: &str = "org.opencontainers.image.ref.name";
const MARKER: &str = "oci-layout";
const INDEX: &str = "index.json";
const BLOBS: &str = "blobs/sha256";
/// The most names in an error.
const NAMES: usize = 8;

/// A folder.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    folder: PathBuf,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<image::Descriptor>,
}

/// A manifest in the index, with its name if it has one.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) blob: Blob,
}

impl Entry {
    pub(crate) fn name(&self) -> Option<&str> {
        self.blob.annotations.get(NAME).map(String::as_str)
    }
}

impl Layout {
    pub(crate) fn new(folder: &Path) -> Self {
        let folder = folder.to_owned();
        Self { folder }
    }

    /// Creates the folder, if it does not exist.
    pub(crate) fn create(&self) -> Result<(), LayoutError> {
        let blobs = self.folder.join(BLOBS);
        fs::create_dir_all(&blobs).map_err(|source| io_error(&blobs, source))?;
        let marker = self.folder.join(MARKER);
        if !marker.exists() {
            self.write(MARKER, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        }
        if !self.folder.join(INDEX).exists() {
            self.write_index(&[])?;
        }
        Ok(())
    }

    /// Returns what its index lists.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, Problem> {
        let failure = |what| LayoutError::NotALayout {
            folder: self.folder.clone(),
            what,
        };
        if !self.folder.join(MARKER).exists() {
            return Err(failure(MARKER).into());
        }
        let path = self.folder.join(INDEX);
        let bytes = read(&path, MANIFEST_BYTES)?;
        let index: Index = serde_json::from_slice(&bytes).map_err(|_| failure(INDEX))?;
        let entry = |descriptor| {
            Ok(Entry {
                blob: Blob::of(descriptor)?,
            })
        };
        index.manifests.iter().map(entry).collect()
    }

    /// Returns the manifest with that name or digest, or the only one that has a name.
    pub(crate) fn find(
        &self,
        name: Option<&str>,
        digest: Option<&Digest>,
    ) -> Result<Manifest, Problem> {
        let entries = self.entries()?;
        let fits = |entry: &&Entry| {
            name.is_none_or(|name| entry.name() == Some(name))
                && digest.is_none_or(|digest| entry.blob.digest == *digest)
                && (name.is_some() || digest.is_some() || entry.name().is_some())
        };
        let mut fitting = entries.iter().filter(fits);
        let found = fitting.next();
        let is_one =
            fitting.all(|other| Some(&other.blob.digest) == found.map(|found| &found.blob.digest));
        let names = || {
            let names: Vec<_> = entries.iter().filter_map(Entry::name).map(clean).collect();
            if names.is_empty() {
                "none".to_owned()
            } else {
                listed(&names, NAMES)
            }
        };
        match found {
            Some(entry) if is_one => self.manifest(&entry.blob),
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

    /// Writes a manifest, and lists it: under a name that no other has then, or without a name as what refers to another.
    pub(crate) fn put_manifest(
        &self,
        manifest: &Manifest,
        name: Option<&str>,
    ) -> Result<(), Problem> {
        self.put(&manifest.bytes)?;
        let mut entries = self.entries()?;
        entries.retain(|entry| match name {
            Some(name) => entry.name() != Some(name),
            None => entry.blob.digest != manifest.digest || entry.name().is_some(),
        });
        let mut blob = manifest.descriptor();
        if let Some(name) = name {
            blob.annotations.insert(NAME.to_owned(), name.to_owned());
        }
        entries.push(Entry { blob });
        Ok(self.write_index(&entries)?)
    }

    /// Returns the descriptors of what refers to a manifest.
    pub(crate) fn referrers(&self, digest: &Digest) -> Result<Vec<Blob>, Problem> {
        let mut found = Vec::new();
        for entry in self.entries()? {
            // Other kinds of manifests in the folder are none of ours.
            let refers = self
                .manifest(&entry.blob)
                .ok()
                .and_then(|manifest| manifest.subject());
            if refers.as_deref() == Some(digest.as_str()) {
                found.push(entry.blob);
            }
        }
        Ok(found)
    }

    fn write_index(&self, entries: &[Entry]) -> Result<(), LayoutError> {
        let manifests: Vec<Value> = entries.iter().map(|entry| entry.blob.to_json()).collect();
        let index = json!({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": manifests});
        self.write(INDEX, index.to_string().as_bytes())
    }

    /// Replaces a file as a whole.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), LayoutError> {
        let path = self.folder.join(name);
        let write = || -> io::Result<()> {
            let folder = path.parent().unwrap_or(&self.folder);
            let mut file = tempfile::Builder::new();
            file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
            let mut file = file.prefix(UNFINISHED).tempfile_in(folder)?;
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(|source| io_error(&path, source))
    }
}

/// The prefix of a file that is being written.
const UNFINISHED: &str = "unfinished-";

fn io_error(path: &Path, source: io::Error) -> LayoutError {
    let path = path.to_owned();
    LayoutError::Io { path, source }
}

/// Reads a regular file up to a limit. Opening does not wait for a device.
fn read(path: &Path, limit: u64) -> Result<Vec<u8>, LayoutError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let read = || -> io::Result<Vec<u8>> {
        let flags = rustix::fs::OFlags::NONBLOCK.bits();
        let file = fs::File::options()
            .read(true)
            .custom_flags(i32::try_from(flags).map_err(io::Error::other)?)
            .open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::Error::other(format!("it has more than {limit} bytes")));
        }
        Ok(bytes)
    };
    read().map_err(|source| io_error(path, source))
}
