//! Names that the host keeps for objects of its own.
//!
//! An object's name is the TrainJob's name and a suffix, so that TrainJob `a` with the suffix `-b-x` and TrainJob `a-b` with
//! the suffix `-x` get one name. A name is therefore reserved by how it ends, whichever TrainJob it begins with. This is the
//! one table: a claim is compared with it when a plugin is loaded, a name when a plugin asks for it or emits an object, and
//! the controller names its own objects by it.

use std::fmt;

/// How the name of a TrainJob's runtime snapshot ends.
const RUNTIME_SNAPSHOT: &str = "-runtime-snapshot";

/// An ending that no object of a plugin has.
#[derive(Debug, PartialEq, Eq)]
pub struct Reserved {
    ending: &'static str,
    keeps: &'static str,
}

/// All endings that are reserved. What the host emits in a later release is named `JOB-WHAT-trainyard`, so that no plugin of
/// today has its name.
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

/// Returns why an object's name, or the suffix of one, is the host's, or `None` if a plugin may use it.
#[must_use]
pub fn reserved(name: &str) -> Option<&'static Reserved> {
    RESERVED
        .iter()
        .find(|reserved| name.ends_with(reserved.ending))
}

/// The name of the ConfigMap that is a TrainJob's runtime snapshot.
#[must_use]
pub fn runtime_snapshot(job: &str) -> String {
    format!("{job}{RUNTIME_SNAPSHOT}")
}

/// Whether an object is the runtime snapshot of a TrainJob, whichever that is.
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
