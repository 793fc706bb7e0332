//! The operator's settings for a plugin, in words.

use serde_json::{Value, json};
use trainyard_model::{
    claims::Grants,
    limits::Limits,
    plugin_info::{PluginInfo, Settings},
};

/// Returns a line for each of these grants, and for each other setting that is not the default.
pub(super) fn lines(plugin: &PluginInfo, grants: &Grants) -> Vec<String> {
    let Settings {
        grants: _,
        obeyed: _,
        limits,
        compile,
        operator_config,
        after,
        before,
        excludes,
        is_disabled: _,
        exemptions,
        digest,
    } = &plugin.settings;
    let grants = match grants {
        Grants::AsClaimed => vec!["grants of all its claims".to_owned()],
        Grants::Paths(paths) => paths.iter().map(|path| format!("grant `{path}`")).collect(),
    };
    let defaults = json!(Limits::default());
    let limits = json!(limits);
    let limits = limits.as_object().into_iter().flatten();
    let limits = limits.filter(|(name, limit)| defaults.get(name) != Some(limit));
    let limits = limits.map(|(name, limit)| format!("limit {name} {limit}"));
    let compile = [
        ("seconds", compile.seconds.map(u64::from)),
        ("memoryBytes", compile.memory_bytes),
    ];
    let compile = compile.into_iter();
    let compile = compile.filter_map(|(name, limit)| Some(format!("compile {name} {}", limit?)));
    let config = Some(&**operator_config).filter(|config| **config != json!({}));
    let config = config.map(|config| format!("config {config}"));
    let lists = [("after", after), ("before", before), ("excludes", excludes)];
    let lists = lists.into_iter().flat_map(|(list, names)| {
        let names = names.iter();
        names.map(move |name| format!("{list} {name}"))
    });
    let exemptions = (!exemptions.is_empty()).then(|| {
        let exemptions: Value = json!(exemptions);
        format!("disabled for some TrainJobs: {exemptions}")
    });
    let digest = digest.iter().map(|digest| format!("digest {digest}"));
    grants
        .into_iter()
        .chain(limits)
        .chain(compile)
        .chain(config)
        .chain(lists)
        .chain(exemptions)
        .chain(digest)
        .collect()
}
