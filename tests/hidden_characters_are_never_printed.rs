//! No control, bidi or zero-width character of a file, a file name or a policy file reaches a terminal: every command prints an escape
//! instead, and the output of `render` reads back as the same value.

use std::fs;

use serde_json::Value;
use trainyard_api::yaml;

use crate::common::{test_plugin, trainyard};

/// At least one character of each kind: C0, DEL, C1, separators, bidi, zero-width, invisible operators, annotation, tags.
const HIDDEN: &[char] = &[
    '\u{1}',
    '\u{7}',
    '\u{8}',
    '\u{b}',
    '\u{1b}',
    '\u{1f}',
    '\u{7f}',
    '\u{80}',
    '\u{85}',
    '\u{9b}',
    '\u{9f}',
    '\u{ad}',
    '\u{34f}',
    '\u{61c}',
    '\u{115f}',
    '\u{17b4}',
    '\u{180e}',
    '\u{200b}',
    '\u{200c}',
    '\u{200d}',
    '\u{200e}',
    '\u{200f}',
    '\u{2028}',
    '\u{2029}',
    '\u{202a}',
    '\u{202b}',
    '\u{202c}',
    '\u{202d}',
    '\u{202e}',
    '\u{2060}',
    '\u{2061}',
    '\u{2064}',
    '\u{2066}',
    '\u{2067}',
    '\u{2068}',
    '\u{2069}',
    '\u{206a}',
    '\u{206f}',
    '\u{3164}',
    '\u{fe0f}',
    '\u{feff}',
    '\u{ffa0}',
    '\u{fff9}',
    '\u{fffb}',
    '\u{1bca0}',
    '\u{1d173}',
    '\u{e0001}',
    '\u{e0041}',
    '\u{e007f}',
    '\u{e0100}',
];

/// A marker before each character, which detects a text that is not printed at all.
const SEEN: &str = "seen";

/// Returns all hidden characters as a text.
fn raw() -> String {
    HIDDEN.iter().map(|c| format!("{SEEN}{c}")).collect()
}

/// Returns all hidden characters as a quoted scalar of YAML.
fn quoted() -> String {
    let escaped = HIDDEN
        .iter()
        .map(|c| format!("{SEEN}\\U{:08x}", u32::from(*c)));
    format!("\"{}\"", escaped.collect::<String>())
}

/// Returns the characters that can be written in YAML without escapes.
fn printable() -> String {
    let may_stand =
        |c: &&char| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
    let chars = HIDDEN.iter().filter(may_stand);
    chars.map(|c| format!("{SEEN}{c}")).collect()
}

/// Returns the hidden characters in an output, and whether the text was printed.
fn leaks(output: &[u8]) -> (String, bool) {
    let text = String::from_utf8_lossy(output);
    let leaked = text.chars().filter(|c| HIDDEN.contains(c));
    (
        leaked.map(|c| c.escape_unicode().to_string()).collect(),
        text.contains(SEEN),
    )
}

