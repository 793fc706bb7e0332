//! Inputs of torchtune.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use crate::differences_from_the_reference_are_listed::generated::{Change, list, one_of, runtime};

/// Turns an input of Torch into one of torchtune.
#[derive(Clone)]
struct Settings {
    name: &'static str,
    runtime_command: Value,
    runtime_args: Value,
    command: Value,
    args: Value,
    one_node: bool,
}

/// Names of runtimes with the configurations in their commands. The last two are those of users.
const RUNTIMES: [(&str, &str); 6] = [
    ("torchtune-llama3.2-1b", "llama3_2/1B_full"),
    ("torchtune-llama3.2-3b", "llama3_2/3B_full"),
    ("torchtune-llama3.3-70b", "llama3_3/70B_full"),
    ("torchtune-qwen2.5-1.5b", "qwen2_5/1.5B_full"),
    ("tuner", "llama3_2/1B_full"),
    ("torchtune-mistral-7b", "mistral/7B_full"),
];

/// Adds runtimes, commands and arguments of torchtune.
pub(super) fn change() -> BoxedStrategy<Change> {
    let names = prop_oneof![
        8 => Just(RUNTIMES[0]),
        4 => Just(RUNTIMES[1]),
        8 => Just(RUNTIMES[2]),
        4 => Just(RUNTIMES[3]),
        1 => Just(RUNTIMES[4]),
        1 => Just(RUNTIMES[5]),
    ];
    let command = prop_oneof![
        12 => Just(json!(["tune", "run"])),
        1 => Just(json!(["tune", "run", "full_finetune_single_device", "--config", "my.yaml"])),
        1 => Just(json!(["python", "train.py"])),
        2 => Just(Value::Null),
    ];
    let runtime_args = prop_oneof![
        12 => Just(Value::Null),
        1 => Just(json!(["epochs=1", "model.lora_attn_modules=[q_proj]"])),
        1 => Just(json!(["output_dir=/data/output"])),
    ];
    let several_nodes = prop::bool::weighted(0.25);
    (names, lines(), runtime_args, command, args(), several_nodes)
        .prop_map(
            |((name, configuration), line, runtime_args, command, args, several_nodes)| {
                let words = line.as_array().cloned().unwrap_or_default();
                let words = words.into_iter().map(|word| match word.as_str() {
                    Some("CONFIGURATION") => configuration.into(),
                    _ => word,
                });
                let can_run_on_several = name.ends_with("70b");
                let settings = Settings {
                    name,
                    runtime_command: words.collect(),
                    runtime_args,
                    command,
                    args,
                    one_node: !several_nodes && !can_run_on_several,
                };
                Change::new(move |runtime, job| {
                    settings.clone().apply(runtime, job);
                    Vec::new()
                })
            },
        )
        .boxed()
}

/// The commands of runtimes, with a placeholder for the configuration.
fn lines() -> BoxedStrategy<Value> {
    let shipped = json!([
        "tune",
        "run",
        "--rdzv_endpoint=localhost:29500",
        "full_finetune_distributed",
        "--config",
        "CONFIGURATION",
        "dataset.source=parquet",
        "output_dir=/workspace/output",
        "tokenizer.path=/workspace/model/vocab.json",
        "tokenizer.merges_file=/workspace/model/merges.txt",
        "checkpointer.checkpoint_dir=/workspace/model",
    ]);
    prop_oneof![
        8 => Just(shipped),
        1 => Just(json!(["tune", "run", "output_dir=/workspace/output"])),
        1 => Just(json!(["tune", "run"])),
    ]
    .boxed()
}

/// The arguments of TrainJobs; null if there are none.
fn args() -> BoxedStrategy<Value> {
    let word = |text: &'static str| Just(Value::from(text)).boxed();
    let settings = list(vec![
        (0.5, word("epochs=1")),
        (0.15, word("model.use_dora=True")),
        (0.05, word("model.use_dora=False")),
        (0.35, word("model.lora_attn_modules=[q_proj,v_proj]")),
        (
            0.25,
            one_of(
                ["True", "true", "False"]
                    .map(|value| format!("model.quantize_base={value}").into())
                    .into(),
            ),
        ),
        (0.3, word("dataset.source=parquet")),
        (0.1, word("~profiler")),
        (0.1, word("--config=/workspace/own.yaml")),
        (0.03, word("--nproc_per_node=2")),
        (
            0.04,
            one_of(vec![
                json!("output_dir=/tmp"),
                json!("tokenizer.path=/tmp/tokenizer.model"),
                json!("checkpointer.checkpoint_dir=/tmp"),
            ]),
        ),
    ]);
    prop_oneof![
        8 => settings,
        1 => Just(json!(["full_finetune_distributed", "--config", "my.yaml"])),
        1 => Just(json!(["--config", "/workspace/own.yaml", "epochs=1"])),
        2 => Just(Value::Null),
    ]
    .boxed()
}

impl Settings {
    fn apply(self, runtime: &mut Value, job: &mut Value) {
        runtime["metadata"]["name"] = self.name.into();
        job["spec"]["runtimeRef"]["name"] = self.name.into();
        let mounts = json!([{"name": "initializer", "mountPath": "/workspace"}]);
        if let Some(trainer) = job.pointer_mut("/spec/trainer") {
            set(trainer, "command", self.command);
            set(trainer, "args", self.args);
        }
        if self.one_node {
            let places = [
                job.pointer_mut("/spec/trainer/numNodes"),
                runtime.pointer_mut("/spec/mlPolicy/numNodes"),
            ];
            places
                .into_iter()
                .flatten()
                .for_each(|nodes| *nodes = 1.into());
        }
        for pod in runtime::trainer_pods(runtime) {
            let containers = pod["containers"].as_array_mut().into_iter().flatten();
            for node in containers.filter(|container| container["name"] == "node") {
                set(node, "command", self.runtime_command.clone());
                set(node, "args", self.runtime_args.clone());
                set(node, "volumeMounts", mounts.clone());
            }
        }
    }
}

/// Sets a field, or removes it if the value is null.
fn set(object: &mut Value, field: &str, value: Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    match value {
        Value::Null => fields.remove(field),
        value => fields.insert(field.to_owned(), value),
    };
}
