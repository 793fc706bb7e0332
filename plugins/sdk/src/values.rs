//! Constructors for values of the contract.

use crate::{Failure, KeyFile, Mount, Port};

impl Port {
    /// Creates a TCP port without a name.
    ///
    /// ```
    /// use trainyard_sdk::Port;
    ///
    /// let port = Port::tcp(9100).named("metrics");
    /// assert_eq!((port.number, &*port.protocol), (9100, "TCP"));
    /// ```
    #[must_use]
    pub fn tcp(number: u16) -> Self {
        Self {
            number,
            protocol: "TCP".to_owned(),
            ..Self::default()
        }
    }

    /// Sets the port's name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the port of the Kubernetes node that is forwarded to the port.
    #[must_use]
    pub fn host_port(mut self, number: u16) -> Self {
        self.host_port = Some(number);
        self
    }

    /// Sets the address of the Kubernetes node on which the host port listens.
    #[must_use]
    pub fn host_ip(mut self, address: impl Into<String>) -> Self {
        self.host_ip = Some(address.into());
        self
    }
}

impl Mount {
    /// Creates a writable mount of a whole volume at a path.
    ///
    /// ```
    /// use trainyard_sdk::Mount;
    ///
    /// let mount = Mount::new("settings", "/etc/tool.conf").sub_path("tool.conf").read_only();
    /// assert!(mount.read_only);
    /// ```
    #[must_use]
    pub fn new(volume: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            volume: volume.into(),
            path: path.into(),
            ..Self::default()
        }
    }

    /// Makes the mount read-only.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Mounts only this part of the volume.
    #[must_use]
    pub fn sub_path(mut self, path: impl Into<String>) -> Self {
        self.sub_path = Some(path.into());
        self
    }

    /// Mounts only this part of the volume, with `$(NAME)` for env vars of the container.
    #[must_use]
    pub fn sub_path_expr(mut self, path: impl Into<String>) -> Self {
        self.sub_path_expr = Some(path.into());
        self
    }

    /// Sets how later mounts are propagated between the container and its Kubernetes node: `HostToContainer` or `Bidirectional`.
    #[must_use]
    pub fn mount_propagation(mut self, propagation: impl Into<String>) -> Self {
        self.mount_propagation = Some(propagation.into());
        self
    }

    /// Makes the mount and all mounts below it read-only: `IfPossible` or `Enabled`.
    #[must_use]
    pub fn recursive_read_only(mut self, how: impl Into<String>) -> Self {
        self.read_only = true;
        self.recursive_read_only = Some(how.into());
        self
    }
}

impl KeyFile {
    /// Creates a file from a key, with the volume's permission bits.
    #[must_use]
    pub fn new(key: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            path: path.into(),
            mode: None,
        }
    }

    /// Sets the file's permission bits, such as `0o440`.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }
}

impl Failure {
    /// Sets the field that the user has to correct.
    ///
    /// ```
    /// use trainyard_sdk::Failure;
    ///
    /// fn check(nodes: u32) -> Result<(), Failure> {
    ///     match nodes {
    ///         0..=64 => Ok(()),
    ///         _ => Err(Failure::from("must be at most 64").at("spec.trainer.numNodes")),
    ///     }
    /// }
    /// # assert!(check(65).is_err());
    /// ```
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
