//! Screening of plugin files, without compiling or running them.

mod file;
mod sections;
#[cfg(test)]
mod tests;

use trainyard_model::{manifest::Manifest, names::sha256_digest};

pub use self::file::read;
use crate::{
    compile::{self, CompilerCommand, Task},
    contract::{Contract, OURS},
    error::ScreenError,
    load_limits::LoadLimits,
    surface::Surface,
};

/// A component with its manifest. Its imports and exports are not checked yet.
#[derive(Debug)]
pub(crate) struct Outlined {
    pub(crate) bytes: Vec<u8>,
    /// Their digest: `sha256:` and hexadecimal digits.
    pub(crate) digest: String,
    pub(crate) manifest: Manifest,
}

impl Outlined {
    /// Reads the manifest of a component, and checks the limits of its contents.
    ///
    /// # Errors
    /// The first reason why it is not a plugin.
    pub(crate) fn new(
        bytes: Vec<u8>,
        limits: &LoadLimits,
        contract: &Contract,
    ) -> Result<Self, ScreenError> {
        if bytes.is_empty() {
            return Err(ScreenError::Empty);
        }
        if bytes.len() as u64 > limits.bytes {
            return Err(ScreenError::TooLarge(limits.bytes));
        }
        if bytes.starts_with(b"\x7fELF") {
            return Err(ScreenError::NativeCode("ELF"));
        }
        let manifest = sections::manifest(&bytes, limits)?;
        let manifest = Manifest::parse_for(contract.version(), manifest)?;
        let digest = sha256_digest(&bytes);
        Ok(Self {
            bytes,
            digest,
            manifest,
        })
    }
}

/// A component that has passed screening.
#[derive(Debug)]
pub struct Screened {
    pub bytes: Vec<u8>,
    /// Their digest: `sha256:` and hexadecimal digits.
    pub digest: String,
    pub manifest: Manifest,
    /// The methods of the contract that it imports, sorted.
    pub imports: Vec<String>,
}

/// Checks the bytes of a component against the limits and the contract. It is validated in the compiler process, with its
/// limits.
///
/// # Errors
/// The first reason why it is not a plugin.
pub fn screen(
    bytes: Vec<u8>,
    limits: &LoadLimits,
    compiler: &CompilerCommand,
) -> Result<Screened, ScreenError> {
    let outlined = Outlined::new(bytes, limits, &OURS)?;
    let answer = compile::in_child(compiler, Task::Screen, &outlined.bytes, limits)?;
    outlined.screened(answer.surface)
}

impl Outlined {
    fn screened(self, surface: Surface) -> Result<Screened, ScreenError> {
        Ok(Screened {
            imports: surface.imports_of(&self.manifest.phases)?,
            bytes: self.bytes,
            digest: self.digest,
            manifest: self.manifest,
        })
    }
}
