//! Inputs of Flux, generated. This is a module of tests/differences_from_the_reference_are_listed.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use super::{Generator, compare};
use crate::differences_from_the_reference_are_listed::generated::{
    Change, fields, list, one_of, parts::word, runtime,
};

pub(crate) const GENERATORS: &[Generator] = &[Generator {
    change,
    ..Generator::new("flux", runtime)
}];

fn runtime() -> BoxedStrategy<Value> {
    let processes = (1..5i64).prop_map(Value::from).boxed();
    let flux = fields(vec![("numProcPerNode", 0.4, processes)]);
    runtime::with_policy("flux", 0.9, flux)
}

/// What turns an input into one of Flux.
struct Settings {
    job_env: Value,
    runtime_env: Value,
    words: Value,
    pod: Value,
    installer: bool,
}

/// Adds commands, env vars and pod fields that affect Flux.
fn change() -> BoxedStrategy<Change> {
    let env = || {
        let var = |name: &'static str, values: &'static [&'static str]| {
            word(values)
                .prop_map(move |value| json!({"name": name, "value": value}))
                .boxed()
        };
        list(vec![
            (
                0.2,
                var("FLUX_NETWORK_DEVICE", &["ib0", "ib0", "bond0.100", "a b"]),
            ),
            (
                0.2,
                var("FLUX_QUEUE_POLICY", &["easy", "easy", "fcfs", "\"; x"]),
            ),
            (
                0.2,
                var("FLUX_VIEW_IMAGE", &["registry.example.com/view:1"]),
            ),
        ])
    };
    let words = one_of(vec![
        json!(["lmp", "-in", "in.reaxc.hns"]),
        json!(["lmp", "-in", "in file"]),
        json!(["python3", "-c", "print('a b')"]),
        Value::Null,
    ]);
    let pod = fields(vec![
        ("setHostnameAsFQDN", 0.03, Just(json!(true)).boxed()),
        (
            "securityContext",
            0.2,
            one_of(vec![
                json!({"runAsUser": 1000}),
                json!({"runAsUser": 0}),
                json!({"runAsNonRoot": true, "runAsUser": 5, "runAsGroup": 6}),
            ]),
        ),
    ]);
    (env(), env(), words, pod, prop::bool::weighted(0.03))
        .prop_map(|(job_env, runtime_env, words, pod, installer)| {
            let settings = Settings {
                job_env,
                runtime_env,
                words,
                pod,
                installer,
            };
            Change::new(move |runtime, job| {
                settings.apply(runtime, job);
                Vec::new()
            })
        })
        .boxed()
}

impl Settings {
    fn apply(&self, runtime: &mut Value, job: &mut Value) {
        let trainer = &mut job["spec"]["trainer"];
        if trainer.is_object() {
            append(&mut trainer["env"], &self.job_env);
            if self.words.is_array() {
                trainer["command"] = self.words.clone();
            }
        }
        for pod in runtime::trainer_pods(runtime) {
            for (name, value) in self.pod.as_object().into_iter().flatten() {
                pod[name] = value.clone();
            }
            if self.installer {
                append(
                    &mut pod["initContainers"],
                    &json!([{"name": "flux-installer", "image": "registry.example.com/own:1"}]),
                );
            }
            let containers = pod["containers"].as_array_mut().into_iter().flatten();
            for node in containers.filter(|container| container["name"] == "node") {
                append(&mut node["env"], &self.runtime_env);
            }
        }
    }
}

/// Appends to a list, which is created if it does not exist.
fn append(list: &mut Value, items: &Value) {
    let items = items.as_array().cloned().unwrap_or_default();
    match list {
        Value::Array(list) => list.extend(items),
        list if !items.is_empty() => *list = items.into(),
        _ => {}
    }
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn generated_inputs_differ_as_listed() {
    compare(&GENERATORS[0], 1000);
}
