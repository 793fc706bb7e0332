//! Names that are reserved for objects of the host.
//!
//! An object's name is the TrainJob's name and a suffix, so TrainJob `a` with the suffix `-b-x` and TrainJob `a-b` with
//! the suffix `-x` have the same name. Names are therefore reserved by their ending. This table is used when a plugin's claims are
//! checked, when a plugin requests a name or emits an object, and when the controller names its own objects. An object without a suffix has
//! the name that the user gave the TrainJob, so no ending is reserved for it.

use std::fmt;

/// The ending of a runtime snapshot's name.
const RUNTIME_SNAPSHOT: &str = "-runtime-snapshot";

/// An ending that is reserved for the host.
#[derive(Debug, PartialEq, Eq)]
pub struct Reserved {
    ending: &'static str,
    keeps: &'static str,
}

/// All reserved endings. Objects that a later release adds are named `JOB-WHAT-trainyard`, so that they do not collide with a plugin of
/// today.
pub const RESERVED: &[Reserved] = &[
    Reserved {
        ending: RUNTIME_SNAPSHOT,
        keeps: "the runtime snapshots of TrainJobs",
    },
    Reserved {
        ending: "-trainyard",
        keeps: "objects of later releases",
    },
];

impl Reserved {
    /// The ending.
    #[must_use]
    pub const fn ending(&self) -> &'static str {
        self.ending
    }
}

impl fmt::Display for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "names that end in `{}` are reserved for {}",
            self.ending, self.keeps
        )
    }
}

/// Returns why an object's name or suffix is reserved, or `None` if a plugin may use it.
#[must_use]
pub fn reserved(name: &str) -> Option<&'static Reserved> {
    RESERVED
        .iter()
        .find(|reserved| name.ends_with(reserved.ending))
}

/// The name of a TrainJob's runtime snapshot.
#[must_use]
pub fn runtime_snapshot(job: &str) -> String {
    format!("{job}{RUNTIME_SNAPSHOT}")
}

/// Whether an object is the runtime snapshot of any TrainJob.
#[must_use]
pub fn is_runtime_snapshot(api_version: &str, kind: &str, name: &str) -> bool {
    (api_version, kind) == ("v1", "ConfigMap") && name.ends_with(RUNTIME_SNAPSHOT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::object_name;

    #[test]
    fn the_hosts_own_names_are_reserved() {
        assert!(reserved(&runtime_snapshot("job")).is_some());
        assert_eq!(reserved("job-runtime-snapshots"), None);
    }

    #[test]
    fn a_content_hash_is_never_a_reserved_ending() {
        for Reserved { ending, .. } in RESERVED {
            let name = object_name("job", "uid", ending, Some("content"));
            assert_eq!(reserved(&name), None, "{name}");
            assert!(!ending.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit()));
        }
    }
}
