//! The merge agrees with the reference's code on 100,000 generated inputs, including nulls and empty lists.
//!
//! It needs Go; `make test-reference` runs it. The inputs are new in each run; `PROPTEST_RNG_SEED` repeats a run, and
//! `TRAINYARD_MERGE_INPUTS` sets another number of inputs. With `UPDATE_EXPECTED=1`, the inputs
//! that `cargo test` compares everywhere are written again.

use std::{
    fs,
    hash::{BuildHasher, RandomState},
    io::{BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, sync_channel},
    thread,
};

use proptest::test_runner::{Config, RngSeed};
use serde_json::{Value, json};
use trainyard_api::merge::strategic;

use crate::merge_inputs::{Input, inputs};

/// The number of inputs that are checked in with their results, and the maximum size of each in bytes. Their patches have an effect.
const FIXED: (usize, usize) = (500, 2600);

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn start() -> Child {
    Command::new("go")
        .args(["run", "-mod=readonly", "."])
        .current_dir(folder("../../tests/reference/merge"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("this test needs Go: {error}"))
}

/// Writes each input to the reference's process, and sends it to the comparing thread.
fn ask(stdin: ChildStdin, count: usize, seed: u64) -> Receiver<Input> {
    let (sender, receiver) = sync_channel(10_000);
    thread::spawn(move || {
        let mut stdin = BufWriter::new(stdin);
        for input in inputs(count, seed) {
            let question = json!({"base": input.base, "patch": input.patch, "typed": input.typed});
            writeln!(stdin, "{question}").unwrap();
            sender.send(input).unwrap();
        }
    });
    receiver
}

/// Whether the base has the replicated jobs of the patch.
fn finds(input: &Input) -> bool {
    let names = |spec: &Value| -> Vec<Value> {
        let jobs = spec["replicatedJobs"].as_array().into_iter().flatten();
        jobs.map(|job| job["name"].clone()).collect()
    };
    let known = names(&input.base);
    names(&input.patch).iter().all(|name| known.contains(name))
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn generated_inputs_agree() {
    let count =
        std::env::var("TRAINYARD_MERGE_INPUTS").map_or(100_000, |count| count.parse().unwrap());
    let mut reference = start();
    let seed = match Config::default().rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(count),
    };
    println!("PROPTEST_RNG_SEED={seed} make test-reference repeats this run");
    let questions = ask(reference.stdin.take().unwrap(), count, seed);
    let answers = BufReader::new(reference.stdout.take().unwrap()).lines();
    let (mut compared, mut changed, mut fixed) = (0, 0, Vec::new());
    for (input, answer) in questions.iter().zip(answers) {
        let answer: Value = serde_json::from_str(&answer.unwrap()).unwrap();
        let merged = &answer["merged"];
        let ours = strategic(&input.base, &input.patch);
        assert!(
            ours.as_ref().ok() == Some(merged),
            "input {compared}: {}
ours: {ours:?}
the reference's: {answer}",
            json!({"base": input.base, "patch": input.patch})
        );
        let case = json!({"base": input.base, "patch": input.patch, "merged": merged}).to_string();
        if fixed.len() < FIXED.0 && case.len() <= FIXED.1 && finds(&input) {
            fixed.push(case);
        }
        changed += usize::from(*merged != input.base);
        compared += 1;
    }
    assert!(reference.wait().unwrap().success());
    assert_eq!(compared, count);
    assert!(
        changed * 2 > count,
        "only {changed} patches change anything"
    );
    println!(
        "{compared} inputs compared with the reference, {changed} of them changed by their patch"
    );
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        let fixed = fixed.join("\n") + "\n";
        fs::write(folder("tests/merge_inputs/fixed.jsonl"), fixed).unwrap();
    }
}
