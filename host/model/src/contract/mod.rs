//! The contract of `wit/`: which one this host speaks, its handles, and its values (in [`crate::value`]).
//!
//! What only repeats `wit/` is printed by tools/bindings.

/// Makes a type of each resource.
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

/// A number that stands for something of one call. A policy in the sandbox can't make one up: it holds only what it was given.
pub trait Handle: Copy {
    /// The handle of a number.
    fn of(number: u32) -> Self;

    /// Its number.
    fn number(self) -> u32;
}

/// An interface of the contract by its whole name: `trainyard:policy/context@1.0.0`.
#[must_use]
pub fn interface(name: &str) -> String {
    interface_of(name, VERSION)
}

/// An interface of that version of the contract.
#[must_use]
pub fn interface_of(name: &str, version: &str) -> String {
    format!("{PACKAGE}/{name}@{version}")
}

/// The short name of an interface, `context`; none where it is none of this contract, or of a version that a host of version
/// `ours` does not speak.
#[must_use]
pub fn short_name<'n>(interface: &'n str, ours: &str) -> Option<&'n str> {
    let (name, version) = interface.split_once('@')?;
    let name = name.strip_prefix(PACKAGE)?.strip_prefix('/')?;
    (age(version, ours) == Age::Spoken).then_some(name)
}

/// How a version of the contract stands to the host's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// From 1.0.0 up to the host's own: everything of it is there.
    Spoken,
    /// It came after the host.
    Newer,
    /// It was never released, or is no version at all.
    Unknown,
}

/// How a plugin's version of the contract stands to the version of a host.
#[must_use]
pub fn age(theirs: &str, ours: &str) -> Age {
    let (Ok(theirs), Ok(ours)) = (Version::parse(theirs), Version::parse(ours)) else {
        return Age::Unknown;
    };
    let first = Version::new(ours.major, 0, 0);
    if !theirs.pre.is_empty() || !theirs.build.is_empty() || theirs < first {
        Age::Unknown
    } else if theirs > ours {
        Age::Newer
    } else {
        Age::Spoken
    }
}
