//! What a file says of itself, read without compiling or running anything of it.

mod error;
mod file;
mod sections;
mod surface;

use trainyard_model::{manifest::Manifest, names::sha256_digest};

pub(crate) use self::surface::Surface;
pub use self::{error::ScreenError, file::read};
use crate::{
    compile::{self, CompilerCommand, Task},
    contract::{Contract, OURS},
};

/// What a plugin file may be made of, and what compiling and keeping it may cost.
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
    /// Bytes of types, over all modules: each takes some hundred bytes of memory in the process that runs it. Default 256 KiB.
    pub type_bytes: u64,
    /// Bytes of imports, exports, elements and all else that is declared, over all modules. Default 2 MiB.
    pub declaration_bytes: u64,
    /// Data segments, over all modules. Default 100,000.
    pub data_segments: u32,
    /// Sections, over all modules. Custom ones, which have no other limit, may have no bytes. Default 100,000.
    pub sections: u32,
    /// Bytes of memory while it is checked and compiled. Default 2 GiB.
    pub compile_memory_bytes: u64,
    /// Seconds of CPU, and of wall-clock time, while it is checked and compiled. Default 60.
    pub compile_seconds: u64,
    /// Bytes of compiled code. Default 256 MiB.
    pub code_bytes: u64,
    /// Bytes of all compiled code that is kept on disk. Default 512 MiB.
    pub cache_bytes: u64,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            bytes: 32 << 20,
            functions: 100_000,
            locals: 2_000,
            body_bytes: 512 << 10,
            modules: 64,
            type_bytes: 256 << 10,
            declaration_bytes: 2 << 20,
            data_segments: 100_000,
            sections: 100_000,
            compile_memory_bytes: 2 << 30,
            compile_seconds: 60,
            code_bytes: 256 << 20,
            cache_bytes: 512 << 20,
        }
    }
}

/// A component with its manifest. What else is in it is not checked yet.
#[derive(Debug)]
pub(crate) struct Outlined {
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// `sha256:` and their digest.
    pub(crate) digest: String,
    /// Its manifest.
    pub(crate) manifest: Manifest,
}

impl Outlined {
    /// Reads the manifest of a component, and counts what the component is made of.
    ///
    /// # Errors
    /// The first thing that keeps it from being a plugin.
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

/// Checks the bytes of a component against the limits and the contract. It is validated in the compiling process, under its
/// limits.
///
/// # Errors
/// The first thing that keeps it from being a plugin.
pub fn screen(
    bytes: Vec<u8>,
    limits: &LoadLimits,
    compiler: &CompilerCommand,
) -> Result<Screened, ScreenError> {
    let outlined = Outlined::new(bytes, limits, &OURS)?;
    let answer = compile::in_child(compiler, Task::Screen, &outlined.bytes, limits)?;
    outlined.screened(answer.surface)
}

/// The same, validated in this process: for bytes that are not foreign, and where a test has thousands of them.
///
/// # Errors
/// The first thing that keeps it from being a plugin.
pub fn screen_here(bytes: Vec<u8>, limits: &LoadLimits) -> Result<Screened, ScreenError> {
    let outlined = Outlined::new(bytes, limits, &OURS)?;
    let surface = Surface::of(&outlined.bytes, &OURS);
    outlined.screened(surface)
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
