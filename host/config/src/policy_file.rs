//! The policy file, which PolicyPlugins replace. It is read for one release.

use std::collections::{BTreeMap, btree_map::Entry};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use trainyard_api::{FieldPath, Located, Location};
use trainyard_model::text::clean;

use crate::{
    ConfigError, ConfigFile, ConfigProblem, ConfigSchema, FieldError, RenderingSection,
    RenderingSettings, TypeMeta,
    policy_plugin::{API_VERSION, DIGEST, DIGEST_WORDS, PolicyPlugin, PolicyPluginSpec, check},
};

/// The fields of a PolicyPlugin's `spec` that an entry of a policy file does not have.
const NEW_FIELDS: [&str; 3] = ["source", "facts", "enabledFor"];

/// The content of a policy file, in the form that replaces it.
#[derive(Debug)]
pub struct PolicyFile {
    /// Its entries for plugins.
    pub plugins: Vec<PolicyPlugin>,
    /// Its settings for all TrainJobs.
    pub rendering: RenderingSection,
    /// What to do about it.
    pub warning: Located,
}

impl PolicyFile {
    /// The first lines of a policy file.
    pub const TYPE_META: TypeMeta = TypeMeta {
        api_version: API_VERSION,
        kind: "PolicyFile",
    };

    /// Decodes a policy file.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn decode(file: &ConfigFile) -> Result<Self, Vec<ConfigError>> {
        let schema = ConfigSchema {
            schema: &Self::schema(),
            patterns: &[(DIGEST, DIGEST_WORDS)],
        };
        let mut value: Value = file.decode(&schema, |file, _| field_errors(file))?;
        let location = file.location(FieldPath::root());
        let entries = value.as_object_mut().and_then(|file| {
            file.shift_remove("apiVersion");
            file.shift_remove("kind");
            file.shift_remove("plugins")
        });
        let entries = entries.iter().filter_map(Value::as_array).flatten();
        let mut plugins = Vec::new();
        for (at, entry) in entries.enumerate() {
            plugins.push(plugin(at, entry.clone(), &location)?);
        }
        let rendering = RenderingSection {
            settings: read(value, &FieldPath::root(), &location)?,
            location: location.clone(),
            field: FieldPath::root(),
        };
        let warning = Located {
            message: format!(
                "kind PolicyFile is read for the last release; convert the file with `trainyard plugin convert {}`",
                location.file
            ),
            location: location.at(FieldPath::of(["kind"])),
        };
        Ok(Self {
            plugins,
            rendering,
            warning,
        })
    }

    /// Returns the JSON Schema of a policy file: that of the settings for all TrainJobs, with a list of PolicyPlugins' settings.
    #[must_use]
    pub fn schema() -> Value {
        let mut entry = schemars::schema_for!(PolicyPluginSpec).to_value();
        let mut file = schemars::schema_for!(RenderingSettings).to_value();
        let definitions = entry.as_object_mut().and_then(|entry| {
            entry.shift_remove("$schema");
            entry.shift_remove("default");
            entry.insert("title".to_owned(), json!("PluginPolicy"));
            entry.insert(
                "description".to_owned(),
                json!("The operator's settings for one plugin."),
            );
            entry.insert("required".to_owned(), json!(["name"]));
            entry.shift_remove("$defs")
        });
        if let Some(properties) = entry.get_mut("properties").and_then(Value::as_object_mut) {
            for field in NEW_FIELDS {
                properties.shift_remove(field);
            }
            let name = json!({
                "description": "The plugin's name.", "type": "string", "minLength": 1, "maxLength": 63,
            });
            properties.shift_insert(0, "name".to_owned(), name);
        }
        if let Some(file) = file.as_object_mut() {
            file.insert("title".to_owned(), json!("PolicyFile"));
            file.insert(
                "description".to_owned(),
                json!("The operator's settings for plugins and for all TrainJobs."),
            );
            file.insert("required".to_owned(), json!(["apiVersion", "kind"]));
            let known = file.entry("$defs").or_insert_with(|| json!({}));
            if let (Some(known), Some(Value::Object(more))) = (known.as_object_mut(), definitions) {
                known.extend(more);
            }
        }
        if let Some(properties) = file.get_mut("properties").and_then(Value::as_object_mut) {
            let constant = |value: &str| json!({"description": format!("`{value}`."), "type": "string", "const": value});
            let TypeMeta { api_version, kind } = Self::TYPE_META;
            properties.shift_insert(0, "apiVersion".to_owned(), constant(api_version));
            properties.shift_insert(1, "kind".to_owned(), constant(kind));
            let plugins = json!({
                "description": "Settings of plugins, by name.", "type": "array", "items": entry,
            });
            properties.insert("plugins".to_owned(), plugins);
        }
        file
    }
}

/// Returns the path of an entry of `plugins`.
fn entry_field(at: usize) -> FieldPath {
    FieldPath::of(["plugins"]).index(at)
}

/// Returns the PolicyPlugin of an entry.
fn plugin(
    at: usize,
    mut entry: Value,
    location: &Location,
) -> Result<PolicyPlugin, Vec<ConfigError>> {
    let field = entry_field(at);
    let name = entry
        .as_object_mut()
        .and_then(|entry| entry.shift_remove("name"));
    let spec: PolicyPluginSpec = read(entry, &field, location)?;
    Ok(PolicyPlugin {
        name: name
            .as_ref()
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        generation: 0,
        spec,
        location: location.clone(),
        name_field: field.field("name"),
        spec_field: field,
    })
}

/// Deserializes a part of a file, whose field is `at`.
fn read<T: DeserializeOwned>(
    value: Value,
    at: &FieldPath,
    location: &Location,
) -> Result<T, Vec<ConfigError>> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let below: FieldPath = error.path().to_string().parse().unwrap_or_default();
        vec![ConfigError {
            location: location.clone().at(at.join(&below)),
            problem: ConfigProblem::Field(clean(&error.inner().to_string())),
        }]
    })
}

/// Returns the errors of a policy file that its schema does not find.
fn field_errors(file: &Value) -> Vec<FieldError> {
    let mut field_errors = RenderingSettings::field_errors(file, &FieldPath::root());
    let mut first = BTreeMap::new();
    let plugins = file.get("plugins").and_then(Value::as_array);
    for (at, plugin) in plugins.into_iter().flatten().enumerate() {
        let name = plugin.get("name").and_then(Value::as_str);
        if let Some(name) = name {
            match first.entry(name) {
                Entry::Vacant(entry) => _ = entry.insert(at),
                Entry::Occupied(first) => field_errors.push(FieldError {
                    field: entry_field(at).field("name"),
                    problem: format!(
                        "`{}` is already listed in plugins[{}]; merge the two entries",
                        clean(name),
                        first.get()
                    ),
                }),
            }
        }
        field_errors.extend(check::settings(name, plugin, &entry_field(at)));
    }
    field_errors
}
