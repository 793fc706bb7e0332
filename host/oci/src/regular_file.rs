//! Reading of files that others could replace.

use std::{
    fs,
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;

/// Reads a regular file up to a limit. Opening does not wait for a device, and the open file is checked.
pub(crate) fn read(path: &Path, limit: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    let mut file = fs::File::options();
    let file = file.read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    file.take(limit + 1).read_to_end(bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it has more than {limit} bytes")));
    }
    Ok(())
}
