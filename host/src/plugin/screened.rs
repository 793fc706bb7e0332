//! Checks of a plugin file that run none of it.

use std::path::Path;

use trainyard_sandbox::{
    LoadLimits,
    screen::{self, Screened},
};

use crate::{compile_worker, output, report::ErrorList};

/// Checks a plugin file without running it.
pub(super) fn screened(file: &Path) -> Result<Screened, ErrorList> {
    screened_as(file, &output::path(file))
}

/// Checks a plugin file without running it. Errors have this name.
pub(super) fn screened_as(file: &Path, name: &str) -> Result<Screened, ErrorList> {
    let (limits, compiler) = (LoadLimits::default(), compile_worker::compiler()?);
    screen::read(file, &limits)
        .and_then(|bytes| screen::screen(bytes, &limits, &compiler))
        .map_err(|error| ErrorList::from_iter([format!("{name}: {error}")]))
}
