//! Loads the plugins of the command line in place of those of a bundle.

use std::path::PathBuf;

use serde::Serialize;
use trainyard_bundle::Bundle;
use trainyard_model::plugin_info::PluginId;
use trainyard_render::Renderer;

use crate::{
    args::LoadArgs,
    load::LoadedPlugins,
    policy,
    report::{self, ErrorList},
};

/// A plugin that is not the one of the bundle.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PluginChange {
    name: String,
    recorded: String,
    /// `None` if it is not loaded.
    now: Option<String>,
}

impl PluginChange {
    pub(super) fn line(&self) -> String {
        match &self.now {
            Some(now) => format!("plugin {} took the place of {}", now, self.recorded),
            None => format!("plugin {} is not loaded", self.recorded),
        }
    }
}

/// Loads the plugins as any other command does, but with the bundle's settings for all TrainJobs if no file has others. Returns how they differ from
/// those of the bundle, which are not loaded.
pub(super) fn renderer(
    bundle: &mut Bundle,
    args: &LoadArgs,
    files: &[PathBuf],
) -> Result<(Renderer, Vec<PluginChange>), ErrorList> {
    let objects = match files {
        [] => Vec::new(),
        files => policy::policy_plugins(files)?,
    };
    let facts = bundle.index.cluster.facts();
    let loaded = LoadedPlugins::load_based_on(args, &objects, Some(facts))?;
    let mut changes = Vec::new();
    for entry in std::mem::take(&mut bundle.index.plugins) {
        let recorded = PluginId {
            name: entry.name.as_str().into(),
            version: entry.version.as_str().into(),
            digest: bundle.digest(&entry.file).into(),
        };
        let now = loaded.renderer.generation().plugin(&entry.name);
        if now.is_some_and(|now| now.id == recorded) {
            continue;
        }
        if now.is_none() {
            report::warn(format!(
                "{}: the plugin {recorded} ran, but is not loaded here; pass its PolicyPlugin with -f or --policy, or the TrainJobs are rendered without it",
                bundle.file
            ));
        }
        changes.push(PluginChange {
            now: now.map(|now| now.id.to_string()),
            recorded: recorded.to_string(),
            name: entry.name,
        });
    }
    Ok((loaded.renderer, changes))
}
