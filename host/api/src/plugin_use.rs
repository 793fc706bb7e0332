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
    /// JSON pointers into the configuration: the values that a TrainJob may set.
    #[serde(default)]
    pub parameters: Vec<String>,
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
            item.only(&["name", "config", "parameters"]);
            let name = item.required_string("name");
            let config = item.opaque_object("config").unwrap_or_else(no_config);
            let parameters = read_parameters(item);
            let (name_path, config_path) = Default::default();
            Self {
                name,
                config,
                parameters,
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

/// The most parameters of a plugin, and the most bytes of one, as in the schema of runtimes.
const MAX_PARAMETERS: usize = 64;
const MAX_PARAMETER_BYTES: usize = 256;

/// Reads the list of pointers of an entry that no schema has validated.
fn read_parameters(item: &mut Fields<'_>) -> Vec<String> {
    let pointers = item.strings("parameters");
    let path = item.path().field("parameters");
    if pointers.len() > MAX_PARAMETERS {
        let problem = FieldProblem::TooMany {
            what: "items",
            found: pointers.len(),
            limit: MAX_PARAMETERS,
            remedy: "remove some",
        };
        item.fail(path, problem);
        return Vec::new();
    }
    for (at, pointer) in pointers.iter().enumerate() {
        if !is_pointer(pointer) {
            let (form, found) = (A_POINTER, cut(pointer));
            item.fail(path.index(at), FieldProblem::Form { form, found });
        }
    }
    pointers
}

const A_POINTER: &str =
    "a JSON pointer to a member of the configuration, such as /sampling or /network/interface";

/// Whether it is a JSON pointer (RFC 6901) whose steps are not empty. The schema of runtimes has the same pattern.
fn is_pointer(text: &str) -> bool {
    let is_step = |step: &str| {
        let escapes = step.split('~').skip(1);
        !step.is_empty() && escapes.into_iter().all(|rest| rest.starts_with(['0', '1']))
    };
    let steps = text.strip_prefix('/');
    text.len() <= MAX_PARAMETER_BYTES && steps.is_some_and(|steps| steps.split('/').all(is_step))
}
