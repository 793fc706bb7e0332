//! A plugin that a runtime switches on.

use serde_json::{Map, Value};

use crate::fields::Fields;
use crate::path::FieldPath;

/// A plugin that a runtime names, with its configuration: an entry of `spec.plugins`, or `mlPolicy.plugin`.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginUse {
    /// The plugin's name.
    pub name: String,
    /// Its configuration; an empty object where none is given.
    pub config: Value,
    /// Where the configuration stands in the runtime, for errors of the plugin's schema.
    pub config_path: FieldPath,
}

impl PluginUse {
    /// Reads `{name, config}`.
    pub fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            name: fields.required_string("name"),
            config: fields
                .opaque_object("config")
                .unwrap_or_else(|| Value::Object(Map::new())),
            config_path: fields.path().field("config"),
        }
    }
}
