//! `--train-job` selects TrainJobs of the input, and with `--keep-going` a refused TrainJob does not affect the others.

use std::{fs, path::Path};

use serde_json::Value;

use crate::common::{runtime, trainyard};

fn job(namespace: &str, name: &str, trainer: &str) -> String {
    format!(
        "---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{runtimeRef: {{name: x}}, trainer: {{{trainer}}}}}
"
    )
}

/// Four TrainJobs: `ml/a` and `lab/b` are valid, the schema refuses `ml/b`, and rendering refuses `ml/c`.
fn input() -> String {
    let jobs = [
        job("ml", "a", ""),
        job("ml", "b", "imag: y"),
        job("ml", "c", "env: [{name: PET_NNODES, value: '7'}]"),
        job("lab", "b", "numNodes: 1"),
    ];
    runtime("name: x", "mlPolicy: {torch: {}},", "") + &jobs.concat()
}

/// Runs a command, and returns its exit code, standard output and standard error.
fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = trainyard(folder, &[args, &["-f", "input.yaml"]].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("input.yaml"), input()).unwrap();
    folder
}

/// Returns the TrainJobs in the JSON output of a command.
fn names(command: &str, json: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(json).unwrap();
    let text = |value: &Value, pointer: &str| {
        let text = value.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let list = match command {
        "render" => value.pointer("/items").unwrap(),
        _ => &value,
    };
    let items = list.as_array().unwrap().iter();
    let name = |item: &Value| match command {
        "render" => format!(
            "{}/{}",
            text(item, "/metadata/namespace"),
            text(item, "/metadata/name")
        ),
        "explain" => format!("{}/{}", text(item, "/namespace"), text(item, "/trainJob")),
        _ => text(item, "/trainJob"),
    };
    items.map(name).collect()
}

const COMMANDS: [&str; 3] = ["render", "explain", "plan"];

#[test]
fn refused_train_job_does_not_affect_the_others() {
    let folder = folder();
    for command in COMMANDS {
        let (code, out, error) = run(folder.path(), &[command]);
        assert_eq!((code, &*out), (Some(1), ""), "{command}");

        let (code, out, all_the_same) =
            run(folder.path(), &[command, "--keep-going", "-o", "json"]);
        assert_eq!(code, Some(1), "{command}");
        assert_eq!(all_the_same, error, "{command}");
        assert!(error.contains("TrainJob ml/b: unknown field"), "{error}");
        let mut wanted = vec!["ml/a", "lab/b"];
        if command == "plan" {
            // A TrainJob that a plugin refuses still has a plan.
            wanted.insert(1, "ml/c");
        } else {
            assert!(error.contains("TrainJob ml/c: "), "{error}");
        }
        assert_eq!(names(command, &out), wanted, "{command}");
    }
}

#[test]
fn unselected_train_jobs_are_not_reported() {
    let folder = folder();
    for command in COMMANDS {
        for (picks, wanted) in [
            (&["a"][..], &["ml/a"][..]),
            (&["lab/b"], &["lab/b"]),
            (&["lab/b", "a"], &["ml/a", "lab/b"]),
        ] {
            let picks = picks.iter().flat_map(|pick| ["--train-job", *pick]);
            let args: Vec<_> = [command, "-o", "json"].into_iter().chain(picks).collect();
            let (code, out, error) = run(folder.path(), &args);
            assert_eq!((code, &*error), (Some(0), ""), "{args:?}");
            assert_eq!(names(command, &out), wanted, "{args:?}");
        }
    }
    // The name selects TrainJobs in both namespaces, one of which is refused.
    let (code, _, error) = run(folder.path(), &["validate", "--train-job", "b"]);
    assert_eq!(code, Some(1));
    assert!(
        error.contains("ml/b: unknown") && !error.contains("ml/c"),
        "{error}"
    );
    let (code, out, error) = run(folder.path(), &["validate", "--train-job", "lab/b"]);
    let valid = "valid: 1 TrainJob and 1 runtime\n";
    assert_eq!((code, &*out, &*error), (Some(0), valid, ""));
}

#[test]
fn unknown_train_job_name_is_an_error() {
    let folder = folder();
    let (code, out, error) = run(
        folder.path(),
        &["render", "--train-job", "a", "--train-job", "lab/a"],
    );
    assert_eq!((code, &*out), (Some(1), ""));
    assert_eq!(
        error,
        "error: TrainJob `lab/a` is not in the input, which has lab/b, ml/b, ml/c\n"
    );
}
