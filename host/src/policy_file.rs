//! The policy file: what the operator allows, limits and sets for plugins, without a cluster.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::Path,
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;
use trainyard_api::{FieldPath, error::InputProblem, inputs::read_file, yaml};
use trainyard_model::{
    claims::{ClaimPath, Grants},
    limits::Limits,
    plugin::Settings,
    record::Accelerators,
    text::clean,
};
use trainyard_render::ClusterFacts;

use crate::{output, report::Failure};

/// The most bytes that a policy file may have.
const MAX_BYTES: u64 = 1 << 20;

/// What the operator sets for plugins, and for all TrainJobs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PolicyFile {
    /// `trainyard.dev/v1alpha1`.
    #[serde(rename = "apiVersion")]
    #[schemars(extend("const" = "trainyard.dev/v1alpha1"))]
    _api_version: String,
    /// `PolicyFile`.
    #[serde(rename = "kind")]
    #[schemars(extend("const" = "PolicyFile"))]
    _kind: String,
    /// Resource names that count as accelerators, instead of the shipped list; a trailing `*` stands for any ending.
    #[serde(default)]
    accelerators: Option<Vec<String>>,
    /// The cluster's DNS domain. Default `cluster.local`.
    #[serde(default)]
    #[schemars(length(min = 1, max = 253))]
    cluster_domain: Option<String>,
    /// Settings of plugins, by name.
    #[serde(default)]
    plugins: Vec<PluginPolicy>,
}

/// What the operator sets for one plugin.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PluginPolicy {
    /// The plugin's name.
    #[schemars(length(min = 1, max = 63))]
    name: String,
    /// The only content that is accepted under this name: `sha256:` and 64 hexadecimal digits.
    #[serde(default)]
    #[schemars(regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    digest: Option<String>,
    /// What it may write beyond the default: paths of claims.
    #[serde(default)]
    grants: Vec<ClaimPath>,
    /// What one call of it may use.
    #[serde(default)]
    limits: Limits,
    /// Its configuration, checked by the schema in its manifest.
    #[serde(default)]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    config: Option<Value>,
    /// Plugins that run before it where both write a path.
    #[serde(default)]
    after: Vec<String>,
    /// Plugins that run after it where both write a path.
    #[serde(default)]
    before: Vec<String>,
}

/// Why a policy file, or a plugin under it, is refused.
#[derive(Debug, Error)]
pub(crate) enum PolicyFileError {
    #[error("{file}: {problem}")]
    Read { file: String, problem: InputProblem },
    #[error("{file}: line {}, column {}: {}", source.line, source.column, source.kind)]
    Yaml { file: String, source: yaml::Error },
    #[error(
        "{file}: is empty: a policy file begins with `apiVersion: trainyard.dev/v1alpha1` and `kind: PolicyFile`"
    )]
    Empty { file: String },
    #[error("{file}: holds {documents} documents; a policy file is one: join them")]
    Documents { file: String, documents: usize },
    #[error("{file}: {field}: {problem}")]
    Field {
        file: String,
        field: String,
        problem: String,
    },
}

impl PolicyFile {
    /// Reads a policy file.
    pub(crate) fn read(path: &Path) -> Result<Self, Vec<PolicyFileError>> {
        let file = path.display().to_string();
        let mut value = read_document(path, &file)?;
        trainyard_api::nulls::drop_nulls(&mut value);
        check(&file, &value)?;
        let policy: Self = serde_path_to_error::deserialize(value).map_err(|error| {
            vec![PolicyFileError::Field {
                file: file.clone(),
                field: error.path().to_string(),
                problem: clean(&error.inner().to_string()),
            }]
        })?;
        let twice = policy.twice(&file);
        if twice.is_empty() {
            Ok(policy)
        } else {
            Err(twice)
        }
    }

