//! A plugin that goes around the host's checks is found by the checks of the fuzzers.

use std::sync::Arc;

use serde_json::json;
use trainyard_fuzz::calls::{check_call, session};
use trainyard_model::{
    call::{Call, CallInputs},
    job::Job,
    manifest::Manifest,
    plugin::{CallFailure, CallOutcome, Phase, Plugin},
    plugin_info::{PluginInfo, Settings},
    record::{EntryRef, EntryScope, Field, Owner},
};

/// What happens under a plugin without claims.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Intrusion {
    WritesALabel,
    WritesALabelAndFails,
    AddsANode,
    EmitsAnObject,
}

/// A plugin without claims, under which the host does that.
struct Intruder {
    plugin: Arc<PluginInfo>,
    does: Intrusion,
}

impl Plugin for Intruder {
    fn info(&self) -> &Arc<PluginInfo> {
        &self.plugin
    }

    fn run(&self, phase: Phase, call: Box<Call>) -> CallOutcome {
        let mut record = call.finish().record;
        let mut plugin = self.plugin.clone();
        match self.does {
            Intrusion::AddsANode => record.pod_sets.iter_mut().for_each(|set| set.count += 1),
            Intrusion::EmitsAnObject => {
                plugin = info(json!({"writes": ["objects[v1/ConfigMap/-a]"]}))
            }
            Intrusion::WritesALabel | Intrusion::WritesALabelAndFails => {
                let label = EntryRef {
                    scope: EntryScope::Job,
                    field: Field::Labels,
                    key: "team".into(),
                };
                record.write(label, Some("other".into()), Owner::Plugin(0));
            }
        }
        let job = Job {
            name: "llama".into(),
            ..Job::default()
        };
        let inputs = CallInputs {
            plugin,
            rank: 0,
            config: Arc::default(),
            job: job.into(),
            base: Arc::default(),
            lookups: Arc::default(),
            kept: Arc::default(),
        };
        let mut call = Box::new(Call::new(phase, record, inputs));
        if self.does == Intrusion::EmitsAnObject {
            let objects = call.context_objects(Call::CONTEXT).unwrap();
            call.objects_emit(objects, "v1", "ConfigMap", "-a", None)
                .unwrap();
        }
        let failure = CallFailure::NotLoaded("a failure".to_owned());
        let fails = self.does == Intrusion::WritesALabelAndFails;
        CallOutcome {
            call,
            end: if fails { Err(failure) } else { Ok(()) },
            fuel: None,
        }
    }
}

fn info(claims: serde_json::Value) -> Arc<PluginInfo> {
    let manifest = json!({
        "name": "intruder", "version": "1.0.0", "contract": "1.0.0", "activeWhen": "plugins", "phases": ["transform", "build"],
        "claims": claims,
    });
    let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
    Arc::new(PluginInfo::new(manifest, "native", Settings::built_in()).unwrap())
}

fn call_an_intruder(does: Intrusion) {
    let plugin = info(json!({}));
    let plugin = Intruder { plugin, does };
    let phase = match does {
        Intrusion::EmitsAnObject => Phase::Build,
        _ => Phase::Transform,
    };
    let config = Arc::new(json!({}));
    check_call(&mut session(), &plugin, phase, 0, &config);
}

#[test]
#[should_panic(expected = "without a claim")]
fn a_write_without_a_claim_is_found() {
    call_an_intruder(Intrusion::WritesALabel);
}

#[test]
#[should_panic(expected = "a failed call changed the record")]
fn a_trace_of_a_failed_call_is_found() {
    call_an_intruder(Intrusion::WritesALabelAndFails);
}

#[test]
#[should_panic(expected = "changed a pod set itself")]
fn a_pod_set_that_grows_is_found() {
    call_an_intruder(Intrusion::AddsANode);
}

#[test]
#[should_panic(expected = "emitted the ConfigMap llama-a without a claim")]
fn an_object_without_a_claim_is_found() {
    call_an_intruder(Intrusion::EmitsAnObject);
}
