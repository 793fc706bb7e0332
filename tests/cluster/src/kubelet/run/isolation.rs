//! How the pods of this machine are kept apart.

use trainyard_pods::{Machine, Rights};

/// How pods are kept apart when their containers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// By namespaces that root created.
    Root,
    /// By namespaces in a user namespace: containers can't have another user, and volumes no `fsGroup`.
    User,
    /// Not at all: pods are processes of this machine with addresses of its loopback interface. They can't mount volumes.
    Loopback,
}

impl Isolation {
    /// Tries what this user may do.
    pub fn detect() -> Self {
        match Machine::start() {
            Ok(machine) => Self::of(machine.rights()),
            Err(_) => Self::Loopback,
        }
    }

    pub(super) fn of(rights: Rights) -> Self {
        match rights {
            Rights::Root => Self::Root,
            Rights::UserNamespaces => Self::User,
        }
    }
}
