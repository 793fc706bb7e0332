//! How the plugins of two revisions differ.

use std::collections::{BTreeMap, BTreeSet};

use trainyard_config::policy_plugin::{
    BuiltInOrigin, Origin, PluginRevisionSpec, PolicyPluginSpec, ResolvedPlugin,
};
use trainyard_model::plugin_info::JobSelector;

/// Returns the plugins that two revisions do not have in common, by name.
pub(super) fn changed(old: Option<&PluginRevisionSpec>, new: &PluginRevisionSpec) -> Vec<String> {
    let plugins = |spec: Option<&PluginRevisionSpec>| {
        let plugins = spec.into_iter().flat_map(|spec| spec.plugins.clone());
        let named = plugins.map(|plugin| (plugin.name.clone(), plugin));
        named.collect::<BTreeMap<_, _>>()
    };
    let (old, new) = (plugins(old), plugins(Some(new)));
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
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

/// Returns the plugins that are active for every TrainJob, as far as their settings say, and that a revision removes, disables or enables for fewer.
/// A revision without any plugin removes all: if the CRD is removed, so are all PolicyPlugins, and nobody asked for that. `built_in` are the
/// built-in plugins that are active for every TrainJob, also in a revision that does not have them.
pub(super) fn removed(
    old: &PluginRevisionSpec,
    new: &PluginRevisionSpec,
    built_in: &BTreeSet<String>,
) -> Vec<String> {
    let removes_all = new.plugins.is_empty();
    let all = |spec: &PluginRevisionSpec| match removes_all {
        true => spec.plugins.clone(),
        false => with_built_in(spec, built_in),
    };
    let (old, new) = (all(old), all(new));
    let is_always = |plugin: &ResolvedPlugin| {
        let is_built_in = matches!(plugin.origin, Origin::BuiltIn(_));
        is_always(plugin) || is_built_in && built_in.contains(&plugin.name)
    };
    let old = old.iter().filter(|it| !it.settings.disabled);
    let removed = old.filter(|plugin| {
        let mut remaining = new.iter().filter(|it| it.name == plugin.name);
        (is_always(plugin) || removes_all) && !remaining.any(|it| covers(it, plugin))
    });
    removed.map(|plugin| plugin.name.clone()).collect()
}

/// Returns the plugins of a revision, with these built-in ones as shipped unless it has them otherwise.
fn with_built_in(spec: &PluginRevisionSpec, built_in: &BTreeSet<String>) -> Vec<ResolvedPlugin> {
    let has = |name: &String| spec.plugins.iter().any(|it| it.name == *name);
    let shipped = built_in.iter().filter(|name| !has(name));
    let shipped = shipped.map(|name| ResolvedPlugin {
        name: name.clone(),
        generation: 0,
        origin: Origin::BuiltIn(BuiltInOrigin {}),
        version: None,
        digest: None,
        active_when: None,
        settings: PolicyPluginSpec::default(),
    });
    spec.plugins.iter().cloned().chain(shipped).collect()
}

fn is_always(plugin: &ResolvedPlugin) -> bool {
    plugin.active_when.as_deref() == Some("always")
}

/// Whether a plugin is active for each TrainJob for which an older one is that is always active. A built-in plugin does what this release says.
fn covers(new: &ResolvedPlugin, old: &ResolvedPlugin) -> bool {
    let is_within = |one: &JobSelector, other: &JobSelector| {
        one.namespaces.is_subset(&other.namespaces) && one.runtimes.is_subset(&other.runtimes)
    };
    let is_always = is_always(new) || matches!(new.origin, Origin::BuiltIn(_));
    let (new, old) = (&new.settings, &old.settings);
    let is_enabled = new.enabled_for.is_empty()
        || !old.enabled_for.is_empty() && is_within(&old.enabled_for, &new.enabled_for);
    let may_stay = old.train_jobs_may_disable || !new.train_jobs_may_disable;
    is_always
        && !new.disabled
        && is_enabled
        && is_within(&new.disabled_for, &old.disabled_for)
        && may_stay
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use serde_json::{Value, json};

    use super::*;

    fn revision(origin: &Value, active_when: &str, settings: &Value) -> PluginRevisionSpec {
        let guard = json!({
            "name": "guard", "origin": origin, "activeWhen": active_when, "settings": settings,
        });
        serde_json::from_value(json!({"format": 1, "number": 1, "plugins": [guard]})).unwrap()
    }

    fn of_file(active_when: &str, settings: &Value) -> PluginRevisionSpec {
        let digest = format!("sha256:{}", "a".repeat(64));
        let file = json!({"file": {"name": "guard.wasm", "digest": digest}});
        revision(&file, active_when, settings)
    }

    #[test]
    fn plugins_that_are_no_longer_active_for_every_train_job_are_removed() {
        let two = json!({"namespaces": ["a", "b"]});
        let one = json!({"namespaces": ["a"]});
        for (old, new, is_removed) in [
            (json!({}), json!({}), false),
            (json!({}), json!({"config": {"a": 1}}), false),
            (json!({}), json!({"disabled": true}), true),
            (json!({}), json!({"enabledFor": one}), true),
            (
                json!({"enabledFor": one}),
                json!({"enabledFor": two}),
                false,
            ),
            (json!({"enabledFor": two}), json!({"enabledFor": one}), true),
            (json!({"enabledFor": one}), json!({}), false),
            (json!({}), json!({"disabledFor": one}), true),
            (
                json!({"disabledFor": one}),
                json!({"disabledFor": two}),
                true,
            ),
            (
                json!({"disabledFor": two}),
                json!({"disabledFor": one}),
                false,
            ),
            (
                json!({"disabledFor": one}),
                json!({"disabledFor": {"runtimes": ["ClusterTrainingRuntime/a"]}}),
                true,
            ),
            (json!({}), json!({"trainJobsMayDisable": true}), true),
            (
                json!({"trainJobsMayDisable": true}),
                json!({"trainJobsMayDisable": true}),
                false,
            ),
            (json!({"disabled": true}), json!({"disabled": true}), false),
        ] {
            let what = format!("{old} {new}");
            let found = removed(
                &of_file("always", &old),
                &of_file("always", &new),
                &BTreeSet::new(),
            );
            assert_eq!(!found.is_empty(), is_removed, "{what}");
        }
    }

    #[test]
    fn a_built_in_plugin_that_is_always_active_is_removed_like_any_other() {
        let built_in = BTreeSet::from(["guard".to_owned()]);
        let guard = |settings: Value| revision(&json!({"builtIn": {}}), "", &settings);
        let mut other = guard(json!({}));
        other.plugins[0].name = "other".to_owned();
        for (old, new, is_removed) in [
            // Without an entry, it is as shipped.
            (&other, &guard(json!({"disabled": true})), true),
            (
                &other,
                &guard(json!({"disabledFor": {"namespaces": ["a"]}})),
                true,
            ),
            (&other, &guard(json!({"config": {"a": 1}})), false),
            (&guard(json!({"config": {"a": 1}})), &other, false),
            (&guard(json!({})), &guard(json!({"disabled": true})), true),
            (&guard(json!({"disabled": true})), &other, false),
            (&other, &of_file("plugins", &json!({})), true),
            (&other, &of_file("always", &json!({})), false),
        ] {
            let what = format!("{old:?} {new:?}");
            let found = removed(old, new, &built_in);
            assert_eq!(found.contains(&"guard".to_owned()), is_removed, "{what}");
            // One that is not always active is removed by nothing.
            assert_eq!(removed(old, new, &BTreeSet::new()), [""; 0], "{what}");
        }
        let mut none = guard(json!({}));
        none.plugins.clear();
        assert_eq!(removed(&guard(json!({})), &none, &built_in), ["guard"]);
        assert_eq!(
            removed(&none, &guard(json!({"disabled": true})), &built_in),
            ["guard"]
        );
    }

    #[test]
    fn a_newer_file_that_is_active_when_it_is_named_removes_one_that_is_always_active() {
        let none = json!({});
        let (always, named) = (of_file("always", &none), of_file("plugins", &none));
        let removed = |old, new| super::removed(old, new, &BTreeSet::new());
        assert_eq!(removed(&always, &named), ["guard"]);
        assert!(removed(&named, &always).is_empty());
        let built_in = revision(&json!({"builtIn": {}}), "", &none);
        assert!(removed(&always, &built_in).is_empty());
    }
}
