//! Checks of a plugin file that run none of it.

use std::path::Path;

use trainyard_sandbox::{
    LoadLimits,
    screen::{self, Screened},
};

use crate::{compile_worker, output, report::ErrorList};

/// Checks a plugin file without running it.
pub(super) fn screened(file: &Path) -> Result<Screened, ErrorList> {
    let name = output::path(file);
    let bytes = screen::read(file, &LoadLimits::default());
    let bytes = bytes.map_err(|error| ErrorList::from_iter([format!("{name}: {error}")]))?;
    screened_bytes(bytes, &name)
}

/// Checks the bytes of a plugin without running it. Errors have this name.
pub(super) fn screened_bytes(bytes: Vec<u8>, name: &str) -> Result<Screened, ErrorList> {
    screen::screen(bytes, &LoadLimits::default(), &compile_worker::compiler()?)
        .map_err(|error| ErrorList::from_iter([format!("{name}: {error}")]))
}
