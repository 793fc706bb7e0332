//! Input that is small, or that a cluster would store, does not exhaust memory: a process with little memory refuses it at a limit.
//! Special files do not block.

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    process::{Command, Output},
};

use crate::common::{runtime, trainyard};

/// The memory limit of a command, in KiB: more than the values of an input may take.
const MEMORY: usize = 400 * 1024;
/// The limit of a command whose input is far smaller, so that less of it shows whether it is kept.
const LITTLE: usize = 280 * 1024;
/// The seconds after which a hanging command is killed. No test measures it.
const HANGS: &str = "300";

/// Runs a command in a folder, in a process with this much memory.
fn limited(folder: &Path, args: &[&str], memory: usize) -> Output {
    Command::new("timeout")
        .args([
            HANGS,
            "sh",
            "-c",
            &format!("ulimit -d {memory} && exec \"$0\" \"$@\""),
        ])
        .arg(env!("CARGO_BIN_EXE_trainyard"))
        .args(args)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        // The allocator does not touch what it takes in advance, but this limit would count it.
        .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
        .output()
        .unwrap()
}

/// Returns the lines of `validate` for a file that it refuses.
fn refused(text: &str) -> Vec<String> {
    refused_with(text, MEMORY)
}

fn refused_with(text: &str, memory: usize) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), text).unwrap();
    let output = limited(folder.path(), &["validate", "-f", "a.yaml"], memory);
    let error = String::from_utf8(output.stderr).unwrap();
    let start = error.get(..1000).unwrap_or(&error);
    assert_eq!(output.status.code(), Some(1), "{start}");
    // The runtime is not in the input, which is a warning.
    let lines = error.lines().filter(|line| !line.starts_with("warning: "));
    lines.map(str::to_owned).collect()
}

fn job(overrides: &str) -> String {
    format!(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {{name: a}}\nspec:\n  runtimeRef: {{name: x}}\n  podTemplateOverrides: [{overrides}]\n"
    )
}

fn targets(count: usize) -> String {
    let mut text = String::new();
    for at in 0..count {
        write!(text, "{{name: j{at}}}, ").unwrap();
    }
    text
}

/// Earlier, these took 3.1 GB, more than a minute, and a minute and a half.
#[test]
fn number_of_old_forms_is_limited() {
    let big = "x".repeat(700_000);
    let copies = job(&format!(
        "{{targetJobs: [{}], metadata: {{annotations: {{a: {big}}}}}}}",
        targets(30_000)
    ));
    assert!(copies.len() < 1_400_000);
    let many = job(&format!(
        "{{targetJobs: [{}], spec: {{}}}}",
        targets(70_000)
    ));
    let overrides =
        job(&"{targetJobs: [{name: node}], spec: {nodeSelector: {a: b}}}, ".repeat(18_000));
    let few = job(&format!(
        "{{targetJobs: [{}], metadata: {{annotations: {{a: {big}}}}}}}",
        targets(100)
    ));
    // Errors in documents above 256 KiB have no lines.
    let at = "error: a.yaml: document 1: TrainJob default/a: spec.podTemplateOverrides";
    for (text, wanted) in [
        (
            copies,
            "[0].targetJobs: has 30000 replicated jobs, but at most 100 are allowed; ",
        ),
        (
            many,
            "[0].targetJobs: has 70000 replicated jobs, but at most 100 are allowed; ",
        ),
        (
            overrides,
            ": has 18000 overrides, but at most 256 are allowed; ",
        ),
        (few, ": has 70"),
    ] {
        let errors = refused(&text);
        let errors: Vec<_> = errors
            .iter()
            .filter(|line| line.starts_with("error"))
            .collect();
        assert!(
            errors[0].starts_with(&format!("{at}{wanted}")),
            "{}",
            errors[0]
        );
        assert!(errors.len() < 3, "{errors:#?}");
    }
}

/// Earlier, a text of 500 bytes took 800 MB.
#[test]
fn memory_of_aliases_is_limited() {
    let mut laughs = "a0: &a0 [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n".to_owned();
    for level in 1..9 {
        let alias = format!("*a{}", level - 1);
        writeln!(laughs, "a{level}: &a{level} [{}]", [&*alias; 10].join(",")).unwrap();
    }
    assert!(laughs.len() < 600);
    let errors = refused(&laughs);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert!(errors[0].contains("the aliases of the input expand to more than "));
}

