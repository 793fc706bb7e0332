//! Which version a plugin needs after a change.

use semver::Version;
use serde::Serialize;
use thiserror::Error;

/// Why the version of a changed plugin is wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub(crate) enum VersionProblem {
    /// The component differs.
    #[error(
        "the component differs, but its version is still {version}; raise the version in its manifest or Cargo.toml"
    )]
    Same {
        /// The version of both.
        version: String,
    },
    /// The changes need a higher version.
    #[error(
        "the changes break others, so the version must be at least {needed}, but it is {version}; raise it, or revert the changes"
    )]
    TooLow {
        /// The new version.
        version: String,
        /// The lowest version that tells users of the changes.
        needed: String,
    },
}

/// Returns what is wrong with the version of a component that differs from an earlier one, by the rules of semantic versions. A lower version
/// is a way back, to which no rule applies.
pub(crate) fn version_problem(old: &str, new: &str, is_breaking: bool) -> Option<VersionProblem> {
    let (before, after) = (Version::parse(old).ok()?, Version::parse(new).ok()?);
    // What follows `+` has no precedence.
    if after.cmp_precedence(&before).is_eq() {
        return Some(VersionProblem::Same {
            version: new.to_owned(),
        });
    }
    let needed = match before.major {
        0 => Version::new(0, before.minor.saturating_add(1), 0),
        major => Version::new(major.saturating_add(1), 0, 0),
    };
    // A pre-release of the needed version counts as it.
    let release = Version::new(after.major, after.minor, after.patch);
    // Nobody relies on a pre-release.
    let is_bound = is_breaking && before.pre.is_empty();
    (is_bound && after.cmp_precedence(&before).is_gt() && release < needed).then(|| {
        VersionProblem::TooLow {
            version: new.to_owned(),
            needed: needed.to_string(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaking_changes_raise_the_leftmost_number() {
        let needed = |old, new, is_breaking| match version_problem(old, new, is_breaking) {
            Some(VersionProblem::TooLow { needed, .. }) => Some(needed),
            Some(VersionProblem::Same { .. }) => Some("another".to_owned()),
            None => None,
        };
        let table = [
            ("1.2.3", "1.3.0", true, Some("2.0.0")),
            ("1.2.3", "2.0.0", true, None),
            ("1.2.3", "2.0.0-rc.1", true, None),
            ("0.2.3", "0.2.4", true, Some("0.3.0")),
            ("0.2.3", "0.3.0", true, None),
            ("1.2.3", "1.2.4", false, None),
            ("1.2.3", "1.2.3", false, Some("another")),
            ("1.2.3+b", "1.2.3+a", true, Some("another")),
            ("1.2.3", "1.1.0", true, None),
            ("1.0.0-rc.1", "1.0.0-rc.2", true, None),
            (
                "18446744073709551615.0.0",
                "18446744073709551615.1.0",
                true,
                None,
            ),
        ];
        for (old, new, is_breaking, expected) in table {
            let found = needed(old, new, is_breaking);
            assert_eq!(found.as_deref(), expected, "{old} to {new}");
        }
    }
}
