//! The size limit of the cache. The least recently used entries are evicted first.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// The file extension of entries.
pub(crate) const ENDING: &str = "cwasm";

/// The prefix of a file that is being written.
pub(super) const UNFINISHED: &str = "unfinished-";

/// An unfinished file that is older belongs to a process that has ended.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A file of the cache.
struct Stored {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// Marks an entry as used now.
pub(super) fn mark_used(entry: &fs::File) {
    // If this fails, the entry is evicted earlier.
    let _ = entry.set_modified(SystemTime::now());
}

/// Evicts the least recently used entries, until the others and `new` bytes fit.
///
/// This is safe if another process reads or deletes entries at the same time.
pub(super) fn make_room(folder: &Path, new: u64, limit: u64) -> io::Result<()> {
    let mut stored = Vec::new();
    let mut used = new;
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let Some(file) = stored_file(&path) else {
            continue;
        };
        if is_unfinished(&path) {
            if file.used.elapsed().is_ok_and(|age| age > ABANDONED) {
                remove(&path)?;
            }
        } else if path.extension().is_some_and(|ending| ending == ENDING) {
            used = used.saturating_add(file.bytes);
            stored.push(file);
        }
    }
    stored.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
    for file in stored {
        if used <= limit {
            break;
        }
        remove(&file.path)?;
        used = used.saturating_sub(file.bytes);
    }
    Ok(())
}

fn stored_file(path: &Path) -> Option<Stored> {
    let metadata = fs::symlink_metadata(path).ok()?;
    metadata.is_file().then(|| Stored {
        path: path.to_owned(),
        bytes: metadata.len(),
        used: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
    })
}

fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A folder with files of ten bytes, each used an hour after the one before.
    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let start = SystemTime::now() - Duration::from_secs(100 * 3600);
        for (hour, name) in (0..).zip(names) {
            let path = folder.path().join(name);
            fs::write(&path, [0; 10]).unwrap();
            let file = fs::File::open(path).unwrap();
            let used = start + Duration::from_secs(3600 * hour);
            file.set_modified(used).unwrap();
        }
        folder
    }

    fn left(folder: &tempfile::TempDir) -> Vec<String> {
        let files = fs::read_dir(folder.path()).unwrap();
        let name =
            |file: io::Result<fs::DirEntry>| file.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<_> = files.map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let folder = folder(&["b.cwasm", "c.cwasm", "a.cwasm"]);
        make_room(folder.path(), 10, 40).unwrap();
        assert_eq!(left(&folder), ["a.cwasm", "b.cwasm", "c.cwasm"]);
        make_room(folder.path(), 10, 39).unwrap();
        assert_eq!(left(&folder), ["a.cwasm", "c.cwasm"]);
        mark_used(&fs::File::open(folder.path().join("c.cwasm")).unwrap());
        make_room(folder.path(), 10, 20).unwrap();
        assert_eq!(left(&folder), ["c.cwasm"]);
    }

    #[test]
    fn what_a_process_left_unfinished_goes_too_and_nothing_else() {
        let folder = folder(&["unfinished-abc", "cache.key", "notes.txt"]);
        let fresh = folder.path().join("unfinished-def");
        fs::write(&fresh, [0; 10]).unwrap();
        fs::create_dir(folder.path().join("folder.cwasm")).unwrap();
        make_room(folder.path(), 10, 0).unwrap();
        assert_eq!(
            left(&folder),
            ["cache.key", "folder.cwasm", "notes.txt", "unfinished-def"]
        );
    }
}
