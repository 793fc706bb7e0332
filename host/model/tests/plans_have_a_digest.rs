//! A plan has one digest: independent of the load order, different for every change of its inputs, and in a form that is stable between
//! releases.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_model::{
    claims::Grants,
    facts::Facts,
    limits::Limits,
    plan::{Generation, Plan, PlannedPlugin},
    plugin_info::{PluginInfo, Settings},
};

use crate::common::{granted, manifest, parsed, with};

fn of(name: &str, content: &str, more: Value, settings: Settings) -> Arc<PluginInfo> {
    let manifest = with(manifest(name, &[("writes", "labels[x]")]), more);
    Arc::new(PluginInfo::new(parsed(&manifest), content, settings).unwrap())
}

fn one(more: Value, settings: Settings) -> Arc<PluginInfo> {
    of("one", "sha256:1", more, settings)
}

/// The plugin that the others are compared with, and that runs before another.
fn first() -> Arc<PluginInfo> {
    one(json!({}), Settings::default())
}

fn other() -> Arc<PluginInfo> {
    let manifest = manifest("other", &[("reads", "labels[x]")]);
    Arc::new(PluginInfo::new(parsed(&manifest), "sha256:2", Settings::default()).unwrap())
}

fn loaded(plugins: impl IntoIterator<Item = Arc<PluginInfo>>) -> String {
    Generation::new(plugins).unwrap().digest(&Facts::default())
}

fn planned(plugins: &[(&PluginInfo, Value)]) -> String {
    let planned = plugins
        .iter()
        .map(|(plugin, config)| PlannedPlugin::of(plugin, config));
    Plan::new(planned.collect(), &Facts::default()).digest
}

/// Plugins in each of which one thing differs from [`first`].
fn changed() -> Vec<(&'static str, Arc<PluginInfo>)> {
    let schema = json!({"operatorConfigSchema": {"properties": {"a": {"type": "integer"}}}});
    let config = Settings {
        operator_config: Arc::new(json!({"a": 1})),
        ..Settings::default()
    };
    let order = Settings {
        before: vec!["other".to_owned()],
        ..Settings::default()
    };
    let all = Settings {
        grants: Grants::AsClaimed,
        ..Settings::default()
    };
    vec![
        (
            "its name",
            of("two", "sha256:1", json!({}), Settings::default()),
        ),
        (
            "its version",
            one(json!({"version": "1.0.1"}), Settings::default()),
        ),
        (
            "its content",
            of("one", "sha256:3", json!({}), Settings::default()),
        ),
        ("its configuration", one(schema, config)),
        (
            "a grant",
            one(json!({}), granted(&["pod-sets[*].scheduler-name"])),
        ),
        ("all granted", one(json!({}), all)),
        ("its declared order", one(json!({}), order)),
    ]
}

#[test]
fn load_order_does_not_change_the_digest() {
    assert_eq!(loaded([first(), other()]), loaded([other(), first()]));
    assert_ne!(loaded([first(), other()]), loaded([first()]));
}

#[test]
fn every_input_of_a_plan_changes_its_digest() {
    let (all, job) = (
        loaded([first(), other()]),
        planned(&[(&first(), json!({}))]),
    );
    let mut seen = vec![all, job];
    for (what, plugin) in changed() {
        for digest in [
            loaded([plugin.clone(), other()]),
            planned(&[(&plugin, json!({}))]),
        ] {
            assert!(!seen.contains(&digest), "{what}");
            seen.push(digest);
        }
    }
}

