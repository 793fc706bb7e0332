//! A bundle is replayed with PolicyPlugins in place of its plugins and their settings, and the first difference of each TrainJob is reported.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};
use tempfile::TempDir;
use trainyard_cluster::{manifest_of, with_manifest};

use crate::common::{bundle::replay, runtime, stderr, stdout, test_plugin, trainyard};

const RENDERING: &str = "apiVersion: trainyard.dev/v1alpha1
kind: ControllerConfiguration
rendering: {clusterDomain: k8s.example.com, facts: {other/fact: x}}
";

/// Returns the PolicyPlugin of the plugin `site`, with a proxy.
fn site(proxy: &str) -> String {
    format!(
        "apiVersion: trainyard.dev/v1alpha1
kind: PolicyPlugin
metadata: {{name: site}}
spec:
  grants: ['pod-sets[@trainer].node-selector[example.com/pool]']
  after: [torch]
  config: {{proxy: '{proxy}'}}
  facts: {{site/region: north-3}}
"
    )
}

/// Writes the plugin `site` as another version.
fn new_version(file: &Path) {
    let component = fs::read(test_plugin("site")).unwrap();
    let manifest = manifest_of(&component).unwrap();
    let mut manifest: Value = serde_json::from_slice(manifest).unwrap();
    manifest["version"] = json!("99.0.0");
    let component = with_manifest(&component, &manifest.to_string()).unwrap();
    fs::write(file, component).unwrap();
}

