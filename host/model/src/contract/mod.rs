//! The contract in `wit/`: its version, its handles, and its values (in [`crate::value`]).
//!
//! tools/bindings generates what follows from `wit/`.

/// Defines a type for each resource.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub u32);

        impl crate::contract::Handle for $name {
            fn of(number: u32) -> Self {
                Self(number)
            }

            fn number(self) -> u32 {
                self.0
            }
        }
    )+};
}

pub mod handle;
pub(crate) mod records;
mod version;

use semver::Version;

pub use self::version::{PACKAGE, VERSION};

/// A number that identifies something within one call. A sandboxed plugin cannot forge one: it can use only handles that it was given.
pub trait Handle: Copy {
    /// The handle of a number.
    fn of(number: u32) -> Self;

    /// The number of the handle.
    fn number(self) -> u32;
}

/// The full name of an interface of the contract, such as `trainyard:policy/context@1.0.0`.
#[must_use]
pub fn interface(name: &str) -> String {
    interface_of(name, VERSION)
}

/// The full name of an interface in that version of the contract.
#[must_use]
pub fn interface_of(name: &str, version: &str) -> String {
    format!("{PACKAGE}/{name}@{version}")
}

/// The short name of an interface, such as `context`. `None` if it is not part of this contract, or of a version that a host of version
/// `ours` does not support.
#[must_use]
pub fn short_name<'n>(interface: &'n str, ours: &str) -> Option<&'n str> {
    let (name, version) = interface.split_once('@')?;
    let name = name.strip_prefix(PACKAGE)?.strip_prefix('/')?;
    (version_support(version, ours) == VersionSupport::Supported).then_some(name)
}

/// How a version of the contract relates to the host's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionSupport {
    /// From 1.0.0 up to the host's own version, all of which the host supports.
    Supported,
    /// Newer than the host's own.
    Newer,
    /// Never released, or not a version.
    Unknown,
}

/// Compares a plugin's version of the contract with that of a host.
#[must_use]
pub fn version_support(theirs: &str, ours: &str) -> VersionSupport {
    let (Ok(theirs), Ok(ours)) = (Version::parse(theirs), Version::parse(ours)) else {
        return VersionSupport::Unknown;
    };
    let first = Version::new(ours.major, 0, 0);
    if !theirs.pre.is_empty() || !theirs.build.is_empty() || theirs < first {
        VersionSupport::Unknown
    } else if theirs > ours {
        VersionSupport::Newer
    } else {
        VersionSupport::Supported
    }
}
