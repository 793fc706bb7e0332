//! How the plugins of two revisions differ.

use std::collections::BTreeMap;

use trainyard_config::policy_plugin::{PluginRevisionSpec, ResolvedPlugin};

/// Returns the plugins that two revisions do not have in common, by name.
pub(super) fn changed(old: Option<&PluginRevisionSpec>, new: &PluginRevisionSpec) -> Vec<String> {
    let plugins = |spec: Option<&PluginRevisionSpec>| {
        let plugins = spec.into_iter().flat_map(|spec| spec.plugins.clone());
        let named = plugins.map(|plugin| (plugin.name.clone(), plugin));
        named.collect::<BTreeMap<_, _>>()
    };
    let (old, new) = (plugins(old), plugins(Some(new)));
    let names: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let differs = |name: &&&String| match (old.get(**name), new.get(**name)) {
        (Some(old), Some(new)) => !is_same(old, new),
        _ => true,
    };
    names
        .iter()
        .filter(differs)
        .map(|name| (*name).clone())
        .collect()
}

/// Whether two plugins of revisions are the same, whatever the generation of their PolicyPlugins.
pub(super) fn is_same(one: &ResolvedPlugin, other: &ResolvedPlugin) -> bool {
    let mut one = one.clone();
    one.generation = other.generation;
    one == *other
}

/// Returns the plugins that a revision removes or disables although they are active for every TrainJob. A revision without any plugin removes
/// all: if the CRD is removed, so are all PolicyPlugins, and nobody asked for that.
pub(super) fn removed(old: &PluginRevisionSpec, new: &PluginRevisionSpec) -> Vec<String> {
    let is_always = |plugin: &&ResolvedPlugin| plugin.active_when.as_deref() == Some("always");
    let is_enabled = |plugin: &&ResolvedPlugin| !plugin.settings.disabled;
    let enabled = old.plugins.iter().filter(is_enabled);
    let remains = |name: &str| {
        new.plugins
            .iter()
            .filter(is_enabled)
            .any(|it| it.name == name)
    };
    let removed = enabled
        .filter(|plugin| (is_always(plugin) || new.plugins.is_empty()) && !remains(&plugin.name));
    removed.map(|plugin| plugin.name.clone()).collect()
}
