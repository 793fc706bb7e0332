//! The limits of a plugin file, of compiling it, and of the cache.

use trainyard_model::limits::CompileLimits;

/// The limits of a plugin file, of compiling it, and of the cache.
#[derive(Clone, Copy, Debug)]
pub struct LoadLimits {
    /// Bytes of the file. Default 32 MiB, because plugins in Python and JavaScript contain an interpreter.
    pub bytes: u64,
    /// Functions, over all modules. Default 100,000.
    pub functions: u32,
    /// Locals of one function. Default 2,000.
    pub locals: u64,
    /// Bytes of one function's body. Default 512 KiB.
    pub body_bytes: usize,
    /// Core modules and nested components. Default 64; an interpreter has about a dozen.
    pub modules: u32,
    /// Bytes of types, over all modules. Each type takes about a hundred bytes of memory at run time. Default 256 KiB.
    pub type_bytes: u64,
    /// Bytes of imports, exports, elements and other declarations, over all modules. Default 2 MiB.
    pub declaration_bytes: u64,
    /// Data segments, over all modules. Default 100,000.
    pub data_segments: u32,
    /// Sections, over all modules. This limits empty custom sections, too. Default 100,000.
    pub sections: u32,
    /// Bytes of memory while the file is checked and compiled. Default 2 GiB. The operator can set it for a plugin.
    pub compile_memory_bytes: u64,
    /// Seconds of CPU time while the file is checked and compiled. It may take twice as long if the machine is busy. Default 60; a debug build
    /// of Trainyard, whose compiler is slow, has 180. The operator can set it for a plugin.
    pub compile_seconds: u64,
    /// Bytes of compiled code. Default 256 MiB.
    pub code_bytes: u64,
    /// Bytes of all compiled code in the cache. Default 512 MiB.
    pub cache_bytes: u64,
}

impl LoadLimits {
    /// Returns these limits with those that the operator set for a plugin.
    #[must_use]
    pub(crate) fn with(self, set: &CompileLimits) -> Self {
        Self {
            compile_seconds: set.seconds.map_or(self.compile_seconds, Into::into),
            compile_memory_bytes: set.memory_bytes.unwrap_or(self.compile_memory_bytes),
            ..self
        }
    }
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
            compile_seconds: if cfg!(debug_assertions) { 180 } else { 60 },
            code_bytes: 256 << 20,
            cache_bytes: 512 << 20,
        }
    }
}