/// Records a TrainJob that the plugin `site` changes, and one without it.
fn recorded() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let with_site = "mlPolicy: {numNodes: 2, torch: {}}, plugins: [{name: site}],";
    let job = |name: &str, runtime: &str| {
        format!(
            "---\napiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {{name: {name}}}\nspec: {{runtimeRef: {{name: {runtime}}}}}\n"
        )
    };
    let plain = "mlPolicy: {numNodes: 2, torch: {}},";
    let input = [
        runtime("name: with-site", with_site, ""),
        "---\n".to_owned(),
        runtime("name: plain", plain, ""),
        job("first", "with-site"),
        job("second", "plain"),
        job("third", "with-site"),
    ];
    write("input.yaml", &input.concat());
    write("policies.yaml", &site("http://proxy:3128"));
    write("other.yaml", &site("http://other:3128"));
    write("rendering.yaml", RENDERING);
    new_version(&folder.path().join("new.wasm"));
    fs::copy(test_plugin("site"), folder.path().join("site.wasm")).unwrap();
    let args = [
        "render",
        "-f",
        "input.yaml",
        "policies.yaml",
        "--policy",
        "rendering.yaml",
        "--plugin",
        "site.wasm",
        "--record",
        "bundle.tar",
    ];
    let text = stdout(&trainyard(folder.path(), &args));
    for part in ["north-3", "k8s.example.com", "http://proxy:3128"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    folder
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn new_version_that_makes_the_same_is_reported_so() {
    let folder = recorded();
    // The settings for all TrainJobs are those of the bundle.
    let args = ["-f", "policies.yaml", "--plugin", "new.wasm"];
    let text = stdout(&replay(folder.path(), &args));
    let (first, second) = text.split_once('\n').unwrap();
    assert!(
        first.starts_with("plugin site 99.0.0 (sha256:")
            && first.contains(" took the place of site 0."),
        "{text}"
    );
    assert_eq!(
        second,
        "bundle.tar: the same, byte for byte: 3 objects of 3 TrainJobs\n"
    );
    let report = json_of(&replay(
        folder.path(),
        &[&args[..], &["-o", "json"]].concat(),
    ));
    assert_eq!(
        (&report["same"], &report["differences"]),
        (&json!(true), &json!([]))
    );
    assert_eq!(report["changedPlugins"].as_array().unwrap().len(), 1);
    // The plugin and the settings of the bundle are the same as these, so nothing is listed.
    let same = ["--policy", "policies.yaml", "--plugin", "site.wasm"];
    assert_eq!(stdout(&replay(folder.path(), &same)), second);
    assert_eq!(stdout(&replay(folder.path(), &[])), second);
}

#[test]
fn first_difference_of_each_train_job_is_reported() {
    let folder = recorded();
    let output = replay(
        folder.path(),
        &["-f", "other.yaml", "--plugin", "site.wasm"],
    );
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let values = "  recorded: \"http://proxy:3128\"\n  now:      \"http://other:3128\"\n";
    assert_eq!(text.matches(values).count(), 2, "{text}");
    for part in [
        "TrainJob default/first: JobSet first: spec.replicatedJobs[0]",
        "TrainJob default/third: JobSet third: spec.replicatedJobs[0]",
        "bundle.tar: with these plugins, 2 of 3 TrainJobs would differ, and 0 would be refused\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        stderr(&output),
        "error: bundle.tar: the result differs from the recorded one; standard output has the first difference of each TrainJob\n"
    );
    // So is a setting for all TrainJobs.
    fs::write(
        folder.path().join("domain.yaml"),
        RENDERING.replace("k8s.example.com", "other.example.com"),
    )
    .unwrap();
    let args = [
        "-f",
        "policies.yaml",
        "--policy",
        "domain.yaml",
        "--plugin",
        "site.wasm",
        "-o",
        "json",
    ];
    let report = json_of(&replay(folder.path(), &args));
    assert!(
        !report["differences"].as_array().unwrap().is_empty(),
        "{report}"
    );
    assert!(
        report["differences"]
            .to_string()
            .contains("other.example.com"),
        "{report}"
    );
}

#[test]
fn train_jobs_that_need_a_missing_plugin_are_refused_and_the_others_compared() {
    let folder = recorded();
    fs::write(
        folder.path().join("torch.yaml"),
        "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyPlugin\nmetadata: {name: torch}\nspec: {}\n",
    )
    .unwrap();
    let output = replay(folder.path(), &["-f", "torch.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(
        text.contains("plugin site 0.") && text.contains(" is not loaded\n"),
        "{text}"
    );
    assert!(
        text.ends_with(
            "bundle.tar: with these plugins, 0 of 3 TrainJobs would differ, and 2 would be refused\n"
        ),
        "{text}"
    );
    let printed = stderr(&output);
    assert!(
        printed.contains("warning: bundle.tar: the plugin site 0."),
        "{printed}"
    );
    for name in ["first", "third"] {
        let error = format!("error: bundle.tar: TrainJob default/{name}: ");
        assert!(printed.contains(&error), "{printed}");
    }
    assert!(!printed.contains("second"), "{printed}");
}

#[test]
fn plugins_of_a_bundle_are_not_said_to_be_signed() {
    let folder = recorded();
    let output = replay(folder.path(), &["--key", "any.pub"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("those of a bundle are not signed"));
    // Errors of PolicyPlugins are those of any command.
    fs::write(
        folder.path().join("oci.yaml"),
        format!("apiVersion: trainyard.dev/v1alpha1\nkind: PolicyPlugin\nmetadata: {{name: site}}\nspec: {{source: {{oci: {{reference: 'registry.invalid/site@sha256:{}'}}}}}}\n", "0".repeat(64)),
    )
    .unwrap();
    fs::write(
        folder.path().join("signers.yaml"),
        "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\nplugins: {unsigned: [registry.example.com/*]}\n",
    )
    .unwrap();
    let output = replay(
        folder.path(),
        &["-f", "oci.yaml", "--signers", "signers.yaml"],
    );
    let printed = stderr(&output);
    assert!(
        printed
            .contains("oci.yaml:4: PolicyPlugin site: spec.source: registry.invalid/site@sha256:")
            && printed.contains("nothing was requested"),
        "{printed}"
    );
}
