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

/// Fuel of one import, beside its bytes: it costs the host about as much time as that many instructions, so that fuel,
/// which is the same on every machine, runs out before the wall clock does.
const CROSSING: u64 = 100;

/// Runs one import against the call, and charges fuel for it and for the bytes that went over it. `name` is the method's
/// in the contract.
pub(crate) fn host<T>(
    store: &mut StoreContextMut<'_, State>,
    name: &'static str,
    method: impl FnOnce(&mut Call) -> Result<T, Fault>,
) -> wasmtime::Result<T> {
    let call = &mut store.data_mut().call;
    let before = call.meter().bytes();
    let result = method(call);
    let bytes = call.meter().bytes() - before;
    let value = result.map_err(|fault| fault.in_method(name))?;
    charge(store, bytes)?;
    Ok(value)
}

/// Charges fuel for an import over which so many bytes went.
pub(crate) fn charge(store: &mut StoreContextMut<'_, State>, bytes: u64) -> wasmtime::Result<()> {
    match store
        .get_fuel()?
        .checked_sub(bytes.saturating_add(CROSSING))
    {
        Some(left) => store.set_fuel(left),
        None => Err(Trap::OutOfFuel.into()),
    }
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
