//! A TrainJob's overrides for plugins, which are annotations because clients with the reference's types would drop a field.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{
    fields::{FieldError, FieldProblem, cut, describe},
    names,
    object::Metadata,
    path::FieldPath,
    yaml,
};

/// The most bytes of [`names::DISABLED_PLUGINS_ANNOTATION`]: more than the names of all plugins that can be loaded together.
const MAX_DISABLED_BYTES: usize = 4 << 10;

/// The most bytes of [`names::PLUGIN_PARAMETERS_ANNOTATION`]. Each rendering parses and copies them.
const MAX_PARAMETER_BYTES: usize = 32 << 10;

/// A TrainJob's overrides for plugins. They are not checked against what the operator and the runtime's author allow.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PluginOverrides {
    /// The plugins that it disables for itself.
    pub disabled: BTreeSet<String>,
    /// For each plugin, an object with the values of its parameters. It has the form of the plugin's configuration.
    pub parameters: Map<String, Value>,
}

impl PluginOverrides {
    pub(crate) fn read(metadata: &Metadata, errors: &mut Vec<FieldError>) -> Self {
        let mut text = |name, limit| {
            let text = metadata.annotations.get(name).map_or("", String::as_str);
            if text.len() <= limit {
                return text;
            }
            let problem = FieldProblem::TooMany {
                what: "bytes",
                found: text.len(),
                limit,
                remedy: "shorten it",
            };
            errors.push(problem.at(Metadata::path_of_annotation(name)));
            ""
        };
        let disabled = text(names::DISABLED_PLUGINS_ANNOTATION, MAX_DISABLED_BYTES);
        let parameters = text(names::PLUGIN_PARAMETERS_ANNOTATION, MAX_PARAMETER_BYTES);
        let disabled = disabled.split(',').map(str::trim);
        Self {
            disabled: disabled
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
            parameters: read_parameters(parameters, errors),
        }
    }
}

fn read_parameters(text: &str, errors: &mut Vec<FieldError>) -> Map<String, Value> {
    let path = Metadata::path_of_annotation(names::PLUGIN_PARAMETERS_ANNOTATION);
    if text.is_empty() {
        return Map::new();
    }
    let mut object = |value: &Value, path: FieldPath| {
        let (expected, found) = ("an object", describe(value));
        errors.push(FieldProblem::Type { expected, found }.at(path));
    };
    match yaml::read_json(text) {
        Ok(Value::Object(parameters)) => {
            let wrong = parameters.iter().find(|(_, value)| !value.is_object());
            if let Some((plugin, value)) = wrong {
                object(value, path.field(cut(plugin)));
            }
            parameters
        }
        Ok(other) => {
            object(&other, path);
            Map::new()
        }
        Err(error) => {
            errors.push(FieldProblem::Json(error).at(path));
            Map::new()
        }
    }
}
