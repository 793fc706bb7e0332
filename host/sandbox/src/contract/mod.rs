//! The contract for components: its interfaces, and the methods that implement them.
//!
//! A row has a method, its parameters and result types, and the [`Call`] method that implements it and checks its permissions.
//! tools/bindings generates rows and records from `wit/`. `tests/every_method_links.rs` links a component that imports all of them.
//!
//! [`Call`]: trainyard_model::call::Call

mod give;
#[cfg(test)]
mod tests;

use std::hash::{Hash, Hasher};

use trainyard_model::{
    contract::{self, Handle, VERSION},
    plugin::Phase,
    text::{MAX_TEXT, clean},
};
use wasmtime::{
    StoreContextMut,
    component::{Linker, LinkerInstance, Resource},
};

use crate::state::{State, charge};

/// Adds the methods of a resource, each with a row.
macro_rules! methods {
    ($instance:ident, $resource:literal, $handle:ty {
        $($name:literal ($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $call:ident($($pass:expr),*);)*
    }) => {
        $instance.resource($resource, wasmtime::component::ResourceType::host::<$handle>(), |_, _| Ok(()))?;
        $($instance.func_wrap(
            concat!("[method]", $name),
            |mut store: wasmtime::StoreContextMut<'_, State>, (this, $($arg,)*): (Resource<$handle>, $($ty,)*)| {
                let this = super::lent(this);
                let value = crate::state::call_host(&mut store, $name, |call| call.$call(this $(, $pass)*))?;
                Ok(methods!(@give value $(, $ret)?))
            },
        )?;)*
    };
    (@give $value:ident) => { $value };
    (@give $value:ident, $ret:ty) => { (super::give::Give::<$ret>::give($value),) };
}

/// Defines the records of the contract, with conversions from and to the model's.
macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($(#[$name_in_wit:meta])? $field:ident: $ty:ty,)+ })+) => {$(
        $(#[$doc])*
        #[derive(wasmtime::component::ComponentType, wasmtime::component::Lift, wasmtime::component::Lower)]
        #[component(record)]
        pub(crate) struct $name {
            $($(#[$name_in_wit])? pub(crate) $field: $ty,)+
        }

        impl From<$name> for trainyard_model::value::$name {
            fn from(record: $name) -> Self {
                Self { $($field: record.$field,)+ }
            }
        }

        impl super::give::Give<$name> for trainyard_model::value::$name {
            fn give(self) -> $name {
                $name { $($field: self.$field,)+ }
            }
        }
    )+};
}

mod records;
mod rows;

pub(crate) use self::records::Failure;

/// The contract of a host.
#[derive(Clone, Copy)]
pub(crate) struct Contract {
    /// Its version. Components for this version and for earlier 1.x versions run.
    version: &'static str,
    /// The interfaces that a component can import.
    interfaces: &'static [Interface],
}

/// An interface that a component may import.
#[derive(Clone, Copy)]
struct Interface {
    /// Its short name, such as `context`.
    name: &'static str,
    /// Its functions and types, by their names in a component.
    members: &'static [&'static str],
    /// Adds all of them.
    rows: fn(&mut LinkerInstance<'_, State>) -> wasmtime::Result<()>,
}

/// The contract of this host.
pub(crate) const OURS: Contract = Contract {
    version: VERSION,
    interfaces: rows::INTERFACES,
};

impl Contract {
    /// Its version.
    pub(crate) const fn version(&self) -> &'static str {
        self.version
    }

    /// Adds all interfaces. wasmtime also links them to imports of other 1.x versions; [`Self::members`] refuses newer ones.
    pub(crate) fn add_to_linker(&self, linker: &mut Linker<State>) -> wasmtime::Result<()> {
        for interface in self.interfaces {
            let name = contract::interface_of(interface.name, self.version);
            (interface.rows)(&mut linker.instance(&name)?)?;
        }
        Ok(())
    }

    /// The functions and types of an interface by its full name. `None` if the contract does not have it, or not in that version.
    pub(crate) fn members(&self, import: &str) -> Option<&'static [&'static str]> {
        let name = contract::short_name(import, self.version)?;
        let mut interfaces = self.interfaces.iter();
        interfaces
            .find(|known| known.name == name)
            .map(|known| known.members)
    }

    /// The phase of an export. `None` if it is not a phase, or of a newer version.
    pub(crate) fn phase(&self, export: &str) -> Option<Phase> {
        let name = contract::short_name(export, self.version)?;
        Phase::ALL.into_iter().find(|phase| phase.name() == name)
    }

    /// The full name of a phase's interface. wasmtime finds it in components of every 1.x version.
    pub(crate) fn export(&self, phase: Phase) -> String {
        contract::interface_of(phase.name(), self.version)
    }

    /// A number that differs between contracts, because code for one may not link with another.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        self.version.hash(&mut hasher);
        for interface in self.interfaces {
            (interface.name, interface.members).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// The handle that a guest holds.
fn lent<H: Handle + 'static>(resource: Resource<H>) -> H {
    H::of(resource.rep())
}

/// `panics`, the only interface without a handle.
fn panics(instance: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    instance.func_wrap(
        "message",
        |mut store: StoreContextMut<'_, State>, (text,): (String,)| {
            // Some languages write the message of a panic in parts, after other output.
            let message = store.data_mut().panic_message.get_or_insert_default();
            let head = text.floor_char_boundary(MAX_TEXT * 4);
            message.push_str(&text.get(..head).map(clean).unwrap_or_default());
            let surplus = message.len().saturating_sub(MAX_TEXT * 4);
            message.drain(..message.ceil_char_boundary(surplus));
            charge(&mut store, text.len() as u64)
        },
    )
}
