//! The only place where compiled code becomes a component. It is `unsafe`, because wasmtime runs the code as it is.
#![allow(unsafe_code)]

use wasmtime::{Engine, component::Component};

/// Compiled code from a trusted source: this process or its compiler process created it, the cache authenticated it, or only those
/// who can replace this program could have written it.
pub(crate) struct TrustedCode(Vec<u8>);

impl TrustedCode {
    /// Marks code as trusted. The caller has created the code, verified the authentication code of exactly these bytes,
    /// or checked who can write its file.
    pub(crate) const fn new(code: Vec<u8>) -> Self {
        Self(code)
    }

    /// The code.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Loads a component from compiled code.
pub(crate) fn deserialize(engine: &Engine, code: &TrustedCode) -> wasmtime::Result<Component> {
    // SAFETY: `Component::deserialize` needs unchanged bytes from wasmtime's `precompile_component`. `TrustedCode` has
    // only such bytes, in private memory, from sources that are trusted. wasmtime's header in them detects other versions and settings of wasmtime.
    unsafe { Component::deserialize(engine, code.bytes()) }
}
