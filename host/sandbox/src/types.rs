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

/// `types.quantity`
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct Quantity {
    resource: String,
    amount: String,
}

/// `types.port`
#[derive(ComponentType, Lift, Lower)]
#[component(record)]
pub(crate) struct Port {
    name: Option<String>,
    number: u16,
    protocol: String,
}

/// `types.mount`
#[derive(ComponentType, Lift, Lower)]
#[component(record)]
pub(crate) struct Mount {
    volume: String,
    path: String,
    #[component(name = "sub-path")]
    sub_path: Option<String>,
    #[component(name = "read-only")]
    read_only: bool,
}

/// `types.key-file`
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct KeyFile {
    key: String,
    path: String,
    mode: Option<u32>,
}

/// `types.dependency`
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct Dependency {
    #[component(name = "pod-set")]
    pod_set: String,
    status: String,
}

/// `types.devices`
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct Devices {
    source: String,
    count: Option<u32>,
    accelerator: bool,
}

/// `types.failure`
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) field: Option<String>,
}

impl From<Port> for value::Port {
    fn from(port: Port) -> Self {
        Self {
            name: port.name,
            number: port.number,
            protocol: port.protocol,
        }
    }
}

impl From<Mount> for value::Mount {
    fn from(mount: Mount) -> Self {
        Self {
            volume: mount.volume,
            path: mount.path,
            sub_path: mount.sub_path,
            read_only: mount.read_only,
        }
    }
}

impl From<KeyFile> for value::KeyFile {
    fn from(file: KeyFile) -> Self {
        Self {
            key: file.key,
            path: file.path,
            mode: file.mode,
        }
    }
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

impl Give<Vec<Quantity>> for Vec<value::Quantity> {
    fn give(self) -> Vec<Quantity> {
        self.into_iter()
            .map(|q| Quantity {
                resource: q.resource,
                amount: q.amount,
            })
            .collect()
    }
}

impl Give<Vec<Port>> for Vec<value::Port> {
    fn give(self) -> Vec<Port> {
        self.into_iter()
            .map(|p| Port {
                name: p.name,
                number: p.number,
                protocol: p.protocol,
            })
            .collect()
    }
}

impl Give<Option<Port>> for Option<value::Port> {
    fn give(self) -> Option<Port> {
        self.map(|p| Port {
            name: p.name,
            number: p.number,
            protocol: p.protocol,
        })
    }
}

impl Give<Vec<Mount>> for Vec<value::Mount> {
    fn give(self) -> Vec<Mount> {
        let mount = |m: value::Mount| Mount {
            volume: m.volume,
            path: m.path,
            sub_path: m.sub_path,
            read_only: m.read_only,
        };
        self.into_iter().map(mount).collect()
    }
}

impl Give<Vec<Dependency>> for Vec<value::Dependency> {
    fn give(self) -> Vec<Dependency> {
        self.into_iter()
            .map(|d| Dependency {
                pod_set: d.pod_set,
                status: d.status,
            })
            .collect()
    }
}

impl Give<Vec<Devices>> for Vec<value::Devices> {
    fn give(self) -> Vec<Devices> {
        let devices = |d: value::Devices| Devices {
            source: d.source,
            count: d.count,
            accelerator: d.accelerator,
        };
        self.into_iter().map(devices).collect()
    }
}
