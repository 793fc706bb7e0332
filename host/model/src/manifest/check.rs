//! What a manifest's type can't say of its values.

use std::collections::BTreeSet;

use semver::Version;
use thiserror::Error;

use super::{CONTRACT, Manifest};
use crate::names::is_dns_label;

/// What is wrong with the value of one field.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{field}` {problem}")]
pub struct FieldProblem {
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

impl Manifest {
    /// All that is wrong with its values.
    pub(super) fn problems(&self) -> Vec<FieldProblem> {
        let problems = [
            ("name", self.name_problem()),
            ("version", self.version_problem()),
            ("phases", self.phases_problem()),
            ("after", self.order_problem()),
        ];
        problems
            .into_iter()
            .filter_map(|(field, problem)| problem.map(|problem| FieldProblem { field, problem }))
            .collect()
    }

    fn name_problem(&self) -> Option<String> {
        let problem = "must be a DNS label: at most 63 of a-z, 0-9 and `-`";
        (!is_dns_label(&self.name)).then(|| problem.to_owned())
    }

    fn version_problem(&self) -> Option<String> {
        let fits = (1..=64).contains(&self.version.len())
            && self.version.chars().all(|c| c.is_ascii_graphic());
        let problem = "must be 1 to 64 printable characters without blanks";
        (!fits).then(|| problem.to_owned())
    }

    fn phases_problem(&self) -> Option<String> {
        let different: BTreeSet<_> = self.phases.iter().collect();
        let problem = match self.phases.len() {
            0 => "is empty: a plugin has at least one of transform, build, check",
            len if different.len() < len => "names a phase twice",
            _ => return None,
        };
        Some(problem.to_owned())
    }

    fn order_problem(&self) -> Option<String> {
        if self.after.contains(&self.name) || self.before.contains(&self.name) {
            return Some("or `before` names the plugin itself".to_owned());
        }
        let both = self.after.iter().find(|name| self.before.contains(name));
        both.map(|name| format!("and `before` both name `{name}`"))
    }
}

/// Whether this host runs plugins of that contract version: the same major version, and no later minor version.
pub(super) fn speaks(version: &str) -> bool {
    match (Version::parse(version), Version::parse(CONTRACT)) {
        (Ok(theirs), Ok(ours)) => {
            theirs.major == ours.major && theirs.minor <= ours.minor && theirs.pre.is_empty()
        }
        _ => false,
    }
}
