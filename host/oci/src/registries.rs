//! The operator's file of mirrors and certificate authorities, in the form of k3s and RKE2.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use http::Uri;
use serde::Deserialize;
use serde_json::{Value, json};
use trainyard_config::{ConfigError, ConfigFile, ConfigProblem, ConfigSchema, FieldError};
use trainyard_text::FieldPath;

/// Which mirrors are asked before a registry, and which certificate authorities are trusted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Registries {
    mirrors: BTreeMap<String, Mirrors>,
    configs: BTreeMap<String, HostConfig>,
}

/// The mirrors of a registry.
#[derive(Clone, Debug, Default, Deserialize)]
struct Mirrors {
    endpoint: Vec<String>,
}

/// How a host is reached.
#[derive(Clone, Debug, Default, Deserialize)]
struct HostConfig {
    tls: Option<Tls>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Tls {
    ca_file: PathBuf,
}

/// The mirrors of all registries that have none of their own.
const ANY: &str = "*";

const ENDPOINT: &str = "^https?://[A-Za-z0-9.:_\\[\\]-]+(/[A-Za-z0-9._/-]*)?$";

impl Registries {
    /// Reads a file.
    ///
    /// # Errors
    /// The errors of the file, each with its line.
    pub fn read(file: &Path) -> Result<Self, Vec<ConfigError>> {
        let file = match ConfigFile::read(file, &[]) {
            Ok(file) => file,
            // A file that names nothing.
            Err(ConfigError {
                problem: ConfigProblem::Empty { .. },
                ..
            }) => return Ok(Self::default()),
            Err(error) => return Err(vec![error]),
        };
        let schema = schema();
        let schema = ConfigSchema {
            schema: &schema,
            patterns: &[(
                ENDPOINT,
                "a URL without a query, such as https://mirror.example.com",
            )],
        };
        file.decode(&schema, |value, _| credentials(value))
    }

    /// Returns the URLs of the mirrors of a registry, in order.
    pub(crate) fn mirrors(&self, registry: &str) -> impl Iterator<Item = Uri> {
        let mirrors = self.mirrors.get(registry).or_else(|| self.mirrors.get(ANY));
        let endpoints = mirrors.into_iter().flat_map(|mirrors| &mirrors.endpoint);
        endpoints.filter_map(|endpoint| endpoint.parse().ok())
    }

    /// Returns the files of certificate authorities.
    pub fn ca_files(&self) -> impl Iterator<Item = &PathBuf> {
        let tls = self
            .configs
            .values()
            .filter_map(|config| config.tls.as_ref());
        tls.map(|tls| &tls.ca_file)
    }
}

/// Refuses credentials, which k3s has in this file, because it is not a Secret here.
fn credentials(value: &Value) -> Vec<FieldError> {
    let configs = value.get("configs").and_then(Value::as_object);
    let hosts = configs.into_iter().flatten();
    let with = hosts.filter(|(_, config)| config.get("auth").is_some());
    with.map(|(host, _)| FieldError {
        field: FieldPath::of(["configs", host, "auth"]),
        problem: "credentials are not read from this file; put them into Docker's config.json, as `docker login` does"
            .to_owned(),
    })
    .collect()
}

/// The JSON Schema of the file.
fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "mirrors": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["endpoint"],
                    "properties": {
                        "endpoint": {
                            "type": "array",
                            "minItems": 1,
                            "maxItems": 8,
                            "items": {"type": "string", "pattern": ENDPOINT},
                        },
                    },
                },
            },
            "configs": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": false,
                    "properties": {
                        "tls": {
                            "type": "object",
                            "additionalProperties": false,
                            "required": ["ca_file"],
                            "properties": {"ca_file": {"type": "string", "minLength": 1}},
                        },
                        "auth": {},
                    },
                },
            },
        },
    })
}
