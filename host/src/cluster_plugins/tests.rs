#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use trainyard_config::{RenderingSection, policy_plugin::ResolvedPlugin};
use trainyard_controller::{
    generation::Generation,
    metrics::Metrics,
    plugins::{
        FetchedPlugin, LoadedPlugins, Mode, PluginCondition, PluginLoader as _, Refusal, Verified,
    },
    queue::{Backoff, Queue},
    settings::FeatureGates,
};
use trainyard_model::facts::HostFacts;
use trainyard_render::SkippedPlugin;

use super::*;
use crate::{args::CacheArgs, built_ins, load};

/// A loader as that of a controller, whose store is empty.
fn loader() -> ProcessLoader {
    let cache = CacheArgs {
        cache_dir: None,
        cache_size: 1 << 29,
        compiled_dir: None,
    };
    let shared = Shared {
        loader: load::loader(&cache, load::cores()).unwrap(),
        rendering: RenderingSection::default(),
        gates: FeatureGates::default(),
        status_url: None,
        metrics: Arc::new(Metrics::new(&Queue::new(Backoff::default()))),
    };
    ProcessLoader {
        shared: Arc::new(shared),
        content: Arc::new(Content {
            store: PathBuf::from("/nonexistent"),
            plugin_dir: None,
        }),
    }
}

/// The plugin of a PolicyPlugin with the name of a built-in one.
fn torch(origin: &Value, version: Option<&str>, settings: &Value) -> ResolvedPlugin {
    let plugin = json!({
        "name": "torch", "generation": 1, "origin": origin, "version": version, "settings": settings,
        "activeWhen": "mlPolicy.torch",
    });
    serde_json::from_value(plugin).unwrap()
}

fn load(
    loader: &ProcessLoader,
    plugin: &ResolvedPlugin,
    mode: Mode,
    reuse: &[Arc<Generation>],
) -> Result<LoadedPlugins, Vec<Refusal>> {
    let set = [FetchedPlugin {
        plugin: plugin.clone(),
        content: Ok(Verified::default()),
    }];
    loader.load(&set, mode, reuse, &HostFacts::default())
}

/// Returns the version of the plugin `torch` among loaded plugins.
fn version(loaded: &LoadedPlugins) -> Option<String> {
    let torch = loaded.renderer.generation().plugin("torch")?;
    Some(torch.id.version.to_string())
}

#[test]
fn built_in_plugin_is_loaded_instead_of_one_that_is_as_new_without_its_content() {
    let loader = loader();
    let shipped = built_ins::manifest("torch").unwrap().version;
    let digest = format!("sha256:{}", "0".repeat(64));
    let origin = json!({"oci": {"repository": "registry.example/torch", "manifestDigest": digest}});
    // Its digest is that of the plugin which is not used.
    let settings = json!({"digest": digest, "grants": ["labels[example.com/later]"]});
    let plugin = torch(&origin, Some(&shipped), &settings);
    let why = loader.built_in_instead(&plugin).unwrap();
    assert!(why.contains(&format!("not newer than {shipped}")), "{why}");
    for mode in [Mode::Strict, Mode::Lenient] {
        let loaded = load(&loader, &plugin, mode, &[]).ok().unwrap();
        assert_eq!(version(&loaded).as_ref(), Some(&shipped));
    }

    // A newer one is not signed: it is refused, and the built-in one does not take its place.
    let plugin = torch(&origin, Some("99.0.0"), &settings);
    assert_eq!(loader.built_in_instead(&plugin), None);
    let refused = load(&loader, &plugin, Mode::Strict, &[]).err().unwrap();
    let reasons: Vec<_> = refused.iter().map(|it| &*it.problem.reason).collect();
    assert_eq!(reasons, ["NotSigned"]);
    let loaded = load(&loader, &plugin, Mode::Lenient, &[]).ok().unwrap();
    assert_eq!(version(&loaded), None);
    let name = |it: &SkippedPlugin| it.declared.as_ref().map(|it| it.name.clone());
    let skipped: Vec<_> = loaded.renderer.skipped().iter().filter_map(name).collect();
    assert!(skipped.contains(&"torch".to_owned()), "{skipped:?}");
}

