#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use trainyard_model::{
    call::Call,
    contract::VERSION,
    facts::{Facts, HostFacts},
    manifest::Manifest,
    object::ObjectKind,
    plan::{Plan, PlannedPlugin},
    plugin::{CallOutcome, Phase, Plugin},
    plugin_info::{PluginInfo, Settings},
};
use trainyard_render::{ClusterFacts, Renderer};

use super::*;

/// A plugin that does nothing.
struct Idle(Arc<PluginInfo>);

impl Plugin for Idle {
    fn info(&self) -> &Arc<PluginInfo> {
        &self.0
    }

    fn run(&self, _: Phase, call: Box<Call>) -> CallOutcome {
        let (end, fuel) = (Ok(()), None);
        CallOutcome { call, end, fuel }
    }
}

fn plugin(version: &str, emits: &str) -> Arc<dyn Plugin> {
    let manifest = json!({
        "name": "a", "version": version, "contract": VERSION, "activeWhen": "plugins", "phases": ["build"],
        "claims": {"writes": [format!("objects[v1/{emits}/-a]")]},
    });
    let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
    let plugin = PluginInfo::new(manifest, "native", Settings::built_in()).unwrap();
    Arc::new(Idle(Arc::new(plugin)))
}

fn renderer(version: &str, emits: &str, facts: ClusterFacts) -> Renderer {
    Renderer::new([plugin(version, emits)], facts).unwrap()
}

fn plain(version: &str) -> Renderer {
    renderer(version, "ConfigMap", ClusterFacts::default())
}

/// The plan of a TrainJob that uses the plugin.
fn plan(version: &str) -> Plan {
    let plugin = plugin(version, "ConfigMap");
    let planned = PlannedPlugin::of(plugin.info(), &Value::Null);
    Plan::new(vec![planned], &Facts::default())
}

fn number(generation: &Arc<Generation>) -> u64 {
    generation.number()
}