/// Earlier, a file of 20 MB took 800 MB of memory as a list of strings, 1.5 GB as a list of mappings, and 3 GB as nested lists.
#[test]
fn memory_of_plain_values_is_limited() {
    let deep = format!("{}{}, ", "[".repeat(50), "]".repeat(50));
    for item in ["a, ", "{a: 1}, ", &*deep] {
        let list = item.repeat((20 << 20) / item.len());
        let errors = refused(&format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\nx: [{list}]\n"
        ));
        assert_eq!(errors.len(), 1, "{errors:#?}");
        assert!(errors[0].starts_with("error: a.yaml: document 1: line 4, column "));
        assert!(errors[0].ends_with(
            ": the values of the input take more than 268435456 bytes of memory; split the input and process its parts separately"
        ));
    }
}

/// Nothing after the value that exceeds the limit is read, so there is one error and not one per file.
#[test]
fn memory_of_a_folder_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let lists = "[[[[[[[[[[]]]]]]]]]], ".repeat(40_000);
    for file in 0..20 {
        let text =
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{file}}}\nx: [{lists}]\n");
        fs::write(folder.path().join(format!("{file:02}.yaml")), text).unwrap();
    }
    let output = limited(folder.path(), &["validate", "-f", "."], MEMORY);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(
        error.contains("the values of the input take more than "),
        "{error}"
    );
}

/// Returns a runtime whose replicated job `node` has this container, and TrainJobs of it.
fn runtime_and_jobs(container: &str, jobs: usize) -> String {
    let mut text = runtime("name: x", "", container);
    for at in 0..jobs {
        write!(text, "---\napiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {{name: j{at}}}\nspec: {{runtimeRef: {{name: x}}}}\n").unwrap();
    }
    text
}

/// Returns the output of a command for a file, in a process with [`LITTLE`] memory.
fn printed(text: &str, args: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), text).unwrap();
    let output = limited(folder.path(), &[args, &["-f", "a.yaml"]].concat(), LITTLE);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Each TrainJob becomes 2 MB, of which only a few are in memory at once.
#[test]
fn rendered_objects_are_not_kept_in_memory() {
    const JOBS: usize = 30;
    let arguments = format!(", args: [{}]", "'',".repeat(100_000));
    let text = runtime_and_jobs(&arguments, JOBS);
    assert!(text.len() < 1 << 20);
    let printed = printed(&text, &["render"]);
    assert!(printed.len() > JOBS * 1_600_000);
    let documents: Vec<_> = printed.split("---\n").collect();
    assert_eq!(documents.len(), JOBS);
    for (at, document) in documents.iter().enumerate() {
        assert!(document.contains(&format!("\n  name: j{at}\n")));
        assert_eq!(document.matches("- \"\"\n").count(), 100_000);
    }
}

/// The output has 48,000 rows, as a table and as JSON.
#[test]
fn explanations_are_kept_at_most_once() {
    let mut patches = String::new();
    for patch in 0..16 {
        let keys: Vec<_> = (0..1000).map(|key| format!("k{key}: v{patch}")).collect();
        writeln!(patches, "  - manager: example.com/m{patch}\n    trainingRuntimeSpec: {{template: {{spec: {{replicatedJobs: [{{name: node, template: {{spec: {{template: {{spec: {{nodeSelector: {{{}}}}}}}}}}}}}]}}}}}}", keys.join(", ")).unwrap();
    }
    let wishes = "spec: {runtimeRef: {name: x}}\n";
    let patched = format!("spec:\n  runtimeRef: {{name: x}}\n  runtimePatches:\n{patches}");
    let text = runtime_and_jobs("", 3).replace(wishes, &patched);
    let table = printed(&text, &["explain", "-o", "wide"]);
    let rows = table
        .lines()
        .filter(|line| line.contains("nodeSelector[k") || line.contains("node-selector[k"));
    assert_eq!(rows.count(), 48_000, "{}", &table[..2000]);
    let blocks = printed(&text, &["explain"]);
    let changes = blocks
        .lines()
        .filter(|line| line.contains("set by patch of "));
    assert_eq!(changes.count(), 48_000, "{}", &blocks[..2000]);
    let json: serde_json::Value =
        serde_json::from_str(&printed(&text, &["explain", "-o", "json"])).unwrap();
    let jobs = json.as_array().unwrap().iter();
    let fields = jobs.flat_map(|job| job["fields"].as_array().unwrap());
    let steps = fields.map(|field| field["steps"].as_array().unwrap().len());
    assert!(steps.sum::<usize>() >= 48_000);
}

#[test]
fn thousands_of_train_jobs_are_rendered() {
    let printed = printed(&runtime_and_jobs("", 3000), &["render", "-o", "json"]);
    let list: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 3000);
    assert_eq!(items[2999]["metadata"]["name"], "j2999");
}

