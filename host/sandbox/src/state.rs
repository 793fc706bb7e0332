//! The data of a store: the call, and the counters of the sandbox.

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

/// The fuel for calling an import, in addition to its bytes. It takes the host about as long as that many instructions, so fuel, which does
/// not depend on the machine, runs out before the wall-clock limit.
const CROSSING: u64 = 100;

/// Runs an import, and charges fuel for it and for the bytes that it passed. `name` is the name of the method in the contract.
pub(crate) fn call_host<T>(
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

/// Charges fuel for an import that passed a number of bytes.
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

/// A memory or table would exceed the limit.
#[derive(Debug, thiserror::Error)]
#[error("memory limit")]
pub(crate) struct OutOfMemory;

impl MemoryLimiter {
    /// The bytes of a table element on the host.
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
