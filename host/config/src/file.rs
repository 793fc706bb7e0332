//! Reads a file into a typed value, or reports all its errors.

use std::{collections::HashSet, path::Path};

use serde::de::DeserializeOwned;
use serde_json::Value;
use trainyard_api::{
    FieldPath, Location, error::InputProblem, inputs::read_file, list, nulls, yaml,
};
use trainyard_model::schema::{ConfigError as FieldError, Schema};
use trainyard_text::clean;

use crate::error::{ConfigError, ConfigProblem};

/// The maximum size of a configuration file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The maximum number of errors of a file that are reported.
pub const MAX_ERRORS: usize = 100;

/// An apiVersion and a kind of configuration files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeMeta {
    /// The apiVersion.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
}

/// The JSON Schema of a kind of configuration file.
#[derive(Debug)]
pub struct ConfigSchema<'s> {
    /// The schema.
    pub schema: &'s Value,
    /// The regular expressions of the schema, each with a description of the strings that match: `a duration, such as 15s`.
    pub patterns: &'s [(&'s str, &'s str)],
}

/// A configuration file: one YAML document, without nulls.
#[derive(Debug)]
pub struct ConfigFile {
    location: Location,
    value: Value,
    kinds: &'static [TypeMeta],
}

impl ConfigFile {
    /// Reads a file of one of the kinds.
    ///
    /// # Errors
    /// The file cannot be read, is not YAML, or does not hold exactly one document.
    pub fn read(path: &Path, kinds: &'static [TypeMeta]) -> Result<Self, ConfigError> {
        Self::read_with_text(path, kinds).map(|(file, _)| file)
    }

    /// Reads a file of one of the kinds, and returns its text too.
    ///
    /// # Errors
    /// The file cannot be read, is not YAML, or does not hold exactly one document.
    pub fn read_with_text(
        path: &Path,
        kinds: &'static [TypeMeta],
    ) -> Result<(Self, String), ConfigError> {
        let file = path.display().to_string();
        match read_file(path, MAX_BYTES) {
            Ok(text) => Self::parse(&file, &text, kinds).map(|file| (file, text)),
            Err(problem) => Err(ConfigError {
                location: Location::file(file),
                problem: problem.into(),
            }),
        }
    }

    /// Parses the text of a file. Errors name it as `file`.
    ///
    /// # Errors
    /// The text is not YAML, or does not hold exactly one document.
    pub fn parse(file: &str, text: &str, kinds: &'static [TypeMeta]) -> Result<Self, ConfigError> {
        let location = Location::file(file);
        let documents: Result<Vec<_>, _> = yaml::read(text).into_iter().collect();
        let problem = match documents {
            Err(error) => InputProblem::Yaml(error).into(),
            Ok(documents) => match <[yaml::Document; 1]>::try_from(documents) {
                Ok([document]) => {
                    let text = document.text(text);
                    let mut value = document.value;
                    nulls::drop_nulls(&mut value);
                    return Ok(Self {
                        location: Location { text, ..location },
                        value,
                        kinds,
                    });
                }
                Err(documents) if documents.is_empty() => ConfigProblem::Empty {
                    expected: headers(kinds),
                },
                Err(documents) => ConfigProblem::Documents {
                    documents: documents.len(),
                },
            },
        };
        Err(ConfigError { location, problem })
    }

    /// Reads a file of documents of these kinds, each of which may also be a `List`. Also returns the text.
    ///
    /// # Errors
    /// The file cannot be read, is not YAML, or has no document.
    pub fn read_all(
        path: &Path,
        kinds: &'static [TypeMeta],
    ) -> Result<(Vec<Self>, String), Vec<ConfigError>> {
        let location = Location::file(path.display().to_string());
        let refused = |problem| {
            let location = location.clone();
            vec![ConfigError { location, problem }]
        };
        let text = read_file(path, MAX_BYTES).map_err(|problem| refused(problem.into()))?;
        let documents: Result<Vec<_>, _> = yaml::read(&text).into_iter().collect();
        let documents = documents.map_err(|error| refused(InputProblem::Yaml(error).into()))?;
        if documents.is_empty() {
            let expected = headers(kinds);
            return Err(refused(ConfigProblem::Empty { expected }));
        }
        let is_one = documents.len() == 1;
        let mut all = Vec::new();
        for document in documents {
            let location = Location {
                text: document.text(&text),
                document: (!is_one).then_some(document.number),
                ..location.clone()
            };
            let mut value = document.value;
            nulls::drop_nulls(&mut value);
            match list::unpack(value) {
                Err(value) => all.push(Self {
                    location,
                    value,
                    kinds,
                }),
                Ok(items) => all.extend(items.into_iter().enumerate().map(|(at, value)| Self {
                    location: Location {
                        items: vec![at],
                        ..location.clone()
                    },
                    value,
                    kinds,
                })),
            }
        }
        Ok((all, text))
    }

