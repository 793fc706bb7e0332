//! How the pods of this machine are kept apart.

use trainyard_pods::{Machine, Rights};

use super::sandbox;

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
    /// Returns the strongest one for which this user has the rights and this machine the programs.
    pub fn detect() -> Self {
        match [Self::Root, Self::User]
            .into_iter()
            .find(|it| it.is_possible())
        {
            Some(isolation) => isolation,
            None => Self::Loopback,
        }
    }

    /// Returns whether this user has the rights for it, and this machine the programs.
    pub fn is_possible(self) -> bool {
        match self {
            Self::Root => Machine::start_with(Rights::Root).is_ok(),
            Self::User => Machine::start_with(Rights::UserNamespaces).is_ok(),
            Self::Loopback => sandbox::names_can_be_mapped(),
        }
    }
}
