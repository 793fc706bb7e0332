//! The only place where compiled code becomes a component. `unsafe`, since wasmtime runs what it is given: a changed byte
//! in it would run as native code.
#![allow(unsafe_code)]

use wasmtime::{Engine, component::Component};

/// Compiled code whose origin is vouched for: this process or its compiling child made it, or the cache's key
/// authenticated it. Only the modules that do so make one.
pub(crate) struct Vouched(Vec<u8>);

impl Vouched {
    /// Vouches for code. The caller has made the code, or checked its authenticator over these very bytes.
    pub(crate) const fn by_origin(code: Vec<u8>) -> Self {
        Self(code)
    }

    /// The code.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Makes a component of compiled code.
pub(crate) fn deserialize(engine: &Engine, code: &Vouched) -> wasmtime::Result<Component> {
    // SAFETY: `Component::deserialize` needs bytes that wasmtime's own `precompile_component` made and nobody changed
    // since. `Vouched` holds only such bytes, in memory that nobody else can reach; other versions and settings of
    // wasmtime are told apart by its own header.
    unsafe { Component::deserialize(engine, code.bytes()) }
}
