//! The mock host renders the YAML of a TrainJob and its runtime to the same objects, warnings and errors as the command line: every case of
//! this repository with one TrainJob is rendered with the built-in plugins, which run natively here and in the sandbox there.

use std::{fs, path::Path};

use serde_json::Value;
use trainyard_api::{Inputs, yaml};
use trainyard_plugin_folders::{cases, root};
use trainyard_policies::BUILT_INS;
use trainyard_sdk::mock::{MockError, MockInput, MockPlugin, Rendered};

fn render(yaml: &str) -> Result<Rendered, MockError> {
    let mut input = MockInput::new(yaml);
    for (_, plugin) in BUILT_INS {
        input = input.plugin(MockPlugin::new(plugin).all_granted());
    }
    input.render()
}

/// Returns the documents of an expected file.
fn documents(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    let documents = yaml::read(&text).into_iter();
    documents.map(|document| document.unwrap().value).collect()
}

/// Advice for a plugin that is not loaded, of the command line and of the mock host.
const ADVICE: [&str; 2] = [
    "use `--plugin FILE.wasm` to load one that is not built in",
    "add it to the test with `plugin`",
];

/// Returns the lines of an expected file, as the mock host prints them: with another name of the file, versions of native plugins, and its
/// own advice.
fn lines(file: &Path, severity: &str) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().map(|line| {
        let line = line.strip_prefix(severity).unwrap_or(line);
        let line = line.replace("(sha256:...)", "(native)");
        let line = line.replace(ADVICE[0], ADVICE[1]);
        line.replacen("input.yaml", "yaml", 1)
    });
    lines.collect()
}

/// Whether the text has one TrainJob, or is not read at all.
fn has_one_train_job(text: &str) -> bool {
    let objects = Inputs::read_text("input.yaml", text).objects;
    let jobs = objects.iter().filter(|object| object.kind == "TrainJob");
    jobs.count() == 1
}

#[test]
fn every_case_has_the_same_result() {
    let (mut rendered, mut refused) = (0, 0);
    for (name, case) in cases(&root()).unwrap() {
        let input = fs::read_to_string(case.join("input.yaml")).unwrap();
        if !has_one_train_job(&input) {
            continue;
        }
        match render(&input) {
            Ok(found) => {
                let objects = found.objects().iter().chain([found.job_set()]);
                let objects: Vec<_> = objects.cloned().collect();
                assert_eq!(objects, documents(&case.join("expected.yaml")), "{name}");
                let mut warnings = lines(&case.join("warnings.txt"), "warning: ");
                // The command's own warning, of what it does not print.
                warnings.retain(|line| !line.contains("the output does not show it"));
                assert_eq!(found.warnings(), warnings, "{name}");
                rendered += 1;
            }
            Err(MockError::Refused(errors)) => {
                // The command line also checks what no refused object can change, such as another runtime.
                let expected = lines(&case.join("expected.txt"), "error: ");
                for error in &errors {
                    assert!(expected.contains(error), "{name}: {error}\n{expected:#?}");
                }
                assert!(!errors.is_empty(), "{name}");
                refused += 1;
            }
            Err(MockError::NoObject(lookup)) => {
                let expected = fs::read_to_string(case.join("expected.txt")).unwrap();
                assert!(
                    expected.contains(&lookup.key.to_string()),
                    "{name}: {lookup}"
                );
                refused += 1;
            }
            Err(other) => panic!("{name}: {other}"),
        }
    }
    assert!(rendered > 200 && refused > 80, "{rendered} {refused}");
}
