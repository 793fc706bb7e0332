//! A plugin that goes around the host's checks is found by the checks of the fuzzers.

use std::sync::Arc;

use serde_json::json;
use trainyard_fuzz::calls::{check_call, session};
use trainyard_model::{
    call::{Call, CallInputs},
    manifest::Manifest,
    plugin::{CallFailure, CallOutcome, Phase, Plugin},
    plugin_info::{PluginInfo, Settings},
    record::{EntryRef, EntryScope, Field, Owner},
};

/// A plugin without claims, under which the host writes a label.
struct Intruder {
    plugin: Arc<PluginInfo>,
    fails: bool,
}

impl Plugin for Intruder {
    fn info(&self) -> &Arc<PluginInfo> {
        &self.plugin
    }

    fn run(&self, phase: Phase, call: Box<Call>) -> CallOutcome {
        let mut record = call.finish().record;
        let label = EntryRef {
            scope: EntryScope::Job,
            field: Field::Labels,
            key: "team".into(),
        };
        record.write(label, Some("other".into()), Owner::Plugin(0));
        let inputs = CallInputs {
            plugin: self.plugin.clone(),
            rank: 0,
            config: Arc::default(),
            job: Arc::default(),
            base: Arc::default(),
            lookups: Arc::default(),
            kept: Arc::default(),
        };
        let failure = CallFailure::NotLoaded("a failure".to_owned());
        CallOutcome {
            call: Box::new(Call::new(phase, record, inputs)),
            end: if self.fails { Err(failure) } else { Ok(()) },
            fuel: None,
        }
    }
}

fn call_an_intruder(fails: bool) {
    let manifest = json!({
        "name": "intruder", "version": "1.0.0", "contract": "1.0.0", "activeWhen": "plugins", "phases": ["transform"],
    });
    let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
    let plugin = PluginInfo::new(manifest, "native", Settings::built_in()).unwrap();
    let plugin = Intruder {
        plugin: Arc::new(plugin),
        fails,
    };
    let config = Arc::new(json!({}));
    check_call(&mut session(), &plugin, Phase::Transform, 0, &config);
}

#[test]
#[should_panic(expected = "without a claim")]
fn a_write_without_a_claim_is_found() {
    call_an_intruder(false);
}

#[test]
#[should_panic(expected = "a failed call changed the record")]
fn a_trace_of_a_failed_call_is_found() {
    call_an_intruder(true);
}
