//! Compiled components on disk. An entry is authenticated before it is used: who can write to the cache folder can
//! make the host compile again, and nothing else.

mod room;

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::vouched::Vouched;

/// Bytes of the key and of an authenticator.
const KEY_BYTES: usize = 32;

/// The largest entry that is read: compiled code has a limit too.
const MAX_ENTRY: u64 = 1 << 30;

/// Where the cache and its key are.
#[derive(Clone, Debug)]
pub struct CachePaths {
    /// The folder of compiled components. May be lost at any time.
    pub folder: PathBuf,
    /// The file of the key, outside of the folder, for the host's user alone.
    pub key: PathBuf,
}

impl CachePaths {
    /// That folder and the user's key, by the XDG base directory specification, and the user's folder where none is given. The key
    /// lies beside the compiled components where the user has no place for it, as in a container without a home; without a folder
    /// there is no cache then.
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
    /// Bytes of all entries.
    limit: u64,
}

impl Cache {
    /// Opens the cache; makes its folder and key where they are missing.
    ///
    /// # Errors
    /// A folder or the key can't be made, or is not the user's own: then nothing in it can be trusted.
    pub(crate) fn open(paths: &CachePaths, limit: u64) -> io::Result<Self> {
        private_folder(&paths.folder)?;
        if let Some(parent) = paths.key.parent() {
            private_folder(parent)?;
        }
        if inside(&paths.key, &paths.folder)? {
            return Err(io::Error::other(format!(
                "the key {} lies in the folder that it protects",
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
        self.folder.join(format!("{name}.{}", room::ENDING))
    }

    /// The authenticator covers the name too: an entry can't stand in for another one.
    fn authenticator(&self, name: &str, code: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(&(name.len() as u64).to_le_bytes());
        mac.update(name.as_bytes());
        mac.update(code);
        Some(mac)
    }

    /// The entry of that name, if it is there and nobody changed it.
    pub(crate) fn get(&self, name: &str) -> Option<Vouched> {
        let path = self.path(name);
        let mut entry = regular_file(&path)?;
        let tag_at = entry.len().checked_sub(KEY_BYTES);
        let authentic = tag_at
            .and_then(|at| entry.split_at_checked(at))
            .is_some_and(|(code, tag)| {
                self.authenticator(name, code)
                    .is_some_and(|mac| mac.verify_slice(tag).is_ok())
            });
        if !authentic {
            tracing::warn!(path = %path.display(), "a cached plugin is not as it was written; it is compiled again");
            return None;
        }
        entry.truncate(tag_at?);
        Some(Vouched::by_origin(entry))
    }

    /// Writes an entry, whole or not at all. Those that were used longest ago make room for it.
    pub(crate) fn put(&self, name: &str, code: &Vouched) {
        let bytes = (code.bytes().len() + KEY_BYTES) as u64;
        if bytes > self.limit {
            tracing::warn!(
                bytes,
                limit = self.limit,
                "a compiled plugin is larger than the cache; it is compiled again next time"
            );
            return;
        }
        let write = || -> io::Result<()> {
            room::make_room(&self.folder, bytes, self.limit)?;
            let mac = self
                .authenticator(name, code.bytes())
                .ok_or_else(|| io::Error::other("no authenticator"))?;
            let mut file = tempfile::Builder::new()
                .prefix(room::UNFINISHED)
                .tempfile_in(&self.folder)?;
            file.write_all(code.bytes())?;
            file.write_all(&mac.finalize().into_bytes())?;
            file.persist(self.path(name))?;
            Ok(())
        };
        if let Err(error) = write() {
            tracing::warn!(folder = %self.folder.display(), %error, "a compiled plugin can't be kept; it is compiled again next time");
        }
    }
}

/// The bytes of a file, and of nothing else: who can write to the folder could put a pipe there, or an endless device.
fn regular_file(path: &Path) -> Option<Vec<u8>> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_ENTRY {
        tracing::warn!(path = %path.display(), "a cached plugin is no file that this host wrote; it is compiled again");
        return None;
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok()?;
    (&file).take(MAX_ENTRY).read_to_end(&mut bytes).ok()?;
    room::mark_used(&file);
    Some(bytes)
}

/// Makes a folder that only its user can enter, if it is not there.
///
/// # Errors
/// It can't be made; or others own it or may write to it, and so could take the place of what is in it.
fn private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)?;
    if !is_own(&fs::metadata(path)?, 0o022) {
        return Err(io::Error::other(format!(
            "{} belongs to another user, or others may write to it; `chmod go-w` mends the latter",
            path.display()
        )));
    }
    Ok(())
}

/// Whether it is the user's own, and gives others none of those permissions.
fn is_own(metadata: &fs::Metadata, others: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & others == 0
}

/// Whether a file's folder is that folder or lies in it.
fn inside(file: &Path, folder: &Path) -> io::Result<bool> {
    let parent = file.parent().unwrap_or_else(|| Path::new("."));
    Ok(fs::canonicalize(parent)?.starts_with(fs::canonicalize(folder)?))
}

/// Reads the key, or makes one. One that is damaged or that others know is replaced: then every entry is compiled again.
fn key(path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    if fs::symlink_metadata(path).is_ok() {
        if stored_key(path, &mut key).unwrap_or(false) {
            return Ok(key);
        }
        tracing::warn!(path = %path.display(), "the key of the compiled cache is damaged or open to others; a new one is made");
        fs::remove_file(path)?;
    }
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&key)?;
    // Another process may have been faster: then its key counts.
    match file.persist_noclobber(path) {
        Ok(_) => Ok(key),
        Err(_) if stored_key(path, &mut key)? => Ok(key),
        Err(error) => Err(error.error),
    }
}

/// Reads a key; false where the file is no such key, or not the user's alone.
fn stored_key(path: &Path, key: &mut [u8; KEY_BYTES]) -> io::Result<bool> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_file() || metadata.len() != KEY_BYTES as u64 || !is_own(&metadata, 0o077) {
        return Ok(false);
    }
    fs::File::open(path)?.read_exact(key)?;
    Ok(true)
}

/// The name of an entry: the content's digest and the engine that the code is for.
pub(crate) fn entry_name(digest: &str, engine: u64) -> String {
    format!(
        "{}-{}",
        digest.replace(':', "-"),
        hex::encode(engine.to_le_bytes())
    )
}
