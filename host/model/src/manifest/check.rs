//! Rules for a manifest's values that its type does not express.

use std::collections::BTreeSet;

use semver::Version;
use thiserror::Error;

use super::{ActiveWhen, ConfigCondition, Manifest, ReservedEnv};
use crate::{
    names::{is_dns_label, is_env_name},
    text::clean,
};

/// The longest version, in characters.
const MAX_VERSION: usize = 64;

/// The most names in one list of a manifest.
const MAX_NAMES: usize = 256;

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
    /// Returns everything that is wrong with its values.
    pub(super) fn problems(&self) -> Vec<FieldProblem> {
        let problems = [
            ("name", self.name_problem()),
            ("version", self.version_problem()),
            ("phases", self.phases_problem()),
            ("after", self.order_problem()),
            (
                "after",
                names_problem(&self.after, "a plugin", is_dns_label),
            ),
            (
                "before",
                names_problem(&self.before, "a plugin", is_dns_label),
            ),
            (
                "excludes",
                names_problem(&self.excludes, "a plugin", is_dns_label),
            ),
            ("excludes", self.excludes_problem()),
            ("reservedEnv", self.reserved_env_problem()),
            ("nodeSets", self.node_sets_problem()),
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

    /// Versions are printed in labels of metrics, in Events and in provenance, so their form is restricted.
    fn version_problem(&self) -> Option<String> {
        let is_version = self.version.len() <= MAX_VERSION && Version::parse(&self.version).is_ok();
        (!is_version).then(|| {
            format!(
                "must be a semantic version of at most {MAX_VERSION} characters, such as 1.2.3; found `{}`",
                clean(&self.version)
            )
        })
    }

    fn phases_problem(&self) -> Option<String> {
        let different: BTreeSet<_> = self.phases.iter().collect();
        let problem = match self.phases.len() {
            0 => "must have at least one of transform, build and check",
            len if different.len() < len => "has a duplicate phase; remove it",
            _ => return None,
        };
        Some(problem.to_owned())
    }

    fn node_sets_problem(&self) -> Option<String> {
        let names: Vec<_> = self
            .node_sets
            .iter()
            .map(|set| set.pod_set.clone())
            .collect();
        let mut whens = self.node_sets.iter().filter_map(|set| set.when.as_ref());
        names_problem(&names, "a pod set", is_dns_label).or_else(|| whens.find_map(pointer_problem))
    }

    fn reserved_env_problem(&self) -> Option<String> {
        let names = self.reserved_env.iter().flat_map(ReservedEnv::names);
        let names: Vec<_> = names.cloned().collect();
        let mut whens = self.reserved_env.iter().filter_map(ReservedEnv::when);
        names_problem(&names, "an env var", is_env_name).or_else(|| whens.find_map(pointer_problem))
    }

    /// A plugin that is active without being named would refuse every TrainJob of the other plugin.
    fn excludes_problem(&self) -> Option<String> {
        let is_named = !matches!(
            self.active_when,
            ActiveWhen::Always | ActiveWhen::ResourceClaims
        );
        if self.excludes.contains(&self.name) {
            return Some("names the plugin itself".to_owned());
        }
        (!is_named && !self.excludes.is_empty()).then(|| {
            format!(
                "is only for plugins that a runtime names, but this one is active by `{}`; remove it, and refuse in `check` what cannot work",
                self.active_when
            )
        })
    }

    fn order_problem(&self) -> Option<String> {
        if self.after.contains(&self.name) || self.before.contains(&self.name) {
            return Some("or `before` names the plugin itself".to_owned());
        }
        let before: BTreeSet<_> = self.before.iter().collect();
        let both = self.after.iter().find(|name| before.contains(name));
        both.map(|name| format!("and `before` both name `{name}`"))
    }
}

/// What is wrong with the pointer of a condition. An invalid pointer would not match in any configuration.
fn pointer_problem(when: &ConfigCondition) -> Option<String> {
    let pointer = when.pointer();
    let is_pointer = pointer.starts_with('/');
    (!is_pointer).then(|| {
        format!(
            "has the pointer `{}` into the configuration, which is not a JSON pointer; begin it with `/`",
            clean(pointer)
        )
    })
}

/// What is wrong with a list of names.
fn names_problem(names: &[String], of: &str, is_name: impl Fn(&str) -> bool) -> Option<String> {
    if names.len() > MAX_NAMES {
        return Some(format!(
            "has {} names, but at most {MAX_NAMES} are allowed",
            names.len()
        ));
    }
    let wrong = names.iter().find(|name| !is_name(name))?;
    Some(format!(
        "has `{}`, which is not the name of {of}",
        clean(wrong)
    ))
}