    /// An error for each plugin that an earlier entry speaks of.
    fn twice(&self, file: &str) -> Vec<PolicyFileError> {
        let mut first = BTreeMap::new();
        let mut errors = Vec::new();
        for (at, plugin) in self.plugins.iter().enumerate() {
            match first.entry(&plugin.name) {
                Entry::Vacant(entry) => _ = entry.insert(at),
                Entry::Occupied(first) => errors.push(PolicyFileError::Field {
                    file: file.to_owned(),
                    field: format!("plugins[{at}].name"),
                    problem: format!(
                        "`{}` is there twice, in plugins[{}] first: make one entry of the two",
                        plugin.name,
                        first.get()
                    ),
                }),
            }
        }
        errors
    }

    /// What it says of all TrainJobs.
    pub(crate) fn facts(&self) -> ClusterFacts {
        let mut facts = ClusterFacts::default();
        if let Some(names) = &self.accelerators {
            facts.accelerators = Accelerators::new(names.iter().map(String::as_str));
        }
        if let Some(domain) = &self.cluster_domain {
            facts.cluster_domain.clone_from(domain);
        }
        facts
    }

    /// The settings of a plugin, over its defaults.
    pub(crate) fn settings(&self, name: &str, mut defaults: Settings) -> Settings {
        let Some(plugin) = self.plugins.iter().find(|plugin| plugin.name == name) else {
            return defaults;
        };
        if let Grants::Paths(paths) = &mut defaults.grants {
            paths.extend(plugin.grants.iter().cloned());
        }
        if let Some(config) = &plugin.config {
            defaults.operator_config = std::sync::Arc::new(config.clone());
        }
        defaults.limits = plugin.limits;
        defaults.digest.clone_from(&plugin.digest);
        defaults.after.extend(plugin.after.iter().cloned());
        defaults.before.extend(plugin.before.iter().cloned());
        defaults
    }

    /// The names that it speaks of.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.plugins.iter().map(|plugin| plugin.name.as_str())
    }
}

/// The one document of the file.
fn read_document(path: &Path, file: &str) -> Result<Value, Vec<PolicyFileError>> {
    let file = || file.to_owned();
    let text = read_file(path, MAX_BYTES).map_err(|problem| {
        vec![PolicyFileError::Read {
            file: file(),
            problem,
        }]
    })?;
    let documents: Result<Vec<_>, _> = yaml::read(&text).into_iter().collect();
    let mut documents = documents.map_err(|source| {
        vec![PolicyFileError::Yaml {
            file: file(),
            source,
        }]
    })?;
    match (documents.len(), documents.pop()) {
        (1, Some(document)) => Ok(document.value),
        (0, _) => Err(vec![PolicyFileError::Empty { file: file() }]),
        (documents, _) => Err(vec![PolicyFileError::Documents {
            file: file(),
            documents,
        }]),
    }
}

/// Checks by the JSON Schema: all that is wrong at once, each with its field.
fn check(file: &str, value: &Value) -> Result<(), Vec<PolicyFileError>> {
    let schema = schema();
    let validator = match jsonschema::validator_for(&schema) {
        Ok(validator) => validator,
        Err(error) => {
            let (field, problem) = ("(schema)".to_owned(), error.to_string());
            return Err(vec![PolicyFileError::Field {
                file: file.to_owned(),
                field,
                problem,
            }]);
        }
    };
    let errors: Vec<_> = validator
        .iter_errors(value)
        .map(|error| PolicyFileError::Field {
            file: file.to_owned(),
            field: match FieldPath::root().below_pointer(error.instance_path().as_str()) {
                path if path.is_root() => "(root)".to_owned(),
                path => path.to_string(),
            },
            problem: clean(&error.to_string()),
        })
        .collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

fn schema() -> Value {
    schemars::schema_for!(PolicyFile).to_value()
}

/// `trainyard policy-schema`.
pub(crate) fn print_schema() -> Result<(), Failure> {
    output::json(&schema())
}
