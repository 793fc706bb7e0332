//! A bundle contains the whole input of a rendering: on any machine and in any folder, it replays to the same bytes, or the first
//! different field is reported.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use crate::common::{
    bundle::{changed, files, recorded, replay},
    case, cases, root, runtime, stderr, stdout, test_plugin, trainyard,
};

/// Every case that renders is replayed: old forms, patches, overrides, several TrainJobs.
#[test]
fn every_case_replays() {
    let (mut replayed, mut kinds) = (0, BTreeSet::new());
    for (name, folder) in cases() {
        let expected = fs::read_to_string(folder.join("expected.yaml"));
        if expected.unwrap_or_default().is_empty() {
            continue;
        }
        let (folder, bundle) = recorded(&name);
        let text = stdout(&replay(folder.path(), &[]));
        assert!(
            text.starts_with("bundle.tar: the same, byte for byte: "),
            "{name}: {text}"
        );
        // A bundle depends on nothing but its input: not on the user, the time or the machine. One case of each policy shows it.
        let kind = name.split('-').next().unwrap_or_default().to_owned();
        if kinds.insert(kind) {
            assert_eq!(recorded(&name).1, bundle, "{name}");
        }
        replayed += 1;
    }
    assert!(replayed > 50, "{replayed}");
}

/// Returns a TrainJob with these plugins, a Secret, and the objects that the plugins look up.
fn input(plugins: &str) -> String {
    let spec = format!("mlPolicy: {{numNodes: 2, torch: {{}}}}, plugins: [{plugins}],");
    runtime("name: runtime", &spec, "") + OBJECTS
}

const OBJECTS: &str = r#"---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job, labels: {example.com/flavor: "yes", example.com/priorities: "yes"}}
spec: {runtimeRef: {name: runtime}}
---
{apiVersion: example.com/v1, kind: Flavor, metadata: {name: default, annotations: {unread: of-no-use}}, spec: {gpu: h100}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1}
---
{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {token: hunter2}}
"#;

const POLICY: &str = r#"
apiVersion: trainyard.dev/v1alpha1
kind: PolicyFile
clusterDomain: k8s.example.com
accelerators: [example.com/npu]
facts: {site/region: north-3, site/other: south}
plugins:
- {name: site, grants: ['pod-sets[@trainer].node-selector[example.com/pool]'], after: [torch], config: {proxy: 'http://proxy:3128'}}
- {name: flavors, grants: ['lookups[example.com/v1/Flavor/default]', 'lookups[scheduling.k8s.io/v1/PriorityClass/*]', 'lookups[v1/ConfigMap/*]', 'lookups[late.example.com/v1/Zone/*]'], limits: {fuel: 20000000}}
"#;

/// Keys are generated only in a cluster. All output of commands has placeholders.
#[test]
fn bundle_has_a_placeholder_for_each_key() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("input.yaml"), input("{name: keys}")).unwrap();
    let policy = root().join("tests/plugins/keys/policy.yaml");
    let (policy, keys) = (policy.to_str().unwrap(), test_plugin("keys"));
    let plugins = ["--policy", policy, "--plugin", &keys, "-f", "input.yaml"];
    let run = |command: &[&str]| {
        let arguments = [command, &plugins].concat();
        stdout(&trainyard(folder.path(), &arguments))
    };
    let rendered = run(&["render", "--record", "bundle.tar"]);
    assert_eq!(run(&["render"]), rendered);
    let bundle = fs::read(folder.path().join("bundle.tar")).unwrap();
    stdout(&replay(folder.path(), &[]));
    let private = "<placeholder for the private key of key pair ssh (ecdsa-p521, sec1-pem)>";
    let token = "<placeholder for random text token (32 bytes, base64)>";
    let output = files(&bundle);
    let output = output
        .iter()
        .find(|(name, _)| name.ends_with("output.json"));
    let output = String::from_utf8(output.unwrap().1.clone()).unwrap();
    for text in [&rendered, &output] {
        assert!(text.contains(private) && text.contains(token), "{text}");
    }
    let plan = run(&["plan", "--claims"]);
    for text in [&rendered, &output, &run(&["explain"]), &plan] {
        assert!(
            !text.contains("BEGIN") && !text.contains("AAAAE2VjZHNh"),
            "{text}"
        );
    }
    assert!(plan.contains("objects[v1/Secret/-keys]"), "{plan}");
}