#[test]
fn name_that_no_built_in_plugin_has_is_a_problem_of_the_source() {
    let mut plugin = torch(&json!({"builtIn": {}}), None, &json!({}));
    plugin.name = "torhc".to_owned();
    let refused = load(&loader(), &plugin, Mode::Strict, &[]).err().unwrap();
    let problem = &refused.first().unwrap().problem;
    assert_eq!(
        (problem.condition, &*problem.reason),
        (PluginCondition::Pulled, "NotBuiltIn")
    );
}

#[test]
fn disabled_plugin_is_not_loaded_whatever_is_wrong_with_it() {
    let loader = loader();
    let digest = format!("sha256:{}", "0".repeat(64));
    let origin = json!({"oci": {"repository": "registry.example/torch", "manifestDigest": digest}});
    // It is not in the store, and not signed.
    let plugin = torch(&origin, Some("99.0.0"), &json!({"disabled": true}));
    let mut misnamed = torch(&json!({"builtIn": {}}), None, &json!({"disabled": true}));
    misnamed.name = "torhc".to_owned();
    for mode in [Mode::Strict, Mode::Lenient] {
        let loaded = load(&loader, &plugin, mode, &[]).ok().unwrap();
        assert_eq!(version(&loaded), None);
        let mut skipped = loaded.renderer.skipped().iter();
        let is_it = |it: &&SkippedPlugin| it.declared.as_ref().is_some_and(|it| it.name == "torch");
        let skipped = skipped.find(is_it).unwrap();
        assert!(skipped.is_disabled && skipped.why.contains("disabled"));
        assert!(load(&loader, &misnamed, mode, &[]).is_ok());
    }
}

#[test]
fn built_in_plugin_whose_feature_gate_is_off_is_left_out_with_a_warning() {
    let loader = loader();
    let name = "train-job-status";
    let plugin = json!({"name": name, "generation": 1, "origin": {"builtIn": {}}, "settings": {}});
    let plugin = serde_json::from_value(plugin).unwrap();
    for mode in [Mode::Strict, Mode::Lenient] {
        let loaded = load(&loader, &plugin, mode, &[]).ok().unwrap();
        assert!(loaded.renderer.generation().plugin(name).is_none());
        let is_it = |it: &&SkippedPlugin| it.declared.as_ref().is_some_and(|it| it.name == name);
        let skipped = loaded.renderer.skipped().iter().find(is_it).unwrap();
        assert!(skipped.is_disabled);
        let warnings = loaded.warnings.into_iter().collect::<Vec<_>>();
        let warning = "has no effect, because the feature gate TrainJobStatus is off; turn it on, or delete the PolicyPlugin";
        assert_eq!(warnings, [(name.to_owned(), vec![warning.to_owned()])]);
    }
}

#[test]
fn grants_that_a_plugin_does_not_claim_are_warnings_about_it_alone() {
    let loader = loader();
    let settings = json!({"grants": ["labels[example.com/a]", "pod-sets[*].containers[*].env[PET_*]", "labels[example.com/b]"]});
    let plugin = torch(&json!({"builtIn": {}}), None, &settings);
    for mode in [Mode::Strict, Mode::Lenient] {
        let mut loaded = load(&loader, &plugin, mode, &[]).ok().unwrap();
        let warnings = loaded.warnings.remove("torch").unwrap();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        for (warning, grant) in warnings.iter().zip([
            "spec.grants[0]: `labels[example.com/a]` covers no claim of plugin torch",
            "spec.grants[2]: `labels[example.com/b]` covers no claim of plugin torch",
        ]) {
            assert!(warning.starts_with(grant), "{warning}");
            assert!(warning.contains("; remove it"), "{warning}");
        }
        assert!(loaded.warnings.is_empty());
    }
}

#[test]
fn configuration_that_does_not_fit_the_plugin_is_refused_with_its_path() {
    let settings = json!({"config": {"mistyped": 1}});
    let plugin = torch(&json!({"builtIn": {}}), None, &settings);
    let refused = load(&loader(), &plugin, Mode::Strict, &[]).err().unwrap();
    let problem = &refused.first().unwrap().problem;
    assert_eq!(
        (problem.condition, &*problem.reason),
        (PluginCondition::Loaded, "InvalidConfig")
    );
    assert!(problem.message.contains("mistyped"), "{}", problem.message);
}
