//! The records of the contract as they cross the boundary, and how they become the model's.

use trainyard_model::value;
use wasmtime::component::{ComponentType, Lift, Lower, Resource};

/// Markers for the contract's resources: a handle is a slot id, and no state hangs on it.
macro_rules! resources {
    ($($(#[$doc:meta])* $name:ident),+) => { $($(#[$doc])* pub(crate) enum $name {})+ };
}
resources!(
    /// `types.document`
    Document,
    /// `job.job`
    Job,
    /// `pod-set-info.info`
    Info,
    /// `pod-set-info.pod-set`
    PodSet,
    /// `pod-set-info.container`
    Container,
    /// `lookups.lookups`
    Lookups,
    /// `objects.object`
    Object,
    /// `objects.objects`
    Objects,
    /// `context.context`
    Context
);

/// Records of the contract, each the same as the model's of that name: one table for the struct and both directions.
macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($(#[$name_in_wit:meta])? $field:ident: $ty:ty,)+ })+) => {$(
        $(#[$doc])*
        #[derive(ComponentType, Lift, Lower)]
        #[component(record)]
        pub(crate) struct $name {
            $($(#[$name_in_wit])? $field: $ty,)+
        }

        impl From<$name> for value::$name {
            fn from(record: $name) -> Self {
                Self { $($field: record.$field,)+ }
            }
        }

        impl From<value::$name> for $name {
            fn from(record: value::$name) -> Self {
                Self { $($field: record.$field,)+ }
            }
        }

        impl Give<Vec<$name>> for Vec<value::$name> {
            fn give(self) -> Vec<$name> {
                self.into_iter().map(Into::into).collect()
            }
        }

        impl Give<Option<$name>> for Option<value::$name> {
            fn give(self) -> Option<$name> {
                self.map(Into::into)
            }
        }
    )+};
}
records! {
    /// `types.quantity`
    Quantity { resource: String, amount: String, }
    /// `types.port`
    Port { name: Option<String>, number: u16, protocol: String, }
    /// `types.mount`
    Mount {
        volume: String,
        path: String,
        #[component(name = "sub-path")] sub_path: Option<String>,
        #[component(name = "read-only")] read_only: bool,
    }
    /// `types.key-file`
    KeyFile { key: String, path: String, mode: Option<u32>, }
    /// `types.dependency`
    Dependency { #[component(name = "pod-set")] pod_set: String, status: String, }
    /// `types.devices`
    Devices { source: String, count: Option<u32>, accelerator: bool, }
}

/// `types.failure`
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) field: Option<String>,
}

/// What the model gives, as the guest gets it.
pub(crate) trait Give<T> {
    /// Converts it.
    fn give(self) -> T;
}

macro_rules! give_as_is {
    ($($kind:ty),+) => { $(impl Give<$kind> for $kind { fn give(self) -> $kind { self } })+ };
}
give_as_is!(
    String,
    Option<String>,
    Vec<String>,
    Option<Vec<String>>,
    bool,
    Option<bool>,
    u32,
    Option<u32>,
    Option<i64>
);

impl<T: 'static> Give<Resource<T>> for u32 {
    fn give(self) -> Resource<T> {
        Resource::new_own(self)
    }
}

impl<T: 'static> Give<Option<Resource<T>>> for Option<u32> {
    fn give(self) -> Option<Resource<T>> {
        self.map(Resource::new_own)
    }
}

impl<T: 'static> Give<Vec<Resource<T>>> for Vec<u32> {
    fn give(self) -> Vec<Resource<T>> {
        self.into_iter().map(Resource::new_own).collect()
    }
}
