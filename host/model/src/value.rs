//! The records of the contract (`wit/types.wit`) as plain Rust.

use serde::{Deserialize, Serialize};

use crate::text::clean;

/// An amount of one resource, as Kubernetes writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// The resource's name, as `memory`.
    pub resource: String,
    /// The amount, as `800Gi`.
    pub amount: String,
}

/// A container port; number and protocol are its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name, at most once in a pod.
    pub name: Option<String>,
    /// The port number, from 1.
    pub number: u16,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
}

/// A volume mount; the path is its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The volume's name.
    pub volume: String,
    /// Where it appears in the container.
    pub path: String,
    /// The part of the volume that appears there.
    pub sub_path: Option<String>,
    /// Whether the container can't write to it.
    pub read_only: bool,
}

/// One key of a ConfigMap or Secret as a file of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile {
    /// The key.
    pub key: String,
    /// The file's path in the volume.
    pub path: String,
    /// Permission bits.
    pub mode: Option<u32>,
}

impl Port {
    /// A TCP port without a name.
    #[must_use]
    pub fn tcp(number: u16) -> Self {
        Self {
            name: None,
            number,
            protocol: "TCP".to_owned(),
        }
    }

    /// The same port with a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl Mount {
    /// The whole of a volume at a path, writable.
    #[must_use]
    pub fn new(volume: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            volume: volume.into(),
            path: path.into(),
            sub_path: None,
            read_only: false,
        }
    }

    /// The same mount, but the container can't write to it.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// The same mount of a part of the volume.
    #[must_use]
    pub fn sub_path(mut self, path: impl Into<String>) -> Self {
        self.sub_path = Some(path.into());
        self
    }
}

impl KeyFile {
    /// A key as a file of its own path, with the volume's permission bits.
    #[must_use]
    pub fn new(key: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            path: path.into(),
            mode: None,
        }
    }

    /// The same file with permission bits of its own, as `0o440`.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }
}

/// A pod set that another one waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The pod set that is waited for.
    pub pod_set: String,
    /// `Ready` or `Complete`.
    pub status: String,
}

/// Devices that the node container of a pod set gets from one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices {
    /// `resource/NAME` or `resource-claim/NAME`.
    pub source: String,
    /// None where the number can't be known before the pods are scheduled.
    pub count: Option<u32>,
    /// Whether they are accelerators.
    pub accelerator: bool,
}

/// What a plugin says to the user: why it refuses, or what to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The sentence.
    pub message: String,
    /// Where the user can mend it: a path into the TrainJob or the runtime.
    pub field: Option<String>,
}

impl Failure {
    /// A plugin's own words, cleaned.
    #[must_use]
    pub fn cleaned(message: &str, field: Option<&str>) -> Self {
        Self {
            message: clean(message),
            field: field.map(clean),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{field}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}
