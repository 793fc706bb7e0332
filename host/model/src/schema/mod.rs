//! The schemas of plugins' configurations, of manifests and of the operator's files: a closed subset of JSON Schema. The size of a schema is
//! bounded, and the work of applying it to a configuration is counted.

mod check;
mod defaults;
mod error;
mod levels;
mod limits;
mod node;
mod number;
mod problem;
mod read;
mod values;

use std::{fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use trainyard_text::{FieldPath, StackPath};

use self::{check::Check, limits::Budget, node::Nodes, problem::Problem};
pub use self::{
    error::{ANNOTATIONS, KEYWORDS, SchemaError, SchemaProblem},
    limits::{
        Exhausted, MAX_FILLED, MAX_LEVELS, MAX_PATTERN, MAX_PATTERNS, MAX_SCHEMA_LEVELS,
        MAX_SCHEMAS, MAX_STEPS,
    },
};

/// The root of a schema is its first node.
const ROOT: node::Id = 0;

/// A schema of a configuration.
#[derive(Clone)]
pub struct Schema {
    source: Value,
    nodes: Arc<Nodes>,
}

/// An error in a configuration.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{problem}", if field.is_root() { String::new() } else { format!("{field}: ") })]
pub struct ConfigError {
    /// The path from the root of the configuration.
    pub field: FieldPath,
    /// What is wrong there.
    pub problem: String,
}

impl From<Exhausted> for ConfigError {
    fn from(exhausted: Exhausted) -> Self {
        Self {
            field: FieldPath::root(),
            problem: exhausted.to_string(),
        }
    }
}

impl Schema {
    /// Parses a schema.
    ///
    /// # Errors
    /// The first keyword that is not in the subset, or a limit that is exceeded.
    pub fn new(source: Value) -> Result<Self, SchemaError> {
        let schema = Self {
            nodes: Arc::new(read::read(&source)?),
            source,
        };
        // Defaults that exceed the limit are reported when the plugin is loaded, not for each TrainJob.
        let filled = schema.fill(
            &mut Value::Object(serde_json::Map::new()),
            &mut Budget::new(),
        );
        filled.map_err(|exhausted| SchemaError {
            pointer: String::new(),
            problem: SchemaProblem::Defaults(exhausted),
        })?;
        Ok(schema)
    }

    /// The schema as its author wrote it.
    #[must_use]
    pub const fn source(&self) -> &Value {
        &self.source
    }

    /// Fills the defaults into a configuration and checks it.
    ///
    /// # Errors
    /// All errors, or that the check exceeds a limit.
    pub fn complete(&self, config: &mut Value) -> Result<(), Vec<ConfigError>> {
        self.complete_within(config, &mut Budget::new())
    }

    fn complete_within(
        &self,
        config: &mut Value,
        budget: &mut Budget,
    ) -> Result<(), Vec<ConfigError>> {
        let found = if values::is_deeper_than(config, MAX_LEVELS) {
            Err(Exhausted::Levels)
        } else {
            let filled = self.fill(config, budget);
            filled.and_then(|()| self.check(config, budget))
        };
        let most = budget.problems;
        match found {
            Ok(found) if found.is_empty() => Ok(()),
            Ok(found) => Err(found
                .into_iter()
                .flat_map(Problem::errors)
                .take(most)
                .collect()),
            Err(exhausted) => Err(vec![exhausted.into()]),
        }
    }

    /// Returns the errors of a file of bounded size, such as a manifest, by a schema of Trainyard itself. Each is at its field, which may be
    /// missing. `patterns` describes regular expressions of the schema by the strings that match: `a duration, such as 15s`.
    #[must_use]
    pub fn field_errors(&self, file: &Value, patterns: &[(&str, &str)]) -> Vec<ConfigError> {
        match self.check(file, &mut Budget::unlimited()) {
            Ok(found) => {
                let errors = found.into_iter();
                errors
                    .flat_map(|problem| problem.field_errors(patterns))
                    .collect()
            }
            Err(exhausted) => vec![exhausted.into()],
        }
    }

    fn fill(&self, config: &mut Value, budget: &mut Budget) -> Result<(), Exhausted> {
        defaults::fill(&self.nodes, ROOT, config, budget)
    }

    fn check(&self, value: &Value, budget: &mut Budget) -> Result<Vec<Problem<'_>>, Exhausted> {
        let (nodes, mut found) = (&*self.nodes, Vec::new());
        Check { nodes, budget }.value(ROOT, value, &StackPath::ROOT, None, &mut found)?;
        Ok(found)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Serialize for Schema {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.source.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Schema {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Schema".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Value::json_schema(generator)
    }
}
