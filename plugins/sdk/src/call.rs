//! The current call of the thread, which native handles use.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use trainyard_model::call::{Call, Fault};

thread_local! {
    /// The call that the handles on this thread use.
    static CALL: RefCell<Option<Box<Call>>> = const { RefCell::new(None) };
}

/// Runs a phase with this call as the thread's current call. Returns the call, even if the phase panics.
pub(crate) fn during<T>(
    call: Box<Call>,
    phase: impl FnOnce() -> T,
) -> (Box<Call>, std::thread::Result<T>) {
    let outer = CALL.replace(Some(call));
    let result = catch_unwind(AssertUnwindSafe(phase));
    let inner = CALL.replace(outer);
    match inner {
        Some(call) => (call, result),
        // Only this function sets and removes the current call, and it nests.
        None => unreachable!("the call stays in its place while a phase runs"),
    }
}

/// Calls a method of the contract by its name. A fault ends the phase, as a trap does in the sandbox.
pub(crate) fn with_call<T>(
    name: &'static str,
    method: impl FnOnce(&mut Call) -> Result<T, Fault>,
) -> T {
    let result = CALL.with_borrow_mut(|call| call.as_deref_mut().map(method));
    match result {
        Some(Ok(value)) => value,
        Some(Err(fault)) => resume_unwind(Box::new(fault.in_method(name))),
        None => resume_unwind(Box::new("a handle was used outside of a phase".to_owned())),
    }
}
