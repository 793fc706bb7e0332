//! The PolicyPlugins that plugins need.

use std::{collections::BTreeMap, fmt::Display};

use serde_json::Value;
use trainyard_api::names;
use trainyard_config::policy_plugin::{API_VERSION, POLICY_PLUGIN};
use trainyard_model::{
    claims::permission,
    manifest::{ActiveWhen, Manifest},
    record::{ObeyedDomains, Permission},
    schema::Schema,
    text::json_escaped,
};

use super::{beyond_own, source::Source};

/// The longest default that is printed, in bytes.
const MAX_DEFAULT: usize = 200;

/// Returns the lines of PolicyPlugins with the grants that plugins need, and with what else an operator can set as comments.
pub(super) fn lines(plugins: &[Source]) -> Vec<String> {
    let mut lines = vec!["# Remove what the plugins should not be granted.".to_owned()];
    for (at, source) in plugins.iter().enumerate() {
        lines.extend((at > 0).then(|| "---".to_owned()));
        push_object(&mut lines, source);
    }
    lines
}

fn push_object(lines: &mut Vec<String>, source: &Source) {
    let plugin = &source.plugin;
    let manifest = &plugin.manifest;
    let text = |text: &dyn Display| Value::from(text.to_string());
    lines.extend([
        format!("apiVersion: {API_VERSION}"),
        format!("kind: {POLICY_PLUGIN}"),
        "metadata:".to_owned(),
        format!("  name: {}", text(&manifest.name)),
        "spec:".to_owned(),
        "  source:".to_owned(),
        match source.reference() {
            Some(reference) => format!("    oci: {{reference: {}}}", text(&reference)),
            None => format!("    file: {{name: {}}}", text(&source.file_name())),
        },
        format!(
            "  # digest: {} # accepts no other file than {} under this name",
            plugin.digest, manifest.version
        ),
    ]);
    let grants = manifest.needed_grants(&ObeyedDomains::default());
    if grants.is_empty() {
        lines.push("  # it needs no grants".to_owned());
    } else {
        lines.push("  grants:".to_owned());
        lines.extend(grants.iter().map(|grant| format!("  - {}", text(grant))));
    }
    push_conditional(lines, manifest);
    if let Some(schema) = &manifest.operator_config_schema {
        push_config(lines, schema);
    }
    if manifest.active_when == ActiveWhen::Always {
        lines.extend([
            "  # disabledFor: {namespaces: [], runtimes: []} # it is active for every other TrainJob"
                .to_owned(),
            "  # enabledFor: {namespaces: [], runtimes: []} # instead, to make it active for no other TrainJob"
                .to_owned(),
            format!(
                "  # trainJobsMayDisable: true # with the annotation {}",
                names::DISABLED_PLUGINS_ANNOTATION
            ),
        ]);
    }
}

/// Adds the grants that depend on what the plugin writes: a call that needs one is refused without it.
fn push_conditional(lines: &mut Vec<String>, manifest: &Manifest) {
    let mut paths: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (verb, path) in manifest.claims.iter() {
        if permission(verb, path, &ObeyedDomains::default()) == Permission::OwnOnly {
            let paths = paths.entry(beyond_own(path)).or_default();
            paths.push(Value::from(path.to_string()).to_string());
        }
    }
    let lists = paths.iter();
    lines.extend(lists.map(|(what, paths)| {
        format!("  # if it sets {what}, it also needs: {}", paths.join(", "))
    }));
}

/// Adds the keys of the operator's configuration, each with what the schema says of it.
fn push_config(lines: &mut Vec<String>, schema: &Schema) {
    lines.push("  # config:".to_owned());
    let schema = schema.source();
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    for (key, property) in properties.into_iter().flatten() {
        let word = |keyword: &str| property.get(keyword);
        let is_required = required.is_some_and(|names| names.iter().any(|name| name == key));
        let value = word("default").map(Value::to_string);
        let value = value.map(|value| json_escaped(&value).into_owned());
        let value = value.filter(|value| value.len() <= MAX_DEFAULT);
        let value = value.unwrap_or_else(|| "...".to_owned());
        let kind = word("type").map(|kind| {
            kind.as_str()
                .map_or_else(|| kind.to_string(), str::to_owned)
        });
        let kind = kind
            .into_iter()
            .chain(is_required.then(|| "required".to_owned()));
        let described = word("description")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let notes: Vec<_> = kind.chain(described).collect();
        lines.push(format!(
            "  #   {}: {value} # {}",
            Value::from(key.as_str()),
            notes.join("; ")
        ));
    }
}
