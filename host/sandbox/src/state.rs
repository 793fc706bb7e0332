//! What a store holds while a call runs: the call itself, and what the sandbox counts.

use trainyard_model::call::{Call, Fault};
use wasmtime::{ResourceLimiter, StoreContextMut, Trap};

/// The data of one store.
pub(crate) struct State {
    pub(crate) call: Box<Call>,
    pub(crate) memory: MemoryLimiter,
    pub(crate) panic_message: Option<String>,
}

impl State {
    pub(crate) fn new(call: Box<Call>, memory_bytes: u64) -> Self {
        Self {
            call,
            memory: MemoryLimiter {
                allowed: memory_bytes,
                used: 0,
            },
            panic_message: None,
        }
    }
}

/// Runs one import against the call, and charges fuel for the bytes that went over it.
pub(crate) fn host<T>(
    store: &mut StoreContextMut<'_, State>,
    method: impl FnOnce(&mut Call) -> Result<T, Fault>,
) -> wasmtime::Result<T> {
    let call = &mut store.data_mut().call;
    let before = call.meter().bytes();
    let result = method(call);
    let bytes = call.meter().bytes() - before;
    let value = result?;
    match store.get_fuel()?.checked_sub(bytes) {
        Some(left) => store.set_fuel(left)?,
        None => return Err(Trap::OutOfFuel.into()),
    }
    Ok(value)
}

/// Counts all memories and tables of a store together.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    allowed: u64,
    used: u64,
}

/// A memory or table would grow beyond the limit.
#[derive(Debug, thiserror::Error)]
#[error("memory limit")]
pub(crate) struct OutOfMemory;

impl MemoryLimiter {
    /// Bytes of a table's element on the host.
    const ELEMENT: u64 = 16;

    fn grow(&mut self, more: u64) -> wasmtime::Result<bool> {
        let used = self.used.saturating_add(more);
        if used > self.allowed {
            return Err(OutOfMemory.into());
        }
        self.used = used;
        Ok(true)
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.grow(desired.saturating_sub(current) as u64)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.grow((desired.saturating_sub(current) as u64).saturating_mul(Self::ELEMENT))
    }
}
