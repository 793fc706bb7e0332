//! `trainyard plugin convert`.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use trainyard_api::Location;
use trainyard_config::{
    ConfigFile, PolicyFile,
    policy_plugin::{API_VERSION, POLICY_PLUGIN, PolicyPlugin},
};
use trainyard_controller::settings::CONTROLLER_CONFIGURATION;

use crate::{built_ins::BUILT_INS, output, report::ErrorList};

/// Arguments of `plugin convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The policy file.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
}

pub(super) fn run(args: &ConvertArgs) -> Result<(), ErrorList> {
    let file = ConfigFile::read(&args.file, &[PolicyFile::TYPE_META])
        .map_err(|error| ErrorList::from_iter([error]))?;
    let read = PolicyFile::decode(&file).map_err(ErrorList::from_iter)?;
    let (mut comments, mut objects) = (Vec::new(), Vec::new());
    for plugin in &read.plugins {
        objects.push(object(plugin)?);
    }
    let is_built_in = |name: &str| BUILT_INS.iter().any(|built_in| built_in.name() == name);
    let names = read.plugins.iter().map(|plugin| &*plugin.name);
    let others: Vec<_> = names.filter(|name| !is_built_in(name)).collect();
    if !others.is_empty() {
        comments.push(format!(
            "Add `source: {{file: {{name: FILE.wasm}}}}` or `source: {{oci: {{reference: REFERENCE}}}}` to the `spec` of {}.",
            others.join(", ")
        ));
    }
    let rendering = json!(read.rendering.settings);
    if rendering != json!({}) {
        comments.push(
            "Move `rendering` of the ControllerConfiguration to that of the controller.".to_owned(),
        );
        objects.push(json!({
            "apiVersion": CONTROLLER_CONFIGURATION.api_version,
            "kind": CONTROLLER_CONFIGURATION.kind,
            "rendering": rendering,
        }));
    }
    if objects.is_empty() {
        return Err(ErrorList::from_iter([format!(
            "{}: has no settings, so there is nothing to convert; remove it",
            output::path(&args.file)
        )]));
    }
    output::print(&output::commented(&comments, &objects))
}

/// Returns the object of a PolicyPlugin, which is valid.
fn object(plugin: &PolicyPlugin) -> Result<Value, ErrorList> {
    let object = json!({
        "apiVersion": API_VERSION,
        "kind": POLICY_PLUGIN,
        "metadata": {"name": plugin.name},
        "spec": plugin.spec,
    });
    let location = Location {
        line_of: Some(plugin.name_field.clone()),
        ..plugin.location.clone()
    };
    match PolicyPlugin::decode(&object, location) {
        Ok(_) => Ok(object),
        Err(errors) => Err(ErrorList::from_iter(errors)),
    }
}