    /// Returns the kind of the file.
    ///
    /// # Errors
    /// The file's kind is not one of the supported kinds.
    pub fn type_meta(&self) -> Result<TypeMeta, ConfigError> {
        let field = |name| self.value.get(name).and_then(Value::as_str);
        let (api_version, kind) = (field("apiVersion"), field("kind"));
        let is_it =
            |known: &&TypeMeta| Some(known.api_version) == api_version && Some(known.kind) == kind;
        let found = self.kinds.iter().find(is_it).copied();
        found.ok_or_else(|| ConfigError {
            location: self.location.clone(),
            problem: ConfigProblem::Kind {
                api_version: clean(api_version.unwrap_or("(none)")),
                kind: clean(kind.unwrap_or("(none)")),
                expected: headers(self.kinds),
            },
        })
    }

    /// Validates the file and deserializes it. `check` gets the errors of the schema, and adds those that a schema cannot express.
    ///
    /// # Errors
    /// The first [`MAX_ERRORS`] errors of the file, and the number of the others. An error of `check` is omitted if the schema refuses
    /// the same field.
    pub fn decode<T: DeserializeOwned>(
        &self,
        schema: &ConfigSchema<'_>,
        check: impl FnOnce(&Value, &[FieldError]) -> Vec<FieldError>,
    ) -> Result<T, Vec<ConfigError>> {
        decode(&self.value, &self.location, schema, check)
    }

    /// Returns the value, without nulls.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the location of a field in the file, with its line.
    #[must_use]
    pub fn location(&self, field: FieldPath) -> Location {
        self.location.clone().at(field)
    }
}

impl ConfigSchema<'_> {
    /// Returns the errors of a value.
    fn field_errors(&self, value: &Value) -> Vec<FieldError> {
        match Schema::new(self.schema.clone()) {
            Ok(schema) => schema.field_errors(value, self.patterns),
            Err(error) => vec![FieldError {
                field: FieldPath::root(),
                problem: format!(
                    "the JSON Schema of this kind is invalid: {error}; this is a bug in Trainyard"
                ),
            }],
        }
    }
}

/// Validates a value that was read at `location`, and deserializes it. `check` gets the errors of the schema, and adds those that a schema cannot
/// express.
///
/// # Errors
/// The first [`MAX_ERRORS`] errors of the value, and the number of the others. An error of `check` is omitted if the schema refuses the
/// same field.
pub fn decode<T: DeserializeOwned>(
    value: &Value,
    location: &Location,
    schema: &ConfigSchema<'_>,
    check: impl FnOnce(&Value, &[FieldError]) -> Vec<FieldError>,
) -> Result<T, Vec<ConfigError>> {
    let error = |field: FieldPath, problem: String| ConfigError {
        location: location.clone().at(field),
        problem: ConfigProblem::Field(clean(&problem)),
    };
    let mut field_errors = schema.field_errors(value);
    let mut further = check(value, &field_errors);
    let refused: HashSet<_> = field_errors.iter().map(|found| &found.field).collect();
    further.retain(|found| !refused.contains(&found.field));
    field_errors.extend(further);
    if field_errors.is_empty() {
        return serde_path_to_error::deserialize(value).map_err(|found| {
            let field = found.path().to_string().parse().unwrap_or_default();
            vec![error(field, found.inner().to_string())]
        });
    }
    let omitted = field_errors.len().saturating_sub(MAX_ERRORS);
    field_errors.truncate(MAX_ERRORS);
    let errors = field_errors.into_iter();
    let errors = errors.map(|found| error(found.field, found.problem));
    let omitted = (omitted > 0).then(|| ConfigError {
        location: Location::file(location.file.as_str()),
        problem: ConfigProblem::Omitted { errors: omitted },
    });
    Err(errors.chain(omitted).collect())
}

/// Returns the first lines of files of these kinds.
fn headers(kinds: &[TypeMeta]) -> String {
    let header = |meta: &TypeMeta| {
        format!(
            "`apiVersion: {}` and `kind: {}`",
            meta.api_version, meta.kind
        )
    };
    kinds.iter().map(header).collect::<Vec<_>>().join(", or ")
}
