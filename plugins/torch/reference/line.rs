//! The line of torchtune that Trainyard makes, as a function of the runtime and the TrainJob.

use serde_json::{Value, json};

use crate::{
    expected::{container, devices::Devices, env, order, pods_of},
    seen::Seen,
};

/// The models of the runtimes that both sides ship or test.
const MODELS: [&str; 4] = ["llama3_2/1B", "llama3_2/3B", "llama3_3/70B", "qwen2_5/1.5B"];

/// The settings of the runtime that a TrainJob's arguments cannot replace.
const PATHS: [&str; 4] = [
    "output_dir",
    "tokenizer.path",
    "tokenizer.merges_file",
    "checkpointer.checkpoint_dir",
];

fn words(list: &Value) -> Vec<&str> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

/// Returns the runtime's container `node` of the trainer.
fn node<'d>(seen: &Seen<'d>) -> &'d Value {
    let trainer = &seen.made_trainer()["name"];
    let mut jobs = seen.replicated_jobs();
    let job = jobs.find(|job| job["name"] == *trainer);
    container(job.unwrap_or(&Value::Null), "containers", "node")
}

fn model(seen: &Seen<'_>, line: &[&str]) -> Option<&'static str> {
    let at = line.iter().position(|word| word.starts_with("--config"));
    let named = at.and_then(|at| match line.get(at)?.strip_prefix("--config=") {
        Some(name) => Some(name),
        None => line.get(at + 1).copied(),
    });
    let of = |name: &str| {
        let mut models = MODELS.iter();
        models
            .find(|model| name.starts_with(&format!("{model}_")))
            .copied()
    };
    named.and_then(of).or_else(|| {
        let name = seen.job["spec"]["runtimeRef"]["name"].as_str()?;
        let (_, rest) = name.split_once('-')?;
        let rest = rest.replace('.', "_").replacen('-', "/", 1);
        let mut models = MODELS.iter();
        models
            .find(|model| model.replace('.', "_").eq_ignore_ascii_case(&rest))
            .copied()
    })
}

/// Returns whether the last setting with this key is true.
fn is_true(settings: &[&str], key: &str) -> bool {
    let value = |word: &&&str| {
        word.strip_prefix(key)
            .is_some_and(|rest| rest.starts_with('='))
    };
    let last = settings.iter().rev().find(value);
    last.is_some_and(|word| word.to_ascii_lowercase().trim().ends_with("=true"))
}

/// Returns the completed line.
fn completed(seen: &Seen<'_>) -> Option<Value> {
    let node = node(seen);
    let (command, args) = (words(&node["command"]), words(&node["args"]));
    let own = seen.trainer()["args"].as_array();
    let settings = own.map_or_else(|| args.clone(), |_| words(&seen.trainer()["args"]));
    let line = [&*command, &*args].concat();
    let kept = if settings == args { &command } else { &line };
    let key = |word: &str| {
        word.trim_start_matches('~')
            .split('=')
            .next()
            .map(str::to_owned)
    };
    let is_path = |word: &&&str| key(word).is_some_and(|key| PATHS.contains(&&*key));
    let processes = env::processes(seen)?;
    let devices = Devices::of(seen, seen.made_trainer());
    let counted = match (devices.accelerators(), devices.is_share) {
        (None, true) => Some(1),
        (Some(0), _) => None,
        (known, _) => known,
    };
    let is_one = processes.parse().ok().or(counted) == Some(1);
    let several = pods_of(seen.made_trainer()) > 1;
    let is_lora = settings
        .iter()
        .any(|word| key(word).as_deref() == Some("model.lora_attn_modules"));
    let is_qlora =
        is_true(&settings, "model.quantize_base") && !is_true(&settings, "model.use_dora");
    let method = if is_qlora {
        "qlora"
    } else if is_lora {
        "lora"
    } else {
        "full"
    };
    let (scale, end) = match (several, is_one) {
        (true, _) => ("distributed", "_multinode"),
        (false, true) => ("single_device", "_single_device"),
        (false, false) => ("distributed", ""),
    };
    let mut expected = vec!["tune".to_owned(), "run".to_owned()];
    if several || !is_one {
        expected.push(format!("--rdzv_endpoint={}", env::endpoint(seen)));
    }
    expected.push(format!(
        "{}_finetune_{scale}",
        method.trim_start_matches('q')
    ));
    expected.push("--config".to_owned());
    expected.push(format!("{}_{method}{end}", model(seen, &line)?));
    expected.extend(kept.iter().filter(is_path).map(|word| (*word).to_owned()));
    Some(json!(expected))
}

/// Whether the command is the completed line.
pub(super) fn is_completed(seen: &Seen<'_>) -> bool {
    completed(seen).is_some_and(|line| seen.ours() == Some(&line))
}

/// Whether the runtime's line is completed: then torchrun gets the address in the line.
pub(super) fn is_completed_with_env(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    if path.ends_with(".expands") {
        return order::is_after_its_references(seen);
    }
    match path.contains(".env[") {
        true => seen.ours().is_none(),
        false => is_completed(seen),
    }
}

/// Whether a complete line is as its author wrote it, with the env vars of torchrun.
pub(super) fn is_as_written(seen: &Seen<'_>) -> bool {
    match seen.path().contains(".env[") {
        true => env::is_right(seen),
        false => seen.ours() == Some(&seen.trainer()["command"]),
    }
}

/// Whether it is the completed line, or an env var of torchrun.
pub(super) fn is_completed_or_env(seen: &Seen<'_>) -> bool {
    match seen.path().contains(".env[") {
        true => env::is_right(seen),
        false => is_completed(seen),
    }
}
