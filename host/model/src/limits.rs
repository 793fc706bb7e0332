//! The limits of a plugin: of its calls, and of compiling it. Each has a default, a setting in the plugin's PolicyPlugin, and an error of
//! its own.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limits of one plugin call. In a PolicyPlugin, each is optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of all linear memories and tables together. Default 32 MiB.
    #[schemars(range(min = 65536))]
    pub memory_bytes: u64,
    /// Fuel: instructions, and work of the host by size. Default 100 million.
    #[schemars(range(min = 1))]
    pub fuel: u64,
    /// Wall-clock milliseconds, in addition to fuel. Default 2,000.
    #[schemars(range(min = 10))]
    pub wall_clock_ms: u64,
    /// Bytes passed through imports, in both directions. Default 8 MiB.
    #[schemars(range(min = 1024))]
    pub import_bytes: u64,
    /// Handles returned to the guest. Default 65,536.
    #[schemars(range(min = 1))]
    pub handles: u64,
    /// Writes to the record and to objects. Default 16,384.
    #[schemars(range(min = 1))]
    pub writes: u64,
    /// Log lines, warnings and errors. Default 256.
    #[schemars(range(min = 1))]
    pub log_lines: u64,
    /// Containers and init containers that the plugin adds to one TrainJob, in all pod sets. All plugins of a TrainJob together
    /// add at most the largest of their limits. Default 16.
    #[schemars(range(min = 0))]
    pub containers: u64,
    /// Objects that the plugin emits for one TrainJob. All plugins of a TrainJob together emit at most the largest of their
    /// limits. Default 16.
    #[schemars(range(min = 0))]
    pub objects: u64,
    /// Key pairs and random strings for one TrainJob. Default 16.
    #[schemars(range(min = 0))]
    pub key_material: u64,
    /// Bytes of the strings that the plugin keeps for later phases, including their keys and 32 bytes each. Default 64 KiB.
    #[schemars(range(min = 0))]
    pub kept_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 32 << 20,
            fuel: 100_000_000,
            wall_clock_ms: 2_000,
            import_bytes: 8 << 20,
            handles: 65_536,
            writes: 16_384,
            log_lines: 256,
            containers: 16,
            objects: 16,
            key_material: 16,
            kept_bytes: 64 << 10,
        }
    }
}

/// The limits of checking and compiling a plugin. In a PolicyPlugin, each is optional and raises or lowers the default of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CompileLimits {
    /// Seconds of CPU time. Default 60. On a busy machine, it may take twice as long.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3600))]
    pub seconds: Option<u32>,
    /// Bytes of memory. Default 2 GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 67_108_864))]
    pub memory_bytes: Option<u64>,
}

/// A limit of a call, with its amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of all memories and tables.
    Memory(u64),
    /// Instructions.
    Fuel(u64),
    /// Bytes of the stack.
    Stack(u64),
    /// Bytes over all imports.
    ImportBytes(u64),
    /// Handles.
    Handles(u64),
    /// Writes.
    Writes(u64),
    /// Log lines, warnings and errors.
    LogLines(u64),
    /// Containers and init containers added to a TrainJob.
    Containers(u64),
    /// Objects emitted for a TrainJob.
    Objects(u64),
    /// Key pairs and random texts made for a TrainJob.
    KeyMaterial(u64),
    /// Bytes of kept texts.
    KeptBytes(u64),
}

impl Limit {
    /// The error of a call that exceeded it.
    pub(crate) fn exceeded(self) -> String {
        let setting = match self {
            Self::Memory(_) => "memoryBytes",
            Self::Fuel(_) => "fuel",
            Self::ImportBytes(_) => "importBytes",
            Self::Handles(_) => "handles",
            Self::Writes(_) => "writes",
            Self::LogLines(_) => "logLines",
            Self::Containers(_) => "containers",
            Self::Objects(_) => "objects",
            Self::KeyMaterial(_) => "keyMaterial",
            Self::KeptBytes(_) => "keptBytes",
            Self::Stack(_) => {
                return format!("exceeded its limit of {self}; the plugin recurses too deeply");
            }
        };
        format!("exceeded its limit of {self}; raise `limits.{setting}` in its PolicyPlugin")
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(n) => write!(f, "{n} bytes of memory"),
            Self::Fuel(n) => write!(f, "{n} units of fuel"),
            Self::Stack(n) => write!(f, "{n} bytes of stack"),
            Self::ImportBytes(n) => write!(f, "{n} bytes over imports"),
            Self::Handles(n) => write!(f, "{n} handles"),
            Self::Writes(n) => write!(f, "{n} writes"),
            Self::LogLines(n) => write!(f, "{n} log lines"),
            Self::Containers(n) => write!(f, "{n} added containers"),
            Self::Objects(n) => write!(f, "{n} emitted objects"),
            Self::KeyMaterial(n) => write!(f, "{n} key pairs and random texts"),
            Self::KeptBytes(n) => write!(f, "{n} bytes of kept texts"),
        }
    }
}