#[test]
fn number_of_printed_errors_is_limited() {
    let broken = "apiVersion: v1\n---\n".repeat(5000);
    let errors = refused(&broken);
    assert_eq!(errors.len(), 501);
    assert!(errors[500].ends_with(" more errors are not printed; correct those above first"));
}

#[test]
fn number_of_printed_warnings_is_limited() {
    const JOBS: usize = 2000;
    let mut text = runtime_and_jobs("", 0);
    for at in 0..JOBS {
        writeln!(text, "---\n{{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {{name: k{at}}}, spec: {{runtimeRef: {{name: x}}, managedBy: kueue.x-k8s.io/multikueue}}}}").unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), text).unwrap();
    let output = limited(folder.path(), &["render", "-f", "a.yaml"], MEMORY);
    let warnings = String::from_utf8(output.stderr).unwrap();
    let warnings: Vec<_> = warnings.lines().collect();
    assert_eq!(warnings.len(), 501, "{:?}", warnings.first());
    let more = format!("warning: {} more warnings are not printed", JOBS - 500);
    assert_eq!(warnings[500], more);
}

#[test]
fn exceeded_limit_is_reported_once_at_its_field() {
    let errors = refused(&"a: b\n---\n".repeat(2_000_000));
    assert_eq!(errors.len(), 1, "{errors:#?}");
    let at = "error: a.yaml: document ";
    let number = errors[0].strip_prefix(at).unwrap();
    assert!(!number.starts_with("1:"), "{}", errors[0]);
}

/// Each of these TrainJobs has 101 errors, of a few hundred bytes each.
#[test]
fn unprinted_errors_are_not_kept() {
    const JOBS: usize = 5_000;
    let fields: String = (0..100).map(|at| format!("a{at}: 1, ")).collect();
    let mut text = String::new();
    for at in 0..JOBS {
        writeln!(text, "---\n{{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {{name: j{at}}}, spec: {{{fields}}}}}").unwrap();
    }
    let errors = refused_with(&text, LITTLE);
    assert_eq!(errors.len(), 501);
    assert_eq!(
        errors[500],
        format!(
            "error: {} more errors are not printed; correct those above first",
            JOBS * 101 - 500
        )
    );
}

/// What another tool built may have debug information, so it can be larger than a plugin.
#[test]
fn file_to_wrap_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("manifest.json"), "{}").unwrap();
    let file = fs::File::create(folder.path().join("a.wasm")).unwrap();
    let refused = |file: &str| {
        let args = ["plugin", "wrap", file, "manifest.json"];
        let output = limited(folder.path(), &args, LITTLE);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    file.set_len((256 << 20) + 1).unwrap();
    let limit = "a.wasm: exceeds the limit of 268435456 bytes for a file to wrap; build it without debug information";
    assert!(refused("a.wasm").contains(limit), "{}", refused("a.wasm"));
    let device = "/dev/zero: is a device or a pipe, not a file; pass a `.wasm` file";
    assert!(refused("/dev/zero").contains(device));
    file.set_len(1).unwrap();
    assert!(refused("a.wasm").contains("it is not valid WebAssembly"));
}

#[test]
fn special_files_do_not_block() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("inputs")).unwrap();
    let made = Command::new("mkfifo")
        .args(["inputs/a.yaml", "policy.yaml"])
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(made.success());
    for (args, file) in [
        (&["validate", "-f", "inputs"][..], "inputs/a.yaml"),
        (&["plan", "--policy", "policy.yaml"], "policy.yaml"),
        (&["plan", "--policy", "/dev/zero"], "/dev/zero"),
    ] {
        let output = limited(folder.path(), args, MEMORY);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        let wanted = format!("error: {file}: is not a regular file");
        assert!(error.starts_with(&wanted), "{error}");
    }
}

/// `i32::MIN` has no absolute value, which once made a build with overflow checks panic.
#[test]
fn quantity_out_of_range_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = runtime("name: x", "", "");
    let job = "---\napiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: a}\nspec:\n  runtimeRef: {name: x}\n  trainer: {resourcesPerNode: {limits: {cpu: 1e-2147483648, memory: \"1e-2147483648\"}}}\n";
    fs::write(folder.path().join("a.yaml"), format!("{runtime}{job}")).unwrap();
    let output = trainyard(folder.path(), &["render", "-f", "a.yaml"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    let wanted = "spec.trainer.resourcesPerNode.limits[memory]: the string \"1e-2147483648\" is not a quantity of 0 or more, or is out of range; ";
    assert!(
        error.contains(wanted) && !error.contains("panicked"),
        "{error}"
    );
}
