//! Reads the controller's configuration file, of either kind.

use std::path::Path;

use trainyard_api::Located;
use trainyard_config::{ConfigError, ConfigFile, ConfigSchema, TypeMeta};
use trainyard_oci::{PLUGIN_NAMES, REPOSITORIES, SIGNER_NAME};

use super::{
    Settings, check,
    duration::DURATION,
    file::{self, ControllerConfiguration},
    reference::{self, Configuration},
};

/// The first lines of Trainyard's own configuration file.
pub const OURS: TypeMeta = TypeMeta {
    api_version: "trainyard.dev/v1alpha1",
    kind: "ControllerConfiguration",
};

const REFERENCE: TypeMeta = TypeMeta {
    api_version: "config.trainer.kubeflow.org/v1alpha1",
    kind: "Configuration",
};

/// The regular expressions of both schemas.
const PATTERNS: &[(&str, &str)] = &[
    (DURATION, "a duration, such as 15s, 1m30s or 500ms"),
    (
        SIGNER_NAME,
        "lowercase letters, digits, `-` and `.`, such as acme",
    ),
    (
        PLUGIN_NAMES,
        "the name of a plugin, such as tracer, or of several with a `*` at the end, such as acme-*",
    ),
    (
        REPOSITORIES,
        "a registry with a repository, such as registry.example.com/acme/tracer, or several with a `*` at the end, such as registry.example.com/acme/*",
    ),
];

/// The settings of a configuration file.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedSettings {
    pub settings: Settings,
    /// Warnings about fields that have no effect, or another effect than in the reference.
    pub warnings: Vec<Located>,
}

impl LoadedSettings {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn read(path: &Path) -> Result<Self, Vec<ConfigError>> {
        let file = ConfigFile::read(path, &[OURS, REFERENCE]);
        Self::decode(&file.map_err(|error| vec![error])?)
    }

    /// Parses the text of a configuration file. Errors name it as `file`.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<ConfigError>> {
        let file = ConfigFile::parse(file, text, &[OURS, REFERENCE]);
        Self::decode(&file.map_err(|error| vec![error])?)
    }

    /// Decodes a configuration file.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn decode(file: &ConfigFile) -> Result<Self, Vec<ConfigError>> {
        let schema = |schema| ConfigSchema {
            schema,
            patterns: PATTERNS,
        };
        match file.type_meta().map_err(|error| vec![error])? {
            REFERENCE => {
                let configuration: Configuration =
                    file.decode(&schema(&reference::schema()), check::check)?;
                let (settings, warnings) = configuration.resolve(file);
                Ok(Self { settings, warnings })
            }
            _ => {
                let configuration: ControllerConfiguration =
                    file.decode(&schema(&file::schema()), check::check)?;
                Ok(Self {
                    settings: configuration.resolve(),
                    warnings: Vec::new(),
                })
            }
        }
    }
}