#[test]
fn runtime_configuration_and_order_change_a_train_jobs_digest() {
    let (a, b) = (first(), other());
    let both = planned(&[(&a, json!({})), (&b, json!({}))]);
    assert_ne!(both, planned(&[(&b, json!({})), (&a, json!({}))]));
    assert_ne!(both, planned(&[(&a, json!({"level": 1})), (&b, json!({}))]));
    let written = |text| planned(&[(&a, serde_json::from_str(text).unwrap())]);
    assert_eq!(
        written(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#),
        written(r#"{"b": {"d": 3, "c": 2}, "a": 1}"#)
    );
}

/// Two that read what the other's key is: only the claims make an order of them.
#[test]
fn plugin_order_changes_the_digest() {
    let reads = |name: &str, reads: &str, writes: &str| {
        let manifest = manifest(name, &[("reads", reads), ("writes", writes)]);
        Arc::new(PluginInfo::new(parsed(&manifest), "sha256:1", Settings::default()).unwrap())
    };
    let one = loaded([
        reads("a", "labels[p]", "labels[q]"),
        reads("b", "labels[q]", "labels[r]"),
    ]);
    let other = loaded([
        reads("a", "labels[r]", "labels[q]"),
        reads("b", "labels[p]", "labels[r]"),
    ]);
    assert_ne!(one, other);
}

#[test]
fn exclusions_change_the_digest() {
    let apart = Settings {
        excludes: vec!["other".to_owned()],
        ..Settings::default()
    };
    let together = loaded([first(), other()]);
    assert_ne!(together, loaded([one(json!({}), apart), other()]));
}

/// The plan of a TrainJob has only the plugins that run for it.
#[test]
fn exemptions_change_the_digest_of_all_plugins_only() {
    let exemptions = [
        json!({"disabledFor": {"namespaces": ["a"]}}),
        json!({"disabledFor": {"runtimes": ["ClusterTrainingRuntime/a"]}}),
        json!({"trainJobsMayDisable": true}),
    ];
    let mut seen = vec![loaded([first()])];
    for exemptions in exemptions {
        let settings = Settings {
            exemptions: serde_json::from_value(exemptions).unwrap(),
            ..Settings::default()
        };
        let exempting = one(json!({}), settings);
        let digest = loaded([exempting.clone()]);
        assert!(!seen.contains(&digest));
        seen.push(digest);
        assert_eq!(
            planned(&[(&exempting, json!({}))]),
            planned(&[(&first(), json!({}))])
        );
    }
}

/// A limit decides whether a call ends, and never what it writes.
#[test]
fn limits_do_not_change_the_digest() {
    let settings = Settings {
        limits: Limits {
            fuel: 7,
            ..Limits::default()
        },
        ..Settings::default()
    };
    assert_eq!(loaded([first()]), loaded([one(json!({}), settings)]));
}

#[test]
fn facts_change_the_digest() {
    let facts = |name: &str, text: &str| {
        Facts::new([(name.to_owned(), text.to_owned())].into_iter().collect())
    };
    let one = facts("a", "b");
    let of_all = |facts: &Facts| Generation::new([first()]).unwrap().digest(facts);
    let of_job =
        |facts: &Facts| Plan::new(vec![PlannedPlugin::of(&first(), &json!({}))], facts).digest;
    for digest in [&of_all as &dyn Fn(&Facts) -> String, &of_job] {
        assert_eq!(digest(&one), digest(&facts("a", "b")));
        for other in [Facts::default(), facts("a", "c"), facts("b", "b")] {
            assert_ne!(digest(&one), digest(&other));
        }
    }
}

/// Hashing this text gives the digests that Trainyard prints: `sha256sum` over the lines of each.
#[test]
fn digest_input_is_documented() {
    let none = "sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945";
    let empty = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    let no_order = "sha256:643d5437104296e21d906ecb15b2c96ad278f20cfc4af53b12bb6069bd853726";
    let settings = first().pinned_settings();
    assert_eq!(settings.grants, none, "of []");
    assert_eq!(settings.operator_config, empty, "of {{}}");
    assert_eq!(settings.order, no_order, "of [[],[]]");
    let sha256 = |text: &str| trainyard_model::names::sha256_digest(text);
    let all = format!(
        "trainyard plan 1\nplugin one 1.0.0 sha256:1 config - operator {none} {empty} {no_order}\nplugin other 1.0.0 sha256:2 config - operator {none} {empty} {no_order}\norder one other\n"
    );
    assert_eq!(loaded([other(), first()]), sha256(&all));
    let job = format!(
        "trainyard plan 1\nplugin one 1.0.0 sha256:1 config {empty} operator {none} {empty} {no_order}\norder one\n"
    );
    assert_eq!(planned(&[(&first(), json!({}))]), sha256(&job));
    assert_eq!(
        planned(&[(&first(), json!({}))]),
        "sha256:9882c881cc5b74c4a92f4d0bca3a1d43ad37313e4071936af223169695d6a97c"
    );
}
