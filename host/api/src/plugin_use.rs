//! Plugins that a runtime activates.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::{
    fields::{FieldError, FieldProblem, Fields, cut},
    path::FieldPath,
};

/// A plugin that a runtime activates, with its configuration: an entry of `spec.plugins`, or `mlPolicy.plugin`.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginUse {
    /// The plugin's name.
    pub name: String,
    /// Its configuration; an empty object if it has none.
    pub config: Value,
    /// The path of the name in the runtime.
    pub name_path: FieldPath,
    /// The path of the configuration in the runtime, for errors of the plugin's schema.
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
            name_path: fields.path().field("name"),
            config_path: fields.path().field("config"),
        }
    }

    /// Reads a list that no schema has validated, and reports all its errors.
    pub(crate) fn read_alone(value: &Value, path: &FieldPath) -> (Vec<Self>, Vec<FieldError>) {
        let nothing = Value::Object(Map::new());
        let mut fields = Fields::of(&nothing, path.clone());
        let read = |item: &mut Fields<'_>| {
            item.only(&["name", "config"]);
            Self::read(item)
        };
        let plugins = fields.objects_at(value, path, read).unwrap_or_default();
        let mut seen = HashSet::new();
        for (at, plugin) in plugins.iter().enumerate() {
            if !plugin.name.is_empty() && !seen.insert(&plugin.name) {
                let problem = FieldProblem::Duplicate(cut(&plugin.name));
                fields.fail(path.index(at), problem);
            }
        }
        (plugins, fields.errors())
    }
}
