//! The operator's file of mirrors and certificate authorities, in the form of k3s and RKE2.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use http::{Uri, uri::Authority};
use serde::Deserialize;
use serde_json::{Value, json};
use trainyard_config::{ConfigError, ConfigFile, ConfigProblem, ConfigSchema, FieldError};
use trainyard_text::{FieldPath, clean};

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

impl HostConfig {
    fn ca_file(&self) -> Option<&Path> {
        Some(self.tls.as_ref()?.ca_file.as_path())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Tls {
    ca_file: PathBuf,
}

/// The entry of all registries that have none of their own.
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
        file.decode(&schema, |value, _| {
            [credentials(value), hosts(value), urls(value)].concat()
        })
    }

    /// Returns the URLs of the mirrors of a registry, in order.
    pub(crate) fn mirrors(&self, registry: &str) -> impl Iterator<Item = Uri> {
        let mirrors = self.mirrors.get(registry).or_else(|| self.mirrors.get(ANY));
        let endpoints = mirrors.into_iter().flat_map(|mirrors| &mirrors.endpoint);
        endpoints.filter_map(|endpoint| url(endpoint))
    }

    /// Returns the hosts that have an entry of their own, each with its file of certificate authorities, if it has one.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = (Authority, Option<&Path>)> {
        let hosts = self.configs.iter();
        hosts.filter_map(|(host, config)| Some((authority(host)?, config.ca_file())))
    }

    /// Returns the file of certificate authorities of all hosts without an entry.
    pub(crate) fn ca_file_of_others(&self) -> Option<&Path> {
        self.configs.get(ANY).and_then(HostConfig::ca_file)
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

/// Refuses hosts of `configs` that no request can have.
fn hosts(value: &Value) -> Vec<FieldError> {
    let configs = value.get("configs").and_then(Value::as_object);
    let hosts = configs.into_iter().flat_map(|configs| configs.keys());
    let wrong = hosts.filter(|host| *host != ANY && authority(host).is_none());
    wrong
        .map(|host| FieldError {
            field: FieldPath::of(["configs", host]),
            problem: "is not HOST or HOST:PORT, such as mirror.example.com:5000".to_owned(),
        })
        .collect()
}

/// Refuses mirrors with an invalid host or port.
fn urls(value: &Value) -> Vec<FieldError> {
    let mirrors = value.get("mirrors").and_then(Value::as_object);
    let mut errors = Vec::new();
    for (registry, mirrors) in mirrors.into_iter().flatten() {
        let endpoints = mirrors.get("endpoint").and_then(Value::as_array);
        let texts = endpoints.into_iter().flatten().filter_map(Value::as_str);
        for text in texts.filter(|text| url(text).is_none()) {
            errors.push(FieldError {
                field: FieldPath::of(["mirrors", registry, "endpoint"]),
                problem: format!("`{}` has an invalid host or port; write a URL such as https://mirror.example.com:5000", clean(text)),
            });
        }
    }
    errors
}

fn url(text: &str) -> Option<Uri> {
    let url: Uri = text.parse().ok()?;
    authority(url.authority()?.as_str())?;
    Some(url)
}

/// Reads a host with or without a port.
fn authority(text: &str) -> Option<Authority> {
    let authority: Authority = text.parse().ok()?;
    let is_host = !authority.host().is_empty() && !text.contains('@');
    let has_valid_port = authority.host() == text || authority.port_u16().is_some();
    (is_host && has_valid_port).then_some(authority)
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
