//! Values of the contract, made in one line.

use crate::{Failure, KeyFile, Mount, Port};

impl Port {
    /// A TCP port without a name.
    #[must_use]
    pub fn tcp(number: u16) -> Self {
        Self {
            number,
            protocol: "TCP".to_owned(),
            ..Self::default()
        }
    }

    /// The same port with a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same port, to which a port of the machine leads.
    #[must_use]
    pub fn host_port(mut self, number: u16) -> Self {
        self.host_port = Some(number);
        self
    }

    /// The same port, whose port of the machine listens at one address of it.
    #[must_use]
    pub fn host_ip(mut self, address: impl Into<String>) -> Self {
        self.host_ip = Some(address.into());
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
            ..Self::default()
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

    /// The same with `$(NAME)` for env vars of the container.
    #[must_use]
    pub fn sub_path_expr(mut self, path: impl Into<String>) -> Self {
        self.sub_path_expr = Some(path.into());
        self
    }

    /// The same mount, of which the container and its machine share later ones: `HostToContainer` or `Bidirectional`.
    #[must_use]
    pub fn mount_propagation(mut self, propagation: impl Into<String>) -> Self {
        self.mount_propagation = Some(propagation.into());
        self
    }

    /// The same mount, read-only with all that is mounted below it: `IfPossible` or `Enabled`.
    #[must_use]
    pub fn recursive_read_only(mut self, how: impl Into<String>) -> Self {
        self.read_only = true;
        self.recursive_read_only = Some(how.into());
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

impl Failure {
    /// Names the field where the user can mend it.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self {
            message,
            field: None,
        }
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}
