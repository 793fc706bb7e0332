//! Output that is written to a file.

use std::{io::Write as _, path::Path};

/// Replaces a file atomically.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty());
    let mut file = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The mode of any new file, to which the user's umask applies.
        file.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = file.tempfile_in(directory.unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    #[test]
    fn file_is_replaced_without_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, other) = (folder.path().join("a.wasm"), folder.path().join("b"));
        fs::write(&ours, "an earlier and longer one").unwrap();
        fs::write(&other, "").unwrap();
        replace(&ours, b"new").unwrap();
        assert_eq!(fs::read(&ours).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        let mode = |path| fs::metadata(path).unwrap().permissions();
        assert_eq!(mode(&ours), mode(&other));
    }

    #[test]
    fn failed_write_keeps_the_earlier_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wasm");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), "").unwrap();
        assert!(replace(&path, b"new").is_err());
        assert!(path.join("inside").is_file());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
