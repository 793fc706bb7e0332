//! What a file says of itself, read without compiling or running anything of it.

mod contract;
mod error;
mod file;
mod sections;
mod surface;

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};
use trainyard_model::{manifest::Manifest, names::hex, policy::Phase};

pub use self::{error::ScreenError, file::read};
use self::{sections::Sections, surface::Surface};

/// What a plugin file may be made of. Beyond it, a file is refused before it is compiled.
#[derive(Clone, Copy, Debug)]
pub struct LoadLimits {
    /// Bytes of the file. Default 32 MiB: plugins in Python and JavaScript carry an interpreter.
    pub bytes: u64,
    /// Functions, over all modules. Default 100,000.
    pub functions: u32,
    /// Locals of one function. Default 2,000.
    pub locals: u64,
    /// Bytes of one function's body. Default 512 KiB.
    pub body_bytes: usize,
    /// Core modules and nested components. Default 64: an interpreter comes in a dozen modules.
    pub modules: u32,
    /// Bytes of memory while it compiles. Default 2 GiB.
    pub compile_memory_bytes: u64,
    /// Seconds of CPU, and of wall-clock time, while it compiles. Default 60.
    pub compile_seconds: u64,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            bytes: 32 << 20,
            functions: 100_000,
            locals: 2_000,
            body_bytes: 512 << 10,
            modules: 64,
            compile_memory_bytes: 2 << 30,
            compile_seconds: 60,
        }
    }
}

/// A component that may be compiled.
#[derive(Debug)]
pub struct Screened {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// `sha256:` and their digest.
    pub digest: String,
    /// Its manifest.
    pub manifest: Manifest,
    /// The methods of the contract that it imports, sorted.
    pub imports: Vec<String>,
}

/// Checks the bytes of a component against the limits and the contract.
///
/// # Errors
/// The first thing that keeps it from being a plugin.
pub fn screen(bytes: Vec<u8>, limits: &LoadLimits) -> Result<Screened, ScreenError> {
    if bytes.is_empty() {
        return Err(ScreenError::Empty);
    }
    if bytes.len() as u64 > limits.bytes {
        return Err(ScreenError::TooLarge(limits.bytes));
    }
    if bytes.starts_with(b"\x7fELF") {
        return Err(ScreenError::NativeCode("ELF"));
    }
    let sections = Sections::of(&bytes, limits)?;
    let manifest = Manifest::parse(sections.manifest)?;
    let Surface { imports, phases } = Surface::of(&bytes, &sections)?;
    let declared: BTreeSet<Phase> = manifest.phases.iter().copied().collect();
    if declared != phases {
        let list = |phases: &BTreeSet<Phase>| {
            phases
                .iter()
                .map(|p| p.name())
                .collect::<Vec<_>>()
                .join(", ")
        };
        return Err(ScreenError::Phases {
            exported: list(&phases),
            declared: list(&declared),
        });
    }
    let digest = format!("sha256:{}", hex(&Sha256::digest(&bytes)));
    Ok(Screened {
        bytes,
        digest,
        manifest,
        imports,
    })
}

/// What a built-in component says of itself: it was checked when this program was built, so that a start costs no more
/// than reading its manifest.
pub(crate) fn screen_vouched(bytes: &[u8]) -> Result<Screened, ScreenError> {
    let manifest = Manifest::parse(Sections::of(bytes, &LoadLimits::default())?.manifest)?;
    let digest = format!("sha256:{}", hex(&Sha256::digest(bytes)));
    Ok(Screened {
        bytes: bytes.to_vec(),
        digest,
        manifest,
        imports: Vec::new(),
    })
}
