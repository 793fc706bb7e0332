//! Records of the contract, made in one line. Natively they are the model's own, which has the same functions in
//! `value.rs`: Rust adds none to a type of another crate.

use super::{KeyFile, Mount, Port};

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