#[test]
fn what_has_pinned_a_generation_keeps_it() {
    let generations = Generations::new(plain("1.0.0"), false);
    let pinned = generations.pin("ml");
    generations.replace(Held::only(generations.generation((1, "1"), plain("2.0.0"))));
    assert_eq!(number(pinned.generation()), 0);
    assert_eq!(number(generations.pin("ml").generation()), 1);
    // No other reference to it is left.
    let weak = Arc::downgrade(pinned.generation());
    drop(pinned);
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_started_train_job_has_the_generation_that_keeps_its_plan() {
    let generations = Generations::new(plain("1.0.0"), false);
    let first = generations.held().running.clone();
    let second = generations.generation((1, "1"), plain("2.0.0"));
    let third = generations.generation((2, "2"), plain("3.0.0"));
    generations.replace(Held {
        running: second,
        rolling: Some(Rolling {
            generation: third,
            percent: 50,
        }),
        previous: Some(first),
    });
    // The share contains the namespace `default`, and not `ml`.
    for namespace in ["default", "ml"] {
        let pinned = generations.pin(namespace);
        for (at, version) in ["1.0.0", "2.0.0", "3.0.0"].into_iter().enumerate() {
            let keeping = pinned.keeping(&plan(version));
            let keeping: Vec<_> = keeping.iter().map(number).collect();
            assert_eq!(keeping, [u64::try_from(at).unwrap()]);
        }
        assert!(pinned.keeping(&plan("4.0.0")).is_empty());
        // Every generation keeps it.
        let keeping = pinned.keeping(&Plan::new(Vec::new(), &Facts::default()));
        assert_eq!(
            number(keeping.first().unwrap()),
            number(pinned.generation())
        );
        assert_eq!(keeping.len(), 3);
    }
}

#[test]
fn cluster_scoped_objects_have_the_running_generation() {
    let generations = Generations::new(plain("1.0.0"), false);
    let held = Held {
        rolling: Some(Rolling {
            generation: generations.generation((1, "1"), plain("2.0.0")),
            percent: 100,
        }),
        ..(*generations.held()).clone()
    };
    assert_eq!((number(held.of("")), number(held.of("ml"))), (0, 1));
}

/// The objects of a TrainJob that has started may be of a kind that no new plugin emits.
#[test]
fn kinds_of_every_held_generation_are_known() {
    let emits = |pinned: &Pinned, kind: &str| pinned.emits(&ObjectKind::new("v1", kind).unwrap());
    let first = renderer("1.0.0", "Service", ClusterFacts::default());
    let generations = Generations::new(first, false);
    let previous = Some(generations.held().running.clone());
    let running = generations.generation((1, "1"), plain("2.0.0"));
    let held = Held {
        previous,
        ..Held::only(running)
    };
    generations.replace(held.clone());
    let pinned = generations.pin("ml");
    assert!(emits(&pinned, "Service") && emits(&pinned, "ConfigMap"));
    generations.replace(Held {
        previous: None,
        ..held
    });
    assert!(!emits(&generations.pin("ml"), "Service"));
}

/// Such as the certificates of the status server, which are rotated.
#[test]
fn all_generations_have_the_same_facts_of_the_host() {
    let own = BTreeMap::from([("host/own".to_owned(), "a".to_owned())]);
    let facts = ClusterFacts {
        host: HostFacts::new(own),
        ..ClusterFacts::default()
    };
    let generations = Generations::new(plain("1.0.0"), false);
    let second = generations.generation((1, "1"), renderer("2.0.0", "ConfigMap", facts));
    let first = generations.held().running.clone();
    for text in ["one", "two"] {
        generations.host_facts().set("host/status-ca", Some(text));
        for generation in [&first, &second] {
            let facts = generation.renderer().facts().host.now();
            assert_eq!(facts.get("host/status-ca").map(String::as_str), Some(text));
            assert_eq!(facts.get("host/own"), None);
        }
    }
}

/// After a restart, a suspended TrainJob follows the operator's settings.
#[test]
fn settings_that_decide_which_plugins_run_are_inputs() {
    let inputs = |exemptions: Value| {
        let manifest = json!({
            "name": "a", "version": "1.0.0", "contract": VERSION, "activeWhen": "always", "phases": ["check"],
        });
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        let settings = Settings {
            exemptions: serde_json::from_value(exemptions).unwrap(),
            ..Settings::default()
        };
        let plugin = PluginInfo::new(manifest, "native", settings).unwrap();
        let plugin: Arc<dyn Plugin> = Arc::new(Idle(Arc::new(plugin)));
        let renderer = Renderer::new([plugin], ClusterFacts::default()).unwrap();
        Generations::new(renderer, false)
            .held()
            .running
            .common
            .clone()
    };
    let of_namespace = json!({"disabledFor": {"namespaces": ["ml"]}});
    let all = [
        json!({}),
        of_namespace,
        json!({"trainJobsMayDisable": true}),
    ]
    .map(inputs);
    let [first, second, third] = &all;
    assert!(first != second && first != third && second != third);
}

/// A plugin of a revision that is not available to a process concerns the TrainJobs that use it alone.
#[test]
fn what_could_be_loaded_of_a_revision_is_no_input() {
    let inputs = |at_start: &str, hash: &str, loaded: Renderer| {
        let generations = Generations::new(plain(at_start), false);
        generations.generation((1, hash), loaded).common.clone()
    };
    let nothing = || Renderer::new([], ClusterFacts::default()).unwrap();
    let whole = inputs("1.0.0", "a", plain("2.0.0"));
    assert_eq!(whole, inputs("1.0.0", "a", nothing()));
    // Another revision, and an image with other built-in plugins.
    assert_ne!(whole, inputs("1.0.0", "b", plain("2.0.0")));
    assert_ne!(whole, inputs("1.0.1", "a", plain("2.0.0")));
}
