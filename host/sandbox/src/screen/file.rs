use std::{fs::File, io::Read, path::Path};

use crate::{error::ScreenError, load_limits::LoadLimits};

/// Reads a file up to the limit, and never waits for a device.
///
/// # Errors
/// What is wrong with the file.
pub fn read(path: &Path, limits: &LoadLimits) -> Result<Vec<u8>, ScreenError> {
    let kind = std::fs::metadata(path)?;
    if !kind.is_file() {
        return Err(ScreenError::NotAFile(if kind.is_dir() {
            "a directory"
        } else {
            "a device or a pipe"
        }));
    }
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(ScreenError::NotAFile("a device or a pipe"));
    }
    if kind.len() > limits.bytes {
        return Err(ScreenError::TooLarge(limits.bytes));
    }
    let mut bytes = Vec::new();
    file.take(limits.bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limits.bytes {
        return Err(ScreenError::TooLarge(limits.bytes));
    }
    Ok(bytes)
}
