//! What is measured of each plugin: the list in its `bench.json`, or else the plugin without settings.

use std::{collections::BTreeMap, fs, sync::LazyLock};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use trainyard_api::names::NODE;
use trainyard_model::{
    manifest::{ActiveWhen, Union},
    plugin::Plugin as _,
    plugin_info::Settings,
};
use trainyard_policies::{BUILT_INS, BuiltInParts, TORCH};
use trainyard_sdk::native::NativePlugin;

/// A plugin with the settings that are measured.
#[derive(Debug)]
pub struct Entry {
    /// The plugin, which a key of a runtime activates.
    plugin: BuiltInParts,
    is_gang: bool,
    key: String,
    pub(crate) settings: Measured,
}

/// An item of a `bench.json`.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Measured {
    /// The name of the benchmarks [default: that of the plugin].
    name: String,
    /// Further numbers of nodes of the small TrainJob, by the names of their benchmarks.
    nodes: BTreeMap<String, usize>,
    /// The value of the plugin's key in the runtime.
    config: Value,
    /// The command of the containers.
    pub(crate) command: Vec<String>,
    /// The name of the runtime.
    pub(crate) runtime: String,
    /// The replicated job with the label of the trainer.
    pub(crate) trainer: String,
    /// Whether the plugin of a PodGroup runs after Torch.
    after_torch: bool,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            name: String::new(),
            nodes: BTreeMap::new(),
            config: json!({}),
            command: ["torchrun", "train.py"].map(str::to_owned).into(),
            runtime: "bench".to_owned(),
            trainer: NODE.to_owned(),
            after_torch: false,
        }
    }
}

/// Returns the entries of all plugins that a key of a runtime activates, by plugin.
///
/// # Panics
/// A `bench.json` is invalid.
#[allow(clippy::panic, reason = "benchmarks end at their first error")]
pub fn entries() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
        let all: Result<Vec<_>> = BUILT_INS.iter().copied().map(of_plugin).collect();
        let all = all.unwrap_or_else(|error| panic!("{error:#}"));
        all.into_iter().flatten().collect()
    });
    &ENTRIES
}

/// Returns the entry of Torch.
///
/// # Panics
/// As for [`entries`].
#[allow(clippy::panic, reason = "benchmarks end at their first error")]
pub(crate) fn torch() -> &'static Entry {
    let torch = entries().iter().find(|entry| entry.name() == "torch");
    torch.unwrap_or_else(|| panic!("plugins/torch/bench.json has no entry of Torch itself"))
}

fn of_plugin(plugin: BuiltInParts) -> Result<Vec<Entry>> {
    let (folder, parts) = plugin;
    let native = NativePlugin::new(parts, Settings::built_in())?;
    let (is_gang, key) = match &native.info().manifest.active_when {
        ActiveWhen::Key(Union::MlPolicy, key) => (false, key.clone()),
        ActiveWhen::Key(Union::PodGroupPolicy, key) => (true, key.clone()),
        _ => return Ok(Vec::new()),
    };
    let file = trainyard_plugin_folders::root()
        .join(folder)
        .join("bench.json");
    let list = if file.is_file() {
        let text = fs::read_to_string(&file)?;
        serde_json::from_str(&text).with_context(|| file.display().to_string())?
    } else {
        vec![Measured::default()]
    };
    let entry = |mut settings: Measured| {
        if settings.name.is_empty() {
            settings.name.clone_from(&key);
        }
        Entry {
            plugin,
            is_gang,
            key: key.clone(),
            settings,
        }
    };
    Ok(list.into_iter().map(entry).collect())
}

impl Entry {
    /// Returns the name of its benchmarks.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Returns further numbers of nodes of the small TrainJob, with the names of their benchmarks.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, usize)> {
        let nodes = self.settings.nodes.iter();
        nodes.map(|(name, nodes)| (name.as_str(), *nodes))
    }

    /// Whether the plugin is of a PodGroup, and not a framework.
    #[must_use]
    pub fn is_gang(&self) -> bool {
        self.is_gang
    }

    /// Returns its plugin, for a PodGroup with Torch, in the order in which they run.
    #[must_use]
    pub fn plugins(&self) -> Vec<BuiltInParts> {
        match (self.is_gang, self.settings.after_torch) {
            (false, _) => vec![self.plugin],
            (true, false) => vec![self.plugin, TORCH],
            (true, true) => vec![TORCH, self.plugin],
        }
    }

    /// Returns the member of the runtime's union.
    pub(crate) fn member(&self) -> Map<String, Value> {
        Map::from_iter([(self.key.clone(), self.settings.config.clone())])
    }
}
