//! The cache of compiled components on disk. Entries are authenticated before use, so write access to the cache can only cause components to
//! be compiled again.

mod room;

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

pub(crate) use self::room::ENDING;
use crate::{
    regular_file::{self, MAX_BYTES},
    trusted_code::TrustedCode,
};

/// The length of the key and of an authentication code, in bytes.
const KEY_BYTES: usize = 32;

/// The paths of the cache and its key.
#[derive(Clone, Debug)]
pub struct CachePaths {
    /// The directory of compiled components. It can be deleted at any time.
    pub folder: PathBuf,
    /// The file of the key, outside of the directory, readable only by the host's user.
    pub key: PathBuf,
}

impl CachePaths {
    /// Returns the paths for a user, by the XDG base directory specification, with `folder` instead of the default directory if it is set.
    /// If there is no directory for the key, such as in a container without a home, the key is in `folder`, next to the compiled
    /// components. `None` if `folder` is not set either.
    #[must_use]
    pub fn of_user(folder: Option<&Path>) -> Option<Self> {
        let path = |variable: &str| {
            let set = std::env::var_os(variable).map(PathBuf::from);
            set.filter(|path| path.is_absolute())
        };
        let base = |variable: &str, below: &str| {
            let base = path(variable).or_else(|| Some(path("HOME")?.join(below)))?;
            Some(base.join("trainyard"))
        };
        let key = base("XDG_STATE_HOME", ".local/state").map(|state| state.join("cache.key"));
        match (folder, key) {
            (None, key) => Some(Self {
                folder: base("XDG_CACHE_HOME", ".cache")?,
                key: key?,
            }),
            (Some(folder), Some(key)) => Some(Self {
                folder: folder.to_owned(),
                key,
            }),
            (Some(folder), None) => Some(Self {
                folder: folder.join("compiled"),
                key: folder.join("cache.key"),
            }),
        }
    }
}

/// The compiled cache.
pub(crate) struct Cache {
    folder: PathBuf,
    key: [u8; KEY_BYTES],
    /// The most bytes of all entries.
    limit: u64,
}

impl Cache {
    /// Opens the cache, and creates its directory and key if they are missing.
    ///
    /// # Errors
    /// A directory or the key cannot be created, or others have access to it, so its contents cannot be trusted.
    pub(crate) fn open(paths: &CachePaths, limit: u64) -> io::Result<Self> {
        private_folder(&paths.folder)?;
        if let Some(parent) = paths.key.parent() {
            private_folder(parent)?;
        }
        if inside(&paths.key, &paths.folder)? {
            return Err(io::Error::other(format!(
                "the key {} is in the directory that it protects; move it elsewhere",
                paths.key.display()
            )));
        }
        Ok(Self {
            folder: paths.folder.clone(),
            key: key(&paths.key)?,
            limit,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.{ENDING}"))
    }

    /// The authentication code of an entry. It covers the name, so an entry cannot replace another one.
    fn authenticator(&self, name: &str, code: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(&(name.len() as u64).to_le_bytes());
        mac.update(name.as_bytes());
        mac.update(code);
        Some(mac)
    }

    /// The entry with that name, if it exists and is authentic.
    pub(crate) fn get(&self, name: &str) -> Option<TrustedCode> {
        let path = self.path(name);
        let mut entry = read(&path)?;
        let tag_at = entry.len().checked_sub(KEY_BYTES);
        let authentic = tag_at
            .and_then(|at| entry.split_at_checked(at))
            .is_some_and(|(code, tag)| {
                self.authenticator(name, code)
                    .is_some_and(|mac| mac.verify_slice(tag).is_ok())
            });
        if !authentic {
            tracing::warn!(path = %path.display(), "a cached plugin was not written with the current key of the cache, or is damaged; compiling it again");
            return None;
        }
        entry.truncate(tag_at?);
        Some(TrustedCode::new(entry))
    }

    /// Writes an entry atomically, and evicts the least recently used ones.
    pub(crate) fn put(&self, name: &str, code: &TrustedCode) {
        let bytes = (code.bytes().len() + KEY_BYTES) as u64;
        if bytes > self.limit {
            tracing::warn!(
                bytes,
                limit = self.limit,
                "a compiled plugin is larger than the cache; it will be compiled again"
            );
            return;
        }
        let write = || -> io::Result<()> {
            room::make_room(&self.folder, bytes, self.limit)?;
            let mac = self
                .authenticator(name, code.bytes())
                .ok_or_else(|| io::Error::other("no authentication code"))?;
            let mut file = tempfile::Builder::new()
                .prefix(room::UNFINISHED)
                .tempfile_in(&self.folder)?;
            file.write_all(code.bytes())?;
            file.write_all(&mac.finalize().into_bytes())?;
            file.persist(self.path(name))?;
            Ok(())
        };
        if let Err(error) = write() {
            tracing::warn!(folder = %self.folder.display(), %error, "cannot cache a compiled plugin; it will be compiled again");
        }
    }
}

/// Reads an entry.
fn read(path: &Path) -> Option<Vec<u8>> {
    let file = match regular_file::open(path) {
        Ok(file) => file,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(path = %path.display(), %error, "a cached plugin cannot be used; compiling it again");
            }
            return None;
        }
    };
    let mut bytes = Vec::new();
    (&file).take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    room::mark_used(&file);
    Some(bytes)
}

/// Creates a directory for this user only, if it does not exist.
///
/// # Errors
/// It cannot be created, or others own it or can write to it.
fn private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)?;
    if !is_own(&fs::metadata(path)?, 0o022) {
        return Err(io::Error::other(format!(
            "{} belongs to another user, or others can write to it; run `chmod go-w` on it",
            path.display()
        )));
    }
    Ok(())
}

/// Whether it belongs to this user, and others have none of the permissions.
fn is_own(metadata: &fs::Metadata, others: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & others == 0
}

/// Whether a file is in a directory, or below it.
fn inside(file: &Path, folder: &Path) -> io::Result<bool> {
    let parent = file.parent().unwrap_or_else(|| Path::new("."));
    Ok(fs::canonicalize(parent)?.starts_with(fs::canonicalize(folder)?))
}

/// Reads the key, or creates one. A key that is damaged or readable by others is replaced, so every entry is compiled again.
fn key(path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    if fs::symlink_metadata(path).is_ok() {
        if stored_key(path, &mut key).unwrap_or(false) {
            return Ok(key);
        }
        tracing::warn!(path = %path.display(), "the key of the cache is incomplete, or other users have access to it; creating another one and compiling all cached plugins again");
        fs::remove_file(path)?;
    }
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&key)?;
    // If another process was faster, its key is used.
    match file.persist_noclobber(path) {
        Ok(_) => Ok(key),
        Err(_) if stored_key(path, &mut key)? => Ok(key),
        Err(error) => Err(error.error),
    }
}

/// Reads a key. False if the file is not a key, or is accessible to others.
fn stored_key(path: &Path, key: &mut [u8; KEY_BYTES]) -> io::Result<bool> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_file() || metadata.len() != KEY_BYTES as u64 || !is_own(&metadata, 0o077) {
        return Ok(false);
    }
    fs::File::open(path)?.read_exact(key)?;
    Ok(true)
}

/// The name of an entry: the digest of the component, and the engine of the code.
pub(crate) fn entry_name(digest: &str, engine: u64) -> String {
    format!(
        "{}-{}",
        digest.replace(':', "-"),
        hex::encode(engine.to_le_bytes())
    )
}
