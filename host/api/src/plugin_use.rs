//! Plugins that a runtime activates.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    fields::{FieldError, FieldProblem, Fields, cut},
    path::FieldPath,
};

/// A plugin that a runtime activates, with its configuration: an entry of `spec.plugins`, or `plugin` in `mlPolicy` or `podGroupPolicy`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PluginUse {
    /// The plugin's name.
    pub name: String,
    /// Its configuration; an empty object if it has none.
    #[serde(default = "no_config")]
    pub config: Value,
    /// The path of the name in the runtime.
    #[serde(skip)]
    pub name_path: FieldPath,
    /// The path of the configuration in the runtime, for errors of the plugin's schema.
    #[serde(skip)]
    pub config_path: FieldPath,
}

fn no_config() -> Value {
    Value::Object(Map::new())
}

impl PluginUse {
    /// Returns it with the paths of a `{name, config}` at `path`.
    pub(crate) fn at(self, path: &FieldPath) -> Self {
        Self {
            name_path: path.field("name"),
            config_path: path.field("config"),
            ..self
        }
    }

    /// Reads a list that no schema has validated, and reports all its errors.
    pub(crate) fn read_alone(value: &Value, path: &FieldPath) -> (Vec<Self>, Vec<FieldError>) {
        let mut errors = Vec::new();
        let plugins = Fields::of_items(value, path, &mut errors, |item| {
            item.only(&["name", "config"]);
            let name = item.required_string("name");
            let config = item.opaque_object("config").unwrap_or_else(no_config);
            let (name_path, config_path) = Default::default();
            Self {
                name,
                config,
                name_path,
                config_path,
            }
            .at(item.path())
        });
        let mut seen = HashSet::new();
        for (at, plugin) in plugins.iter().enumerate() {
            if !plugin.name.is_empty() && !seen.insert(&plugin.name) {
                let problem = FieldProblem::Duplicate(cut(&plugin.name));
                errors.push(problem.at(path.index(at)));
            }
        }
        (plugins, errors)
    }
}
