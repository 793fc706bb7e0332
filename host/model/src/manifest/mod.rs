//! A plugin's manifest: JSON in a custom section of the component, read without running it.

mod active_when;
mod check;
mod parts;
mod when;

use std::{collections::BTreeSet, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

pub use self::{
    active_when::{ActiveWhen, Union},
    check::FieldProblem,
    parts::{FILE_SECTION, FROM_CODE, Origin, PARTS_SECTION, PartsError},
    when::{ConfigCondition, ReservedEnv, ReservedNames, TextCondition},
};
use crate::{
    claims::{ClaimPath, ClaimScope, Claims, KeyPattern, PodSetPattern, permission},
    contract::{self, VERSION, VersionSupport},
    phase::Phase,
    record::{Field, ObeyedDomains, Permission},
    schema::Schema,
    text::{clean, join},
};

/// The custom section, at the top level of the component, that holds the manifest.
pub const SECTION: &str = "trainyard:manifest";

/// The key by which a manifest may name its JSON Schema. It is ignored.
pub const SCHEMA_KEY: &str = "$schema";

/// The longest manifest, in bytes.
pub const MAX_BYTES: usize = 256 << 10;

/// A plugin's manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// The plugin's name, a DNS label. Plugins without another order run in the order of their names.
    pub name: String,
    /// The plugin's version, a semantic version.
    pub version: String,
    /// The version of the contract that the plugin was built for.
    pub contract: String,
    /// One sentence that describes the plugin.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// When the plugin is active: `mlPolicy.KEY` (the runtime's `mlPolicy` has the key), `mlPolicy.plugin` (it names the
    /// plugin), `podGroupPolicy.KEY` and `podGroupPolicy.plugin` (the same for gang scheduling), `plugins` (the runtime's list
    /// names it), `resourceClaims` (the pods have resource claims) or `always`.
    pub active_when: ActiveWhen,
    /// The phases that the plugin exports: `transform`, `build`, `check`.
    pub phases: Vec<Phase>,
    /// The pod sets whose pods are the nodes when this plugin is active; otherwise those with the trainer ancestor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_sets: Vec<NodeSet>,
    /// What the plugin reads, creates and writes.
    #[serde(default)]
    pub claims: Claims,
    /// Plugins that run before this one if both write the same path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Plugins that run after this one if both write the same path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// Plugins that cannot work beside this one, which a runtime names: a TrainJob that would activate both is refused, and their
    /// claims do not conflict. The operator's order of the two (`after`, `before`) takes precedence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
    /// Env vars that a TrainJob cannot set to another value, and with which this plugin can replace the runtime's value: names, or
    /// `{"names": [NAME, ...], "when": ...}` for certain configurations, with `when` as in `nodeSets`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved_env: Vec<ReservedEnv>,
    /// The schema of the plugin's configuration in the runtime, in the subset of JSON Schema in docs/write-a-plugin.md; absent if
    /// it has no configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Schema>,
    /// The schema of the plugin's configuration in its PolicyPlugin, in the same subset; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_config_schema: Option<Schema>,
}

/// A pod set whose pods are the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeSet {
    /// The replicated job's name.
    pub pod_set: String,
    /// A condition on the plugin's configuration: a pointer to a boolean, or `{"at": POINTER, "in": [STRING, ...]}`. Always true if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<ConfigCondition>,
}

impl NodeSet {
    /// The path of the pod set's count, for grants and `plan --claims`.
    #[must_use]
    pub fn count(&self) -> ClaimPath {
        let name = KeyPattern::Literal(self.pod_set.as_str().into());
        ClaimPath {
            scope: ClaimScope::PodSet(PodSetPattern::Named(name)),
            field: Field::Count,
            key: None,
        }
    }
}

impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.when {
            None => write!(f, "{}", self.count()),
            Some(when) => write!(f, "{} {when}", self.count()),
        }
    }
}

