//! Helpers for the tests that run the `trainyard` command.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub)]

pub mod answers;
pub mod api_server;
pub mod bundle;
pub mod chart;
pub mod declared_plugin;
pub mod plugin_folder;
pub mod policy_file;
pub mod signing;

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::Mutex,
};

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Adds the source files below a folder.
pub fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the folders of all cases by name.
pub fn cases() -> BTreeMap<String, PathBuf> {
    trainyard_plugin_folders::cases(&root()).unwrap()
}

/// Returns the folder of a case.
pub fn case(name: &str) -> PathBuf {
    let folder = cases().remove(name);
    folder.unwrap_or_else(|| panic!("no case is named `{name}`"))
}

/// Compares a text with the file of this name in tests/expected.
pub fn expect(name: &str, text: &str) {
    expect_file(&root().join("tests/expected").join(name), text);
}

/// Compares a text with a file, which `UPDATE_EXPECTED=1` writes again.
pub fn expect_file(file: &Path, text: &str) {
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(file, text).unwrap();
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    let file = file.display();
    assert_eq!(expected, text, "{file}: UPDATE_EXPECTED=1 writes it again");
}

/// Returns the command with these arguments, without colors.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainyard"));
    command.args(args).env("NO_COLOR", "1");
    command
}

/// Runs the command in a folder.
pub fn trainyard(folder: &Path, args: &[&str]) -> Output {
    command(args).current_dir(folder).output().unwrap()
}

/// Runs the command with `input` as its standard input.
pub fn trainyard_with_input(input: &str, args: &[&str]) -> Output {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// Returns the standard error of a run.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Returns the standard output of a run, which must succeed.
pub fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Builds the plugin `tests/plugins/NAME` once, and returns the path of its component.
pub fn test_plugin(name: &'static str) -> String {
    built("tests/plugins", name)
}

/// Builds the plugin `examples/plugins/NAME` once, and returns the path of its component.
pub fn example_plugin(name: &'static str) -> String {
    built("examples/plugins", name)
}

fn built(plugins: &str, name: &'static str) -> String {
    static BUILT: Mutex<BTreeMap<&str, String>> = Mutex::new(BTreeMap::new());
    let build = || {
        let component = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.wasm"));
        let folder = root().join(plugins).join(name);
        trainyard_cluster::build_plugin(&folder, &component, &[]).unwrap();
        component.to_str().unwrap().to_owned()
    };
    let mut built = BUILT.lock().unwrap();
    built.entry(name).or_insert_with(build).clone()
}

/// Returns a ClusterTrainingRuntime with one replicated job and container `node`, as four lines of YAML. `metadata` is the text inside its braces;
/// `spec` precedes the template and ends with a comma; `container` follows the image and starts with one.
pub fn runtime(metadata: &str, spec: &str, container: &str) -> String {
    let container = format!("{{name: node, image: example.com/image{container}}}");
    let ancestor = "trainer.kubeflow.org/trainjob-ancestor-step: trainer";
    let job = format!(
        "{{metadata: {{labels: {{{ancestor}}}}}, spec: {{template: {{spec: {{containers: [{container}]}}}}}}}}"
    );
    format!(
        "apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {{{metadata}}}
spec: {{{spec} template: {{spec: {{replicatedJobs: [{{name: node, template: {job}}}]}}}}}}
"
    )
}
