//! Opening of files that others could replace.

use std::{fs, io, os::unix::fs::OpenOptionsExt, path::Path};

use rustix::fs::OFlags;

/// The largest file that is opened.
pub(crate) const MAX_BYTES: u64 = 1 << 30;

/// Opens a regular file. Others could have replaced it by a link, a pipe or an endless device, so the open file is checked. Reading needs a
/// limit of [`MAX_BYTES`], too, because the file could grow.
///
/// # Errors
/// It cannot be opened, is not a regular file, or is too large.
pub(crate) fn open(path: &Path) -> io::Result<fs::File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = fs::File::options()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).map_err(io::Error::other)?)
        .open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.len() <= MAX_BYTES {
        Ok(file)
    } else {
        Err(io::Error::other(
            "it is not a regular file, or is too large",
        ))
    }
}