/// Why a manifest is refused.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// Longer than [`MAX_BYTES`].
    #[error("the manifest has {0} bytes, but at most {MAX_BYTES} are allowed")]
    TooLong(usize),
    /// Not JSON.
    #[error("the manifest is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Fields are missing or unknown, or have values of the wrong form: all of them, each with its path.
    #[error("the manifest is not valid: {}", join(.0, "; "))]
    Form(Vec<String>),
    /// Built for a newer contract than that of this host.
    #[error(
        "built for contract {theirs}, but this host supports contracts up to {ours}; upgrade the host, or build the plugin with the SDK of this host's release"
    )]
    Newer {
        /// The manifest's version.
        theirs: String,
        /// The host's.
        ours: String,
    },
    /// Built for a contract that was never released.
    #[error(
        "built for contract `{theirs}`, which this host (contract {ours}) does not support; build the plugin with the SDK of this host's release"
    )]
    Contract {
        /// The manifest's version.
        theirs: String,
        /// The host's.
        ours: String,
    },
    /// Values of fields are wrong: all of them.
    #[error("the manifest's {}", join(.0, "; its "))]
    Fields(Vec<FieldProblem>),
}

fn at(path: &str, problem: &str) -> String {
    match path {
        "" => clean(problem),
        path => clean(&format!("`{path}`: {problem}")),
    }
}

/// Finds all errors of a manifest that its JSON Schema expresses; serde stops at the first one.
fn schema_errors(manifest: &Value) -> Vec<String> {
    let schema = Schema::new(schemars::schema_for!(Manifest).to_value());
    let errors = schema.map(|schema| schema.field_errors(manifest, &[active_when::DESCRIBED]));
    let errors = errors.unwrap_or_default().into_iter();
    let errors = errors.map(|error| at(&error.field.to_string(), &error.problem));
    errors.collect()
}

impl Manifest {
    /// Reads and checks a manifest. Grants are checked later, when the plugin is loaded.
    ///
    /// # Errors
    /// Why it cannot be parsed, or everything that is invalid in it.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        Self::parse_for(VERSION, bytes)
    }

    /// Like [`Self::parse`], for a host with that version of the contract.
    ///
    /// # Errors
    /// Why it cannot be parsed, or everything that is invalid in it.
    pub fn parse_for(ours: &str, bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() > MAX_BYTES {
            return Err(ManifestError::TooLong(bytes.len()));
        }
        let mut json: Value = serde_json::from_slice(bytes)?;
        if let Some(theirs) = json.get("contract").and_then(Value::as_str) {
            let support = contract::version_support(theirs, ours);
            let (theirs, ours) = (clean(theirs), ours.to_owned());
            match support {
                VersionSupport::Supported => {}
                VersionSupport::Newer => return Err(ManifestError::Newer { theirs, ours }),
                VersionSupport::Unknown => return Err(ManifestError::Contract { theirs, ours }),
            }
        }
        // It is for the author's editor.
        if let Some(members) = json.as_object_mut() {
            members.remove(SCHEMA_KEY);
        }
        let manifest: Self = serde_path_to_error::deserialize(&json).map_err(|error| {
            let mut errors = schema_errors(&json);
            if errors.is_empty() {
                let path = error.path().to_string();
                let problem = error.inner().to_string();
                errors.push(at(path.trim_start_matches('.'), &problem));
            }
            ManifestError::Form(errors)
        })?;
        match manifest.problems() {
            problems if problems.is_empty() => Ok(manifest),
            problems => Err(ManifestError::Fields(problems)),
        }
    }

    /// Returns the paths that the operator has to grant before the plugin can be loaded, if controllers obey the keys of these domains.
    #[must_use]
    pub fn needed_grants(&self, obeyed: &ObeyedDomains) -> BTreeSet<ClaimPath> {
        let claims = self.claims.iter();
        let claims =
            claims.filter(|(verb, path)| permission(*verb, path, obeyed) == Permission::Grant);
        let counts = self.node_sets.iter().map(NodeSet::count);
        claims.map(|(_, path)| path.clone()).chain(counts).collect()
    }

    /// Whether a grant covers a claim, or the count of a pod set in `nodeSets`.
    #[must_use]
    pub fn uses(&self, grant: &ClaimPath) -> bool {
        let mut claims = self.claims.iter();
        let mut counts = self.node_sets.iter().map(NodeSet::count);
        claims.any(|(_, claim)| grant.covers(claim)) || counts.any(|count| grant.covers(&count))
    }

    /// Whether the plugin exports the phase.
    #[must_use]
    pub fn has(&self, phase: Phase) -> bool {
        self.phases.contains(&phase)
    }
}
