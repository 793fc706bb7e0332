//! Plugins with few settings, and the orders in which they run.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use trainyard_model::{
    claims::Variables,
    plan::{Generation, PlanError},
    plugin_info::{PluginInfo, Settings},
};

use super::{manifest, plugin, plugin_under, with};

pub const C: &str = "pod-sets[@trainer].containers[node]";

pub fn of(name: &str, claims: &[(&str, &str)]) -> Arc<PluginInfo> {
    plugin(&manifest(name, claims))
}

pub fn of_with(name: &str, claims: &[(&str, &str)], more: Value) -> Arc<PluginInfo> {
    plugin(&with(manifest(name, claims), more))
}

pub fn errors(plugins: impl IntoIterator<Item = Arc<PluginInfo>>) -> Vec<String> {
    match Generation::new(plugins) {
        Ok(generation) => panic!("it is accepted: {:?}", generation.edges()),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

/// The order of those plugins, all active, without configuration.
pub fn order(plugins: impl IntoIterator<Item = Arc<PluginInfo>>) -> Vec<String> {
    let generation = Generation::new(plugins).unwrap();
    let names: Vec<_> = generation
        .plugins()
        .map(|p| p.id.name.to_string())
        .collect();
    planned(&generation, &names, &json!({})).unwrap()
}

pub fn planned<N: AsRef<str>>(
    generation: &Generation,
    names: &[N],
    config: &Value,
) -> Result<Vec<String>, Vec<PlanError>> {
    let variables = Variables {
        job: "llama".into(),
        config: Arc::new(config.clone()),
    };
    let active: BTreeMap<Arc<str>, Variables> = names
        .iter()
        .map(|name| (name.as_ref().into(), variables.clone()))
        .collect();
    let plan = generation.plan(&active)?;
    Ok(plan
        .iter()
        .map(|plugin| plugin.id.name.to_string())
        .collect())
}

/// Plugins under settings that keep the first away from the others.
pub fn apart(name: &str, claims: &[(&str, &str)], excludes: &[&str]) -> Arc<PluginInfo> {
    let settings = Settings {
        excludes: excludes.iter().map(|name| (*name).to_owned()).collect(),
        ..Settings::built_in()
    };
    plugin_under(&manifest(name, claims), settings)
}
