//! The handles of the contract: one table for both targets. In a component a method calls the host's import; natively it
//! calls the host's record, by the same names and with the same checks.

// Above them, since they use its macro.
#[macro_use]
mod table;
mod context;
mod record;
#[cfg(target_family = "wasm")]
mod values;

pub use self::{
    context::{Context, Document, Job, Lookups, Object, Objects},
    record::{Container, Info, PodSet},
};
#[cfg(target_family = "wasm")]
pub use crate::guest::types::{Dependency, Devices, KeyFile, Mount, Port, Quantity};
#[cfg(not(target_family = "wasm"))]
pub use trainyard_model::value::{Dependency, Devices, KeyFile, Mount, Port, Quantity};

/// What the host gives, as an author gets it.
trait Give<T> {
    fn give(self) -> T;
}

macro_rules! give_as_is {
    ($($type:ty),+ $(,)?) => { $(impl Give<$type> for $type { fn give(self) -> $type { self } })+ };
}
give_as_is!(
    (),
    bool,
    u32,
    String,
    Option<bool>,
    Option<i64>,
    Option<u32>,
    Option<String>,
    Option<Port>,
    Option<Vec<String>>,
    Vec<String>,
    Vec<Dependency>,
    Vec<Devices>,
    Vec<Mount>,
    Vec<Port>,
    Vec<Quantity>,
);
