//! The policy file: what the operator allows, limits and sets for plugins, without a cluster.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;
use trainyard_api::{FieldPath, yaml};
use trainyard_model::{
    claims::{ClaimPath, Grants},
    limits::Limits,
    plugin::Settings,
    record::Accelerators,
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
    #[error("{file}: can't be read: {source}")]
    Read {
        file: String,
        source: std::io::Error,
    },
    #[error("{file}: has more than {MAX_BYTES} bytes")]
    TooLarge { file: String },
    #[error("{file}: line {}, column {}: {}", source.line, source.column, source.kind)]
    Yaml { file: String, source: yaml::Error },
    #[error("{file}: holds {documents} documents; a policy file is one")]
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
        let text = read_text(path, &file).map_err(|error| vec![error])?;
        let documents: Result<Vec<_>, _> = yaml::read(&text).into_iter().collect();
        let mut documents = documents.map_err(|source| {
            vec![PolicyFileError::Yaml {
                file: file.clone(),
                source,
            }]
        })?;
        let (Some(document), true) = (documents.pop(), documents.is_empty()) else {
            return Err(vec![PolicyFileError::Documents {
                file,
                documents: documents.len() + 1,
            }]);
        };
        let mut value = document.value;
        trainyard_api::nulls::drop_nulls(&mut value);
        check(&file, &value)?;
        let wrong = |field: String, problem: String| {
            vec![PolicyFileError::Field {
                file: file.clone(),
                field,
                problem,
            }]
        };
        let policy: Self = serde_json::from_value(value)
            .map_err(|error| wrong("(root)".to_owned(), error.to_string()))?;
        for (at, plugin) in policy.plugins.iter().enumerate() {
            if policy
                .plugins
                .iter()
                .take(at)
                .any(|earlier| earlier.name == plugin.name)
            {
                return Err(wrong(
                    format!("plugins[{at}].name"),
                    format!("`{}` is there twice", plugin.name),
                ));
            }
        }
        Ok(policy)
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

fn read_text(path: &Path, file: &str) -> Result<String, PolicyFileError> {
    use std::io::Read as _;
    let read = |source| PolicyFileError::Read {
        file: file.to_owned(),
        source,
    };
    let mut text = String::new();
    let opened = std::fs::File::open(path).map_err(read)?;
    opened
        .take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(read)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(PolicyFileError::TooLarge {
            file: file.to_owned(),
        });
    }
    Ok(text)
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
            problem: trainyard_model::text::clean(&error.to_string()),
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