/// Plugins, grants, configuration, order, facts of the cluster, namespace and lookups come only from the bundle.
#[test]
fn replay_needs_only_the_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = "{name: site}, {name: flavors}";
    fs::write(folder.path().join("input.yaml"), input(plugins)).unwrap();
    fs::write(folder.path().join("policy.yaml"), POLICY).unwrap();
    let (site, flavors) = (test_plugin("site"), test_plugin("flavors"));
    let arguments = [
        "render",
        "-f",
        "input.yaml",
        "-n",
        "research",
        "--policy",
        "policy.yaml",
        "--plugin",
        &site,
        "--plugin",
        &flavors,
        "--record",
        "bundle.tar",
    ];
    let text = stdout(&trainyard(folder.path(), &arguments));
    for part in [
        "h100",
        "k8s.example.com",
        "http://proxy:3128",
        "north-3",
        "namespace: research",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let bundle = fs::read(folder.path().join("bundle.tar")).unwrap();
    // A bundle contains only what plugins read, and never a Secret.
    let of_use = String::from_utf8_lossy(&bundle);
    for part in ["hunter2", "of-no-use"] {
        assert!(!of_use.contains(part), "{part}");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("bundle.tar"), &bundle).unwrap();
    let output = replay(elsewhere.path(), &["-o", "json"]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(
        (&report["same"], &report["trainJobs"]),
        (&json!(true), &json!(1))
    );
    // Without its grants, it is refused as with any policy file.
    let without = changed(&bundle, "bundle.json", |index| {
        let plugins = index["plugins"].as_array_mut().unwrap();
        let site = plugins.iter_mut().find(|plugin| plugin["name"] == "site");
        site.unwrap()["grants"] = json!([]);
    });
    fs::write(elsewhere.path().join("bundle.tar"), without).unwrap();
    let error = stderr(&replay(elsewhere.path(), &[]));
    assert!(
        error.contains("`plugins/site.wasm`: plugin site") && error.contains("is not granted"),
        "{error}"
    );
}

#[test]
fn first_difference_is_named() {
    let (folder, bundle) = recorded("torch-two-jobs");
    let output = "trainjobs/001/output.json";
    let other = changed(&bundle, output, |list| {
        let job_set = &mut list["items"][0];
        job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] = json!(77);
    });
    fs::write(folder.path().join("bundle.tar"), other).unwrap();
    let table = replay(folder.path(), &[]);
    assert_eq!(table.status.code(), Some(1));
    let text = String::from_utf8(table.stdout.clone()).unwrap();
    assert!(
        text.contains(
            ": spec.replicatedJobs[0].template.spec.parallelism\n  recorded: 77\n  now:      "
        ),
        "{text}"
    );
    assert!(
        stderr(&table).starts_with("error: bundle.tar: the result differs from the recorded one")
    );
    let json: Value =
        serde_json::from_slice(&replay(folder.path(), &["-o", "json"]).stdout).unwrap();
    assert_eq!(
        (&json["same"], &json["differences"][0]["recorded"]),
        (&json!(false), &json!(77))
    );
    // Another input leads to another result.
    let other = changed(&bundle, "trainjobs/000/trainjob.json", |job| {
        job["spec"]["trainer"] = json!({"numNodes": 9});
    });
    fs::write(folder.path().join("bundle.tar"), other).unwrap();
    let output = replay(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("TrainJob ml/zeta: JobSet zeta: ")
    );
}

#[test]
fn other_builds_are_compared_only_on_request() {
    let (folder, bundle) = recorded("torch-two-jobs");
    for (member, value) in [("version", "9.9.9"), ("build", "0123456789abcdef")] {
        let other = changed(&bundle, "bundle.json", |index| {
            index["trainyard"][member] = json!(value)
        });
        fs::write(folder.path().join("bundle.tar"), other).unwrap();
        let output = replay(folder.path(), &[]);
        assert_eq!(output.status.code(), Some(1));
        let error = stderr(&output);
        assert!(
            output.stdout.is_empty() && error.contains(value) && error.contains("--any-version"),
            "{error}"
        );
        let output = replay(folder.path(), &["--any-version"]);
        assert!(
            output.status.success()
                && stderr(&output).starts_with("warning: bundle.tar: was recorded by trainyard ")
        );
    }
}

#[test]
fn refused_input_writes_no_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let input = case("error-all-at-once").join("input.yaml");
    let output = trainyard(
        folder.path(),
        &[
            "render",
            "-f",
            input.to_str().unwrap(),
            "--record",
            "bundle.tar",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let input = case("torch-two-jobs").join("input.yaml");
    let output = trainyard(
        folder.path(),
        &[
            "render",
            "-f",
            input.to_str().unwrap(),
            "--record",
            "no/such/bundle.tar",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stdout.is_empty()
            && stderr(&output).starts_with("error: no/such/bundle.tar: cannot be written: "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn only_render_records_files() {
    let folder = tempfile::tempdir().unwrap();
    let input = case("torch-two-jobs").join("input.yaml");
    let arguments = [
        "explain",
        "-f",
        input.to_str().unwrap(),
        "--record",
        "bundle.tar",
    ];
    let output = trainyard(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(stderr(&output).contains("record files with `trainyard render --record`"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A mistyped name does not overwrite another file.
#[test]
fn only_bundles_are_overwritten() {
    let (folder, bundle) = recorded("torch-two-jobs");
    let input = case("torch-two-jobs").join("input.yaml");
    let record = |to: &str| {
        let arguments = ["render", "-f", input.to_str().unwrap(), "--record", to];
        trainyard(folder.path(), &arguments)
    };
    fs::write(folder.path().join("input.yaml"), "kind: TrainJob\n").unwrap();
    std::os::unix::fs::symlink("bundle.tar", folder.path().join("link")).unwrap();
    for there in ["input.yaml", "/dev/null", "link", "."] {
        let output = record(there);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{there}: {error}");
        assert!(output.stdout.is_empty());
        assert!(
            error.starts_with(&format!(
                "error: {there}: already exists and is not a bundle"
            )),
            "{error}"
        );
    }
    let kept = fs::read_to_string(folder.path().join("input.yaml")).unwrap();
    assert_eq!(kept, "kind: TrainJob\n");
    fs::write(folder.path().join("empty"), "").unwrap();
    for free in ["bundle.tar", "empty"] {
        assert!(record(free).status.success(), "{free}");
        assert_eq!(fs::read(folder.path().join(free)).unwrap(), bundle);
    }
}
