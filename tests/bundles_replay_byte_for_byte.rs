//! A bundle holds all that a rendering is made of: on any machine, in any folder, the same comes of it byte for byte, or the first
//! field that differs is named.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use serde_json::{Value, json};

use crate::bundle::{cases, changed, files, recorded, replay, said, trainyard};

/// Every case that renders: old forms, patches, overrides, several TrainJobs.
#[test]
fn every_case_replays() {
    let mut replayed = 0;
    for case in fs::read_dir(cases()).unwrap() {
        let case = case.unwrap();
        if !case.path().join("expected.yaml").is_file() {
            continue;
        }
        let name = case.file_name().into_string().unwrap();
        if fs::read_to_string(case.path().join("expected.yaml"))
            .unwrap()
            .is_empty()
        {
            continue;
        }
        let (folder, bundle) = recorded(&name);
        let output = replay(folder.path(), &[]);
        assert!(output.status.success(), "{name}: {}", said(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.starts_with("bundle.tar: the same, byte for byte: "),
            "{text}"
        );
        // The index says where the others are, and nothing who wrote them, when and where.
        assert_eq!(recorded(&name).1, bundle, "{name}");
        replayed += 1;
    }
    assert!(replayed > 50, "{replayed}");
}

/// The component of a test plugin.
fn component(name: &'static str) -> String {
    static BUILT: OnceLock<BTreeMap<&'static str, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let build = |name: &'static str| {
            let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
            let component = target.join(format!("replayed-{name}.wasm"));
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../tests/plugins")
                .join(name);
            trainyard_cluster::build_plugin(&folder, &component, &[]).unwrap();
            (name, component.to_str().unwrap().to_owned())
        };
        ["site", "flavors", "keys"].map(build).into()
    });
    built[name].clone()
}

const INPUT: &str = r#"
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: runtime}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  plugins: [{name: site}, {name: flavors}]
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: registry.example.com/torch:1}]}}}
---
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

/// Keys are made in a cluster alone: what is printed, recorded, explained and planned names them.
#[test]
fn bundle_has_a_placeholder_for_each_key() {
    let folder = tempfile::tempdir().unwrap();
    let input = INPUT.replace("[{name: site}, {name: flavors}]", "[{name: keys}]");
    fs::write(folder.path().join("input.yaml"), input).unwrap();
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/plugins/keys/policy.yaml");
    let (policy, keys) = (policy.to_str().unwrap(), component("keys"));
    let plugins = ["--policy", policy, "--plugin", &keys, "-f", "input.yaml"];
    let run = |command: &[&str]| {
        let output = trainyard(folder.path(), &[command, &plugins].concat());
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let rendered = run(&["render", "--record", "bundle.tar"]);
    assert_eq!(run(&["render"]), rendered);
    let bundle = fs::read(folder.path().join("bundle.tar")).unwrap();
    let replayed = replay(folder.path(), &[]);
    assert!(replayed.status.success(), "{}", said(&replayed));
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

/// Plugins, grants, configuration, order, facts of the cluster, namespace and lookups come from the bundle alone.
#[test]
fn replay_needs_only_the_bundle() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("input.yaml"), INPUT).unwrap();
    fs::write(folder.path().join("policy.yaml"), POLICY).unwrap();
    let (site, flavors) = (component("site"), component("flavors"));
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
    let rendered = trainyard(folder.path(), &arguments);
    assert!(rendered.status.success(), "{}", said(&rendered));
    let text = String::from_utf8(rendered.stdout).unwrap();
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
    // What no plugin read is not in it, and a Secret never is.
    let of_use = String::from_utf8_lossy(&bundle);
    for part in ["hunter2", "of-no-use"] {
        assert!(!of_use.contains(part), "{part}");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("bundle.tar"), &bundle).unwrap();
    let output = replay(elsewhere.path(), &["-o", "json"]);
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["same"], &report["trainJobs"]),
        (&json!(true), &json!(1))
    );
    // Without what it was granted, it is refused as by any policy file.
    let without = changed(&bundle, "bundle.json", |index| {
        let plugins = index["plugins"].as_array_mut().unwrap();
        let site = plugins.iter_mut().find(|plugin| plugin["name"] == "site");
        site.unwrap()["grants"] = json!([]);
    });
    fs::write(elsewhere.path().join("bundle.tar"), without).unwrap();
    let error = said(&replay(elsewhere.path(), &[]));
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
        said(&table).starts_with("error: bundle.tar: the result differs from the recorded one")
    );
    let json: Value =
        serde_json::from_slice(&replay(folder.path(), &["-o", "json"]).stdout).unwrap();
    assert_eq!(
        (&json["same"], &json["difference"]["recorded"]),
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
        let error = said(&output);
        assert!(
            output.stdout.is_empty() && error.contains(value) && error.contains("--any-version"),
            "{error}"
        );
        let output = replay(folder.path(), &["--any-version"]);
        assert!(
            output.status.success()
                && said(&output).starts_with("warning: bundle.tar: was recorded by trainyard ")
        );
    }
}

#[test]
fn refused_input_writes_no_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let input = cases().join("error-all-at-once/input.yaml");
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
    let input = cases().join("torch-two-jobs/input.yaml");
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
            && said(&output).starts_with("error: no/such/bundle.tar: can't be written: "),
        "{}",
        said(&output)
    );
}

#[test]
fn only_render_records_files() {
    let folder = tempfile::tempdir().unwrap();
    let input = cases().join("torch-two-jobs/input.yaml");
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
    assert!(said(&output).contains("record files with `trainyard render --record`"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A name that was typed wrong costs no file.
#[test]
fn only_bundles_are_overwritten() {
    let (folder, bundle) = recorded("torch-two-jobs");
    let input = cases().join("torch-two-jobs/input.yaml");
    let record = |to: &str| {
        let arguments = ["render", "-f", input.to_str().unwrap(), "--record", to];
        trainyard(folder.path(), &arguments)
    };
    fs::write(folder.path().join("input.yaml"), "kind: TrainJob\n").unwrap();
    std::os::unix::fs::symlink("bundle.tar", folder.path().join("link")).unwrap();
    for there in ["input.yaml", "/dev/null", "link", "."] {
        let output = record(there);
        let error = said(&output);
        assert_eq!(output.status.code(), Some(1), "{there}: {error}");
        assert!(output.stdout.is_empty());
        assert!(
            error.starts_with(&format!("error: {there}: is there and is not a bundle")),
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
