//! Records renderings to a bundle (`--record`).

use std::{collections::BTreeMap, path::Path, sync::Arc};

use serde_json::{Value, json};
use trainyard_bundle::{
    Cluster, FORM, Host, Index, InputKind, JobEntry, PluginEntry, job_file, pack,
};
use trainyard_model::plugin_info::PluginInfo;
use trainyard_render::Rendered;

use crate::{load::LoadedPlugins, report::ErrorList};

/// Returns this build.
pub(crate) fn this_host() -> Host {
    Host {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: trainyard_controller::SOURCES.to_owned(),
    }
}

/// A TrainJob and its runtime, unchanged by conversion and defaulting.
pub(crate) struct RecordedInput<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) from: InputKind,
    pub(crate) train_job: &'a Value,
    pub(crate) runtime: &'a Value,
}

/// The record of one TrainJob.
pub(crate) struct Recording {
    namespace: String,
    name: String,
    from: InputKind,
    plan: String,
    plugins: Vec<Arc<PluginInfo>>,
    /// Its files: names and contents.
    files: [(&'static str, Vec<u8>); 4],
}

impl Recording {
    /// Records the input and output of a rendering.
    pub(crate) fn of(written: &RecordedInput<'_>, rendered: &Rendered) -> Self {
        let active = rendered.plan.iter().map(|active| &active.plugin);
        let disabled = rendered.disabled.iter().map(|disabled| &disabled.plugin);
        Self {
            namespace: written.namespace.to_owned(),
            name: written.name.to_owned(),
            from: written.from,
            plan: rendered.whole_plan().digest,
            plugins: active.chain(disabled).cloned().collect(),
            files: [
                ("trainjob.json", text(written.train_job)),
                ("runtime.json", text(written.runtime)),
                ("lookups.json", text(&json!(rendered.all_read_lookups()))),
                ("output.json", text(&output(rendered))),
            ],
        }
    }
}

/// Returns a value as a file of a bundle.
pub(crate) fn text(value: &Value) -> Vec<u8> {
    (value.to_string() + "\n").into_bytes()
}

/// Returns the objects of a TrainJob as a list.
pub(crate) fn output(rendered: &Rendered) -> Value {
    trainyard_api::list::list(rendered.all_objects().cloned().collect())
}

/// Writes a bundle with these records.
pub(crate) fn write(
    path: &Path,
    loaded: &LoadedPlugins,
    recordings: Vec<Recording>,
) -> Result<(), ErrorList> {
    let mut files = BTreeMap::new();
    let mut plugins: BTreeMap<Arc<str>, Arc<PluginInfo>> = BTreeMap::new();
    let mut train_jobs = Vec::new();
    for (number, recording) in recordings.into_iter().enumerate() {
        let of = |file| job_file(number, file);
        train_jobs.push(JobEntry {
            namespace: recording.namespace,
            name: recording.name,
            from: recording.from,
            train_job: of("trainjob.json"),
            runtime: of("runtime.json"),
            lookups: of("lookups.json"),
            output: of("output.json"),
            plan: recording.plan,
        });
        let contents = recording.files.into_iter();
        files.extend(contents.map(|(file, content)| (of(file), content)));
        let active = recording.plugins.into_iter();
        plugins.extend(active.map(|plugin| (plugin.id.name.clone(), plugin)));
    }
    for plugin in plugins.values() {
        let entry = PluginEntry::of(plugin);
        files.insert(entry.file, loaded.component(&plugin.id)?);
    }
    let index = Index {
        form: FORM,
        trainyard: this_host(),
        cluster: Cluster::of(loaded.renderer.facts()),
        plugins: plugins
            .values()
            .map(|plugin| PluginEntry::of(plugin))
            .collect(),
        train_jobs,
        files: BTreeMap::new(),
    };
    pack(path, index, &files).map_err(|error| ErrorList::from_iter([error]))
}
