//! `trainyard plugin test` renders each case of a plugin with its own runtimes and with every shipped runtime, and reports each difference
//! from the expected files by its field, with what set it.

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
};

use serde_json::Value;
use trainyard_model::names::without_digests;

use crate::common::{
    command, example_plugin, root, runtime, stderr, stdout, test_plugin, trainyard,
};

/// A TrainJob whose nodes have GPUs.
const JOB: &str = "---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bert}
spec:
  runtimeRef: {name: own}
  trainer: {numNodes: 2, command: [train], resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}
";

/// Returns a folder with the cases `ok`, `refused` and the file `shipped.yaml`, whose TrainJob names a shipped runtime.
fn cases() -> tempfile::TempDir {
    let env = "env: {NCCL_DEBUG: WARN, NCCL_SOCKET_IFNAME: eth0}";
    cases_of(&format!("{{name: nccl-fabric, config: {{{env}}}}}"))
}

/// Returns the same cases of another plugin.
fn cases_of(plugin: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let own = runtime(
        "name: own",
        &format!("mlPolicy: {{numNodes: 1, torch: {{}}}}, plugins: [{plugin}],"),
        "",
    );
    let files = [
        ("ok/input.yaml", format!("{own}{JOB}")),
        (
            "refused/input.yaml",
            format!("{own}{JOB}").replace("numNodes: 2", "numNodes: two"),
        ),
        (
            "shipped.yaml",
            JOB.replace("name: own", "name: torch-distributed"),
        ),
    ];
    for (file, text) in files {
        let path = folder.path().join("cases").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn plugin_test(folder: &Path, flags: &[&str]) -> Output {
    plugin_test_of(&example_plugin("nccl-fabric"), folder, flags)
}

fn plugin_test_of(plugin: &str, folder: &Path, flags: &[&str]) -> Output {
    let args = ["plugin", "test", plugin, "--cases", "cases"];
    trainyard(folder, &[&args, flags].concat())
}

/// Returns the files below a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path.display().to_string()),
        }
    }
    found.sort();
    found
}

