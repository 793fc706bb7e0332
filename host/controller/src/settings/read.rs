//! From a file to settings, or to all that is wrong with it.

use std::{fmt, io::Read as _, path::Path};

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;
use trainyard_api::{FieldPath, nulls, yaml};
use trainyard_model::{text, wording};

use super::{
    Settings, check,
    file::{self, ControllerConfiguration},
    reference::{self, Configuration},
};

/// The most bytes that a configuration file may have.
const MAX_BYTES: u64 = 1 << 20;

/// What a file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// What in the file has no effect, or another one than its author may expect.
    pub warnings: Vec<Warning>,
}

/// Something that does not mean what it seems to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Its path.
    pub field: String,
    /// What it means instead.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.text)
    }
}

/// One thing that is wrong with a configuration file.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// It can't be read.
    #[error("{file}: can't be read: {source}")]
    Read {
        /// The file.
        file: String,
        /// Why not.
        source: std::io::Error,
    },
    /// It is no configuration, by its size.
    #[error("{file}: has more than {MAX_BYTES} bytes")]
    TooLarge {
        /// The file.
        file: String,
    },
    /// It is no YAML.
    #[error("{file}: line {}, column {}: {}", source.line, source.column, source.kind)]
    Yaml {
        /// The file.
        file: String,
        /// What is wrong, and where.
        source: yaml::Error,
    },
    /// It holds no document, or several.
    #[error("{file}: holds {documents} documents; a configuration file is one")]
    Documents {
        /// The file.
        file: String,
        /// How many.
        documents: usize,
    },
    /// It is of another kind.
    #[error(
        "{file}: is of kind {found}; write `apiVersion: trainyard.dev/v1alpha1` and `kind: ControllerConfiguration` \
         (or `config.trainer.kubeflow.org/v1alpha1` and `Configuration`)"
    )]
    Kind {
        /// The file.
        file: String,
        /// Its apiVersion and kind.
        found: String,
    },
    /// A field is wrong.
    #[error("{file}: {field}: {problem}")]
    Field {
        /// The file.
        file: String,
        /// Its path.
        field: String,
        /// What is wrong there.
        problem: String,
    },
}

impl Loaded {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn read(path: &Path) -> Result<Self, Vec<SettingsError>> {
        let file = path.display().to_string();
        let text = read_text(path, &file).map_err(|error| vec![error])?;
        Self::parse(&file, &text)
    }

    /// Reads the text of a configuration file, which errors name `file`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<SettingsError>> {
        let value = document(file, text)?;
        let word = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or("(none)");
        match (word("apiVersion"), word("kind")) {
            ("trainyard.dev/v1alpha1", "ControllerConfiguration") => {
                let read: ControllerConfiguration = typed(file, &file::schema(), &value)?;
                Ok(Self {
                    settings: read.resolve(),
                    warnings: Vec::new(),
                })
            }
            ("config.trainer.kubeflow.org/v1alpha1", "Configuration") => {
                let schema = reference::schema().map_err(|error| wrong(file, &error))?;
                let read: Configuration = typed(file, &schema, &value)?;
                let (settings, warnings) = read.resolve(&value);
                Ok(Self { settings, warnings })
            }
            (version, kind) => Err(vec![SettingsError::Kind {
                file: file.to_owned(),
                found: text::clean(&format!("{version} {kind}")),
            }]),
        }
    }
}

fn read_text(path: &Path, file: &str) -> Result<String, SettingsError> {
    let read = |source| SettingsError::Read {
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
        return Err(SettingsError::TooLarge {
            file: file.to_owned(),
        });
    }
    Ok(text)
}

/// The one document of a text, without nulls.
fn document(file: &str, text: &str) -> Result<Value, Vec<SettingsError>> {
    let documents: Result<Vec<_>, _> = yaml::read(text).into_iter().collect();
    let mut documents = documents.map_err(|source| {
        let file = file.to_owned();
        vec![SettingsError::Yaml { file, source }]
    })?;
    let count = documents.len();
    let (Some(document), 1) = (documents.pop(), count) else {
        return Err(vec![SettingsError::Documents {
            file: file.to_owned(),
            documents: count,
        }]);
    };
    let mut value = document.value;
    nulls::drop_nulls(&mut value);
    Ok(value)
}

/// Reads a value that its schema and the checks allow.
fn typed<T: DeserializeOwned>(
    file: &str,
    schema: &Value,
    value: &Value,
) -> Result<T, Vec<SettingsError>> {
    let validator = jsonschema::validator_for(schema).map_err(|error| wrong(file, &error))?;
    let mut errors: Vec<check::Wrong> = validator
        .iter_errors(value)
        .map(|error| (error.instance_path().to_string(), problem(&error)))
        .collect();
    errors.extend(check::check(value, &errors));
    if errors.is_empty() {
        return T::deserialize(value).map_err(|error| wrong(file, &error));
    }
    let field = |(pointer, problem): (String, String)| SettingsError::Field {
        file: file.to_owned(),
        field: match FieldPath::root().below_pointer(&pointer) {
            path if path.is_root() => "(root)".to_owned(),
            path => path.to_string(),
        },
        problem: text::clean(&problem),
    };
    Err(errors.into_iter().map(field).collect())
}

/// What is wrong with a value by the schema. The one pattern of both schemas is that of a duration.
fn problem(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Pattern { pattern } if pattern == file::DURATION => {
            wording::must(error, "a duration, such as 15s, 1m30s or 500ms")
        }
        _ => wording::problem(error),
    }
}

/// What the schema should have refused.
fn wrong(file: &str, error: &impl ToString) -> Vec<SettingsError> {
    vec![SettingsError::Field {
        file: file.to_owned(),
        field: "(root)".to_owned(),
        problem: error.to_string(),
    }]
}