/// Returns a runtime and a TrainJob with these fields.
fn objects(metadata: &str, job: &str, pod: &str) -> String {
    format!(
        "apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {{name: runtime}}
spec:
  mlPolicy: {{numNodes: 1, torch: {{}}}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
          spec: {{template: {{spec: {{containers: [{{name: node, image: image}}]{pod}}}}}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: bert{metadata}}}
spec:
  runtimeRef: {{name: runtime}}
{job}"
    )
}

const RENDERING: [&[&str]; 6] = [
    &["render", "-f", "in.yaml"],
    &["render", "-f", "in.yaml", "-o", "json"],
    &["explain", "-f", "in.yaml"],
    &["explain", "-f", "in.yaml", "-o", "json"],
    &[
        "explain",
        "-f",
        "in.yaml",
        "spec.replicatedJobs[0].template.spec.template.spec",
    ],
    &[
        "explain",
        "-f",
        "in.yaml",
        "spec.replicatedJobs[0].template.spec.template.spec",
        "-o",
        "json",
    ],
];

/// Returns each place in a valid object, with the commands that print it.
#[test]
fn rendered_output_has_no_hidden_characters() {
    let text = quoted();
    let patch = |pods: &str| {
        format!(
            "  runtimePatches:\n  - manager: a.example.com/x\n    trainingRuntimeSpec: {{template: {{spec: {{replicatedJobs: [{{name: node, template: {{spec: {{template: {pods}}}}}}}]}}}}}}\n"
        )
    };
    // Keys that Trainyard does not check.
    let attributes = |key: &str| {
        format!(
            "volumes: [{{name: v, csi: {{driver: example.com, volumeAttributes: {{? {key} : b}}}}}}]"
        )
    };
    let places = [
        (
            "a value",
            objects("", &format!("  trainer: {{image: {text}}}"), ""),
        ),
        (
            "an item",
            objects("", &format!("  trainer: {{args: [a, {text}]}}"), ""),
        ),
        (
            "an env var",
            objects(
                "",
                &format!("  trainer: {{env: [{{name: A, value: {text}}}]}}"),
                "",
            ),
        ),
        (
            "a key",
            objects(
                "",
                &patch(&format!("{{spec: {{{}}}}}", attributes(&text))),
                "",
            ),
        ),
        (
            "a runtime's key",
            objects("", "", &format!(", {}", attributes(&text))),
        ),
        (
            "a block",
            objects(
                "",
                "",
                &format!(", schedulerName: {}", text.replace(SEEN, "seen\\n")),
            ),
        ),
        (
            "an annotation",
            objects(
                "",
                &patch(&format!("{{metadata: {{annotations: {{a: {text}}}}}}}")),
                "",
            ),
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut tries = 0;
    let mut wrong = Vec::new();
    for (place, input) in places {
        fs::write(folder.path().join("in.yaml"), &input).unwrap();
        for args in RENDERING {
            let output = trainyard(folder.path(), args);
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{place} {args:?}: {error}");
            let (leaked, seen) = leaks(&[output.stdout.clone(), output.stderr].concat());
            // The explanation of one field does not contain metadata.
            let is_above =
                args.len() > 3 && args[3].starts_with("spec") && place == "an annotation";
            let is_above =
                is_above || (args.len() > 3 && args[0] == "explain" && place == "a runtime's key");
            if !leaked.is_empty() || !(seen || is_above || args[0] == "explain") {
                wrong.push(format!("{place} by {args:?}: {leaked}, seen: {seen}"));
            }
            tries += 1;
            if args.len() == 3 && args[0] == "render" {
                reads_back(&String::from_utf8(output.stdout).unwrap(), place);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(tries, 42);
}

/// The rendered YAML reads back as the same text.
fn reads_back(text: &str, place: &str) {
    let wanted = match place {
        "a block" => raw().replace(SEEN, "seen\n"),
        _ => raw(),
    };
    let found = yaml::read(text)
        .into_iter()
        .any(|document| holds(&document.unwrap().value, &wanted));
    assert!(found, "{place}: {text}");
}

fn holds(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Array(items) => items.iter().any(|item| holds(item, wanted)),
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| key == wanted || holds(value, wanted)),
        _ => false,
    }
}

/// Objects that errors name by kind or location, and an object of another API, which is not read.
const NOT_NAMED: [&str; 4] = [
    "a value of a wrong type",
    "a version",
    "a number as text",
    "broken YAML",
];

/// Returns each place in an input with an error or a warning, with the commands that print it.
#[test]
fn errors_have_no_hidden_characters() {
    let (text, plain) = (quoted(), printable());
    let spec = |fields: &str| objects("", &format!("  {fields}"), "");
    let places = [
        ("an unknown field", spec(&format!("? {text}\n  : 1"))),
        ("a value of a wrong type", spec(&format!("suspend: {text}"))),
        (
            "a value outside a list",
            spec(&format!("managedBy: {text}")),
        ),
        (
            "a quantity",
            spec(&format!(
                "trainer: {{resourcesPerNode: {{limits: {{cpu: {text}}}}}}}"
            )),
        ),
        (
            "a key of a map",
            spec(&format!(
                "trainer: {{resourcesPerNode: {{limits: {{? {text} : x}}}}}}"
            )),
        ),
        (
            "a missing runtime",
            objects("", "", "").replace(
                "runtimeRef: {name: runtime}",
                &format!("runtimeRef: {{name: {text}}}"),
            ),
        ),
        (
            "a name",
            objects("", "", "").replace("name: bert", &format!("name: {text}")),
        ),
        (
            "a namespace",
            objects(&format!(", namespace: {text}"), "", ""),
        ),
        (
            "a label's key",
            objects(&format!(", labels: {{? {text} : a}}"), "", ""),
        ),
        (
            "a kind",
            objects("", "", "").replace("kind: TrainJob", &format!("kind: {text}")),
        ),
        (
            "a version",
            objects("", "", "").replace(
                "trainer.kubeflow.org/v1alpha1\nkind: TrainJob",
                &format!("{text}\nkind: TrainJob"),
            ),
        ),
        (
            "a key twice",
            spec(&format!("trainer: {{? {text} : 1, ? {text} : 1}}")),
        ),
        ("a key as it is", spec(&format!("{plain}: 1"))),
        (
            "a tag's value",
            spec(&format!("trainer: {{numNodes: !!int {text}}}")),
        ),
        (
            "a tag",
            spec(&format!(
                "trainer: {{numNodes: !<tag:yaml.org,2002:int> \"{plain}\"}}"
            )),
        ),
        ("broken YAML", spec(&format!("trainer: {{{plain}: [}}"))),
        (
            "an override",
            spec(&format!(
                "podTemplateOverrides: [{{targetJobs: [{{name: {text}}}], spec: {{}}}}]"
            )),
        ),
        (
            "a number as text",
            spec(&format!("trainer: {{numProcPerNode: {text}}}")),
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let commands = ["validate", "render", "explain", "plan"];
    let mut wrong = Vec::new();
    let mut tries = 0;
    for (place, input) in &places {
        fs::write(folder.path().join("in.yaml"), input).unwrap();
        let mut seen_by_one = false;
        for command in commands {
            let output = trainyard(folder.path(), &[command, "-f", "in.yaml"]);
            let (leaked, seen) = leaks(&[output.stdout, output.stderr].concat());
            seen_by_one |= seen;
            if !leaked.is_empty() {
                wrong.push(format!("{place} by {command}: {leaked}"));
            }
            tries += 1;
        }
        if !(seen_by_one || NOT_NAMED.contains(place)) {
            wrong.push(format!("{place}: not printed"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(tries, 72);
}

/// File names and a policy file are escaped.
#[test]
fn file_and_policy_errors_have_no_hidden_characters() {
    let folder = tempfile::tempdir().unwrap();
    // A file name has at most 255 bytes, and no slash or NUL.
    let names: Vec<String> = HIDDEN
        .chunks(25)
        .map(|some| some.iter().map(|c| format!("{SEEN}{c}")).collect())
        .collect();
    let policy =
        |fields: &str| format!("apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\n{fields}\n");
    let text = quoted();
    let policies = [
        policy(&format!("plugins: [{{name: {text}}}]")),
        policy(&format!("plugins: [{{name: torch, after: [{text}]}}]")),
        policy(&format!("plugins: [{{name: torch, grants: [{text}]}}]")),
        policy(&format!("plugins: [{{name: torch, digest: {text}}}]")),
        policy(&format!("? {text}\n: 1")),
        policy(&format!("clusterDomain: [{text}]")),
    ];
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/torch-llama");
    let team = test_plugin("team");
    let mut outputs = Vec::new();
    for name in &names {
        fs::write(folder.path().join(name), "a: [").unwrap();
        let inside = format!("{name}d");
        fs::create_dir(folder.path().join(&inside)).unwrap();
        fs::write(folder.path().join(&inside).join("a.yaml"), "a: [").unwrap();
        let missing = format!("{name}m");
        let layout = format!("oci:{missing}");
        for args in [
            &["validate", "-f", name.as_str()][..],
            &["validate", "-f", &inside],
            &["validate", "-f", &missing],
            &["plan", "--policy", name],
            &["plan", "--policy", &missing],
            &["plan", "--plugin", name],
            &["plan", "--plugin", &missing],
            &["plan", "--plugin-dir", &missing],
            &["plan", "--against", name],
            &["plan", "--against-policy", name],
            &["plugin", "inspect", name],
            &["plugin", "inspect", &layout],
            &["plugin", "pull", &layout],
            &["plugin", "apply", "-f", name],
            &["plan", "--signers", name],
            &["plan", "--key", name],
            &["replay", name, "--policy", &missing],
            &["plugin", "diff", name, &missing],
            &["plugin", "check", &missing],
            &["plugin", "test", &missing, "--cases", &missing],
            &["plugin", "test", name, "--cases", &inside],
            &["plugin", "claims", &team, "--cases", &missing],
            &["runtimes", name],
            // The arguments of `-f *` after a shell's expansion.
            &["explain", "-f", example, name],
        ] {
            outputs.push((format!("{args:?}"), trainyard(folder.path(), args)));
        }
    }
    for policy in policies {
        fs::write(folder.path().join("policy.yaml"), &policy).unwrap();
        let output = trainyard(folder.path(), &["plan", "--policy", "policy.yaml"]);
        outputs.push((policy, output));
    }
    let plugin = |name: &str, reference: &str| {
        format!(
            "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyPlugin\nmetadata: {{name: {name}}}\nspec: {{source: {{oci: {{reference: {reference}}}}}}}\n"
        )
    };
    for plugin in [plugin("x", &text), plugin(&text, "a.example/b:1")] {
        fs::write(folder.path().join("plugin.yaml"), &plugin).unwrap();
        for args in [
            ["plan", "--policy", "plugin.yaml"].as_slice(),
            &["plugin", "apply", "-f", "plugin.yaml"],
        ] {
            outputs.push((format!("{args:?} {plugin}"), trainyard(folder.path(), args)));
        }
    }
    assert_eq!(outputs.len(), 58);
    let mut wrong = Vec::new();
    for (what, output) in outputs {
        let (leaked, seen) = leaks(&[output.stdout, output.stderr].concat());
        if !leaked.is_empty() || !(seen || what.contains("clusterDomain")) {
            wrong.push(format!("{what:?}: {leaked}, seen: {seen}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The names of cases, and what differs from their expected files, are escaped.
#[test]
fn differences_of_cases_have_no_hidden_characters() {
    let (text, team) = (quoted(), test_plugin("team"));
    let folder = tempfile::tempdir().unwrap();
    let name: String = HIDDEN[..25].iter().collect();
    let case = folder.path().join("cases").join(name);
    fs::create_dir_all(&case).unwrap();
    let input = objects("", &format!("  trainer: {{image: {text}}}"), "");
    fs::write(case.join("input.yaml"), input).unwrap();
    let expected = format!(
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {{name: bert, namespace: default, labels: {{? {text} : {text}}}}}\n"
    );
    fs::write(case.join("expected.yaml"), expected).unwrap();
    fs::write(case.join("warnings.txt"), printable()).unwrap();
    for command in ["test", "claims"] {
        for format in ["table", "json"] {
            let args = ["plugin", command, &team, "--cases", "cases", "-o", format];
            let output = trainyard(folder.path(), &args);
            let (leaked, seen) = leaks(&[output.stdout, output.stderr].concat());
            assert_eq!((&*leaked, seen), ("", command == "test"), "{args:?}");
        }
    }
}