/// Returns the report of a run with a difference.
fn report(folder: &Path) -> Value {
    let output = plugin_test(folder, &["-o", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn missing_expected_files_are_an_error_that_names_update() {
    let folder = cases();
    let before = files(folder.path());
    let output = plugin_test(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    for file in [
        "cases/ok/expected.yaml",
        "cases/ok/runtimes/jax-distributed/expected.yaml",
        "cases/refused/expected.txt",
        "cases/shipped.yaml.expected/runtimes/torch-distributed/expected.yaml",
    ] {
        let wanted = format!("{file}: does not exist; run the command again with --update");
        assert!(printed.contains(&wanted), "{printed}");
    }
    assert!(stderr(&output).contains("--update"));
    assert_eq!(files(folder.path()), before);
}

#[test]
fn updated_files_are_those_of_render_and_match() {
    let folder = cases();
    stdout(&plugin_test(folder.path(), &["--update"]));
    let policy = folder.path().join("policy.yaml");
    fs::copy(
        root().join("examples/plugins/nccl-fabric/policy.yaml"),
        &policy,
    )
    .unwrap();
    let nccl = example_plugin("nccl-fabric");
    let render = |case: &str| {
        let case = folder.path().join("cases").join(case);
        let policy = policy.to_str().unwrap();
        let args = [
            "render",
            "-f",
            "input.yaml",
            "--plugin",
            &nccl,
            "--policy",
            policy,
        ];
        trainyard(&case, &args)
    };
    let read = |file: &str| fs::read_to_string(folder.path().join("cases").join(file)).unwrap();
    let rendered = render("ok");
    assert_eq!(read("ok/expected.yaml"), stdout(&rendered));
    let warnings = without_digests(&stderr(&rendered));
    assert_eq!(read("ok/warnings.txt"), warnings);
    assert_eq!(read("refused/expected.txt"), stderr(&render("refused")));
    let on_mpi = read("ok/runtimes/openmpi-distributed/expected.yaml");
    assert!(on_mpi.contains("NCCL_SOCKET_IFNAME"), "{on_mpi}");
    // A TrainJob that names a shipped runtime has no runtime of its own.
    let own = folder.path().join("cases/shipped.yaml.expected");
    assert!(!own.join("expected.yaml").exists() && own.join("runtimes").is_dir());
    fs::write(own.join("expected.yaml"), "").unwrap();
    assert_eq!(plugin_test(folder.path(), &[]).status.code(), Some(1));
    stdout(&plugin_test(folder.path(), &["--update"]));
    assert!(!own.join("expected.yaml").exists());
    let printed = stdout(&plugin_test(folder.path(), &[]));
    assert!(printed.ends_with("all as expected\n"), "{printed}");
    assert!(printed.contains("(1 refused)"), "{printed}");
}

#[test]
fn differences_have_the_field_and_what_set_it() {
    let folder = cases();
    stdout(&plugin_test(folder.path(), &["--update"]));
    let change = |file: &str, from: &str, to: &str| {
        let path = folder.path().join("cases").join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replacen(from, to, 1)).unwrap();
    };
    change("ok/expected.yaml", "value: WARN", "value: INFO");
    change("ok/expected.yaml", "parallelism: 2", "parallelism: 3");
    change(
        "ok/runtimes/openmpi-distributed/expected.yaml",
        "- name: NCCL_DEBUG\n",
        "- name: NCCL_OTHER\n",
    );
    change("refused/expected.txt", "type integer", "type text");
    fs::write(folder.path().join("cases/ok/expected.txt"), "error: x\n").unwrap();
    let report = report(folder.path());
    let differences = report["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 3, "{report}");
    let own = &differences[0];
    assert_eq!(own["files"][0]["kind"], "notExpected");
    let fields = &own["files"][1]["fields"];
    let pods = "spec.replicatedJobs[node].template.spec";
    assert_eq!(fields[0]["path"], format!("{pods}.parallelism"));
    assert_eq!(
        (&fields[0]["expected"], &fields[0]["found"]),
        (&3.into(), &2.into())
    );
    assert_eq!(fields[0]["setBy"], "TrainJob");
    let env = format!("{pods}.template.spec.containers[node].env");
    assert_eq!(fields[1]["path"], format!("{env}[NCCL_DEBUG].value"));
    assert_eq!(fields[1]["setBy"], "nccl-fabric 0.1.0");
    assert_eq!(fields[1]["reason"], "a node has accelerators");
    assert_eq!(fields.as_array().unwrap().len(), 2, "{report}");

    assert_eq!(differences[1]["runtime"], "openmpi-distributed");
    let fields = differences[1]["files"][0]["fields"].as_array().unwrap();
    let ends: Vec<_> = fields
        .iter()
        .map(|field| field["path"].as_str().unwrap().rsplit_once('[').unwrap().1)
        .collect();
    assert_eq!(ends, ["NCCL_DEBUG]", "NCCL_OTHER]"], "{report}");
    assert_eq!(fields[0]["expected"], Value::Null);
    assert_eq!(fields[1]["found"], Value::Null);

    assert_eq!(differences[2]["case"], "refused");
    let lines = &differences[2]["files"][0];
    let text = lines["found"][0].as_str().unwrap();
    assert!(text.contains("must be of type integer"), "{report}");
}

#[test]
fn another_order_is_a_difference() {
    let folder = cases();
    stdout(&plugin_test(folder.path(), &["--update"]));
    let file = folder.path().join("cases/ok/expected.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let (one, other) = ("apiVersion: jobset.x-k8s.io/v1alpha2\n", "kind: JobSet\n");
    let swapped = text.replace(&format!("{one}{other}"), &format!("{other}{one}"));
    assert_ne!(text, swapped);
    fs::write(file, swapped).unwrap();
    let report = report(folder.path());
    let field = &report["differences"][0]["files"][0]["fields"][0];
    assert_eq!(field["reason"], "the order differs", "{report}");
}

/// With MPI, the launcher is the trainer, so a plugin that writes to the trainer misses the nodes.
#[test]
fn untouched_pod_sets_are_reported() {
    let folder = cases_of("{name: beside}");
    let beside = test_plugin("beside");
    stdout(&plugin_test_of(&beside, folder.path(), &["--update"]));
    let printed = stdout(&plugin_test_of(&beside, folder.path(), &[]));
    let (_, never) = printed.split_once("beside never wrote to:\n").unwrap();
    let line = never
        .lines()
        .find(|line| line.contains("openmpi-distributed"));
    assert!(line.unwrap().ends_with(": pod set `node`"), "{printed}");
    assert!(!never.contains("xgboost-distributed"), "{printed}");
}

#[test]
fn runtimes_that_cannot_run_a_train_job_are_skipped_with_the_reason() {
    let folder = cases();
    let input = folder.path().join("cases/ok/input.yaml");
    let text = fs::read_to_string(&input).unwrap();
    fs::write(&input, text.replace("command: [train], ", "")).unwrap();
    stdout(&plugin_test(folder.path(), &["--update"]));
    let printed = stdout(&plugin_test(folder.path(), &[]));
    let wanted = "ok, TrainJob bert with flux-distributed: input.yaml:11: TrainJob default/bert: spec.trainer.command: is required";
    assert!(printed.contains(wanted), "{printed}");
    let flux = folder.path().join("cases/ok/runtimes/flux-distributed");
    assert!(!flux.exists());
}

/// A file that nothing compares would give false confidence.
#[test]
fn expected_files_of_unknown_runtimes_are_refused() {
    let folder = cases();
    fs::create_dir_all(folder.path().join("cases/ok/runtimes/torch-dist")).unwrap();
    let before = files(folder.path());
    let output = plugin_test(folder.path(), &["--update"]);
    assert_eq!(output.status.code(), Some(1));
    let error = stderr(&output);
    assert!(
        error.contains("cases/ok/runtimes/torch-dist: no shipped runtime has this name"),
        "{error}"
    );
    assert_eq!(files(folder.path()), before);
}

/// A rendering that took too long is not a result to compare or to keep.
#[test]
fn nothing_is_written_if_the_host_cannot_render() {
    let folder = cases();
    let before = files(folder.path());
    let output = plugin_test(folder.path(), &["--update", "--timeout", "1ns"]);
    assert_eq!(output.status.code(), Some(1));
    let error = stderr(&output);
    assert!(
        error.contains("case ok: ") && error.contains("--timeout"),
        "{error}"
    );
    assert_eq!(files(folder.path()), before);
}

#[test]
fn watch_tests_again_after_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let case = folder.path().join("cases/basic");
    fs::create_dir_all(&case).unwrap();
    let input = |image: &str| {
        let own = runtime(
            "name: own",
            "mlPolicy: {numNodes: 1, torch: {}}, plugins: [{name: careless}],",
            "",
        );
        let job = format!(
            "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {{name: bert}}\nspec: {{runtimeRef: {{name: own}}, trainer: {{image: {image}}}}}\n"
        );
        fs::write(case.join("input.yaml"), format!("{own}---\n{job}")).unwrap();
    };
    input("one");
    let careless = test_plugin("careless");
    let args = [
        "plugin", "test", &careless, "--cases", "cases", "-o", "json",
    ];
    assert!(
        trainyard(folder.path(), &[&args[..], &["--update"]].concat())
            .status
            .success()
    );
    let mut command = command(&[&args[..], &["--watch"]].concat());
    let command = command
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut watching = command.spawn().unwrap();
    let mut reports =
        serde_json::Deserializer::from_reader(watching.stdout.take().unwrap()).into_iter::<Value>();
    let mut differences = || {
        let report = reports.next().unwrap().unwrap();
        report["differences"].as_array().unwrap().len()
    };
    let before = differences();
    input("two");
    let after = differences();
    watching.kill().unwrap();
    watching.wait().unwrap();
    assert_eq!(before, 0);
    assert!(after > 0);
}
