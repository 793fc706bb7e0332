//! PolicyPlugins in files, directories and the input, and policy files, mean the same, and errors of each name their place.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use trainyard_cluster::with_manifest;

use crate::common::{
    command,
    declared_plugin::{claims, plugin},
    root, runtime, stderr, stdout, test_plugin,
};

const JOB: &str = "---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job}
spec: {runtimeRef: {name: runtime}}
";

/// The claim of the plugin `rack` of [`Site::new`], which needs a grant.
const GRANT: &str = "grants: ['pod-sets[@trainer].containers[node].image']";

/// A folder with a plugin, a TrainJob, and a store of its own.
struct Site(TempDir);

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let writes = claims(&[], &["pod-sets[@trainer].containers[node].image"]);
        for name in ["plugins", "policies"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        plugin(&folder.path().join("plugins"), "rack", writes);
        let site = Self(folder);
        site.write(
            "input.yaml",
            &(runtime("name: runtime", "plugins: [{name: rack}],", "") + JOB),
        );
        site
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn run(&self, args: &[&str]) -> Output {
        command(args)
            .current_dir(self.path())
            .env("TRAINYARD_PLUGIN_STORE", self.path().join("store"))
            .env(
                "TRAINYARD_CACHE_DIR",
                root().join("target/tmp/policy-cache"),
            )
            .output()
            .unwrap()
    }

    /// Returns the digest of the plan with these arguments.
    fn digest(&self, args: &[&str]) -> String {
        let output = self.run(&[&["plan", "-o", "json"], args].concat());
        let plan: Value = serde_json::from_str(&stdout(&output)).unwrap();
        plan[0]["digest"].as_str().unwrap().to_owned()
    }

    /// Returns the errors of a command, which must fail.
    fn errors(&self, args: &[&str]) -> Vec<String> {
        let output = self.run(args);
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{printed}");
        let lines = printed.lines();
        let errors = lines.filter_map(|line| line.strip_prefix("error: "));
        errors.map(str::to_owned).collect()
    }
}

fn rack(spec: &str) -> String {
    format!(
        "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyPlugin\nmetadata: {{name: rack}}\nspec: {{{spec}}}\n"
    )
}

#[test]
fn every_form_has_the_same_plan() {
    let site = Site::new();
    let source = format!("source: {{file: {{name: rack.wasm}}}}, {GRANT}");
    site.write("policies/rack.yaml", &rack(&source));
    site.write("policies/kustomization.yaml", "resources: [rack.yaml]\n");
    site.write(
        "config.yaml",
        "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\nrendering: {facts: {site/zone: a}}\n",
    );
    site.write(
        "old.yaml",
        &format!(
            "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nfacts: {{site/zone: a}}\nplugins: [{{name: rack, {GRANT}}}]\n"
        ),
    );
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        trainyard_api::yaml::read(&rack(&source)).pop().unwrap().unwrap().value,
    ]});
    site.write("list.json", &list.to_string());
    let directory = ["--plugin-dir", "plugins", "--policy", "config.yaml"];
    let wanted = site.digest(&["--policy", "old.yaml", "--plugin", "plugins/rack.wasm"]);
    for more in [
        ["--policy", "policies"],
        ["--policy", "policies/rack.yaml"],
        ["--policy", "list.json"],
        ["-f", "policies/"],
        ["-f", "list.json"],
    ] {
        assert_eq!(
            site.digest(&[&directory[..], &more].concat()),
            wanted,
            "{more:?}"
        );
    }
    // A file beside the PolicyPlugin needs no directory.
    let beside = source.replace("rack.wasm", "beside.wasm");
    fs::copy(
        site.path().join("plugins/rack.wasm"),
        site.path().join("policies/beside.wasm"),
    )
    .unwrap();
    site.write("policies/rack.yaml", &rack(&beside));
    let alone = ["--policy", "policies", "--policy", "config.yaml"];
    assert_eq!(site.digest(&alone), wanted);
}

#[test]
fn commands_take_policy_plugins_among_their_files() {
    let site = Site::new();
    fs::copy(test_plugin("site"), site.path().join("policies/site.wasm")).unwrap();
    site.write(
        "input.yaml",
        &(runtime(
            "name: runtime",
            "mlPolicy: {numNodes: 2}, plugins: [{name: site}],",
            "",
        ) + JOB),
    );
    let grants = "grants: ['pod-sets[@trainer].node-selector[example.com/pool]'], after: [torch]";
    let policy = |more: &str| {
        rack(&format!("source: {{file: {{name: site.wasm}}}}{more}"))
            .replace("name: rack", "name: site")
    };
    site.write("policies/site.yaml", &policy(&format!(", {grants}")));
    let files = ["-f", "input.yaml", "-f", "policies"];
    for command in ["render", "validate", "plan", "explain"] {
        let output = site.run(&[&[command], &files[..]].concat());
        assert!(output.status.success(), "{command}: {}", stderr(&output));
        assert!(output.stderr.is_empty(), "{command}: {}", stderr(&output));
    }
    let checked = stdout(&site.run(&[&["validate"], &files[..]].concat()));
    assert!(checked.contains("1 PolicyPlugin"), "{checked}");
    assert!(site.run(&["validate", "-f", "policies"]).status.success());
    site.write("policies/site.yaml", &policy(", grant: []"));
    let errors = site.errors(&["validate", "--no-plugins", "-f", "policies"]);
    assert!(
        errors[0].contains("spec.grant: unknown field"),
        "{errors:?}"
    );
    // Without a grant, each of them refuses the plugin.
    site.write("policies/site.yaml", &policy(""));
    for command in ["render", "validate", "plan", "explain"] {
        let errors = site.errors(&[&[command], &files[..]].concat());
        let is_refused = errors.iter().any(|error| error.contains("is not granted"));
        assert!(is_refused, "{command}: {errors:?}");
    }
    // A TrainJob is still needed to render one.
    site.write("policies/site.yaml", &policy(&format!(", {grants}")));
    assert_eq!(
        site.errors(&["render", "-f", "policies"]),
        ["there is no TrainJob in the input; pass one with -f"]
    );
}

#[test]
fn a_disabled_plugin_needs_no_file() {
    let site = Site::new();
    let source = "source: {file: {name: gone.wasm}}, disabled: true";
    site.write("policy.yaml", &rack(source));
    let output = site.run(&["plan", "--policy", "policy.yaml"]);
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    let warning = "PolicyPlugin rack: spec.source: `gone.wasm` is not in the plugin directory";
    assert!(printed.contains(warning), "{printed}");
    let end = "; the plugin is disabled, so it is not needed";
    assert!(printed.contains(end), "{printed}");
    // The controller disables the built-in plugin of its name, too.
    let plans = [source, "disabled: true"].map(|spec| {
        site.write("policy.yaml", &rack(spec).replace("rack}", "torch}"));
        let output = site.run(&["plan", "--policy", "policy.yaml"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    });
    let shipped = stdout(&site.run(&["plan"]));
    assert!(plans.iter().all(|plan| *plan != shipped), "{shipped}");
    let [unavailable, built_in] = &plans;
    assert_eq!(unavailable, built_in);
}

#[test]
fn errors_name_the_place_of_what_is_wrong() {
    let site = Site::new();
    let built_in = rack("source: {file: {name: rack.wasm}}").replace("rack}", "torch}");
    let other = rack("source: {file: {name: rack.wasm}}").replace("{name: rack}", "{name: other}");
    let digest = format!("sha256:{}", "0".repeat(64));
    let two = format!("{}---\n{}", rack(GRANT), rack(""));
    let one_file = format!("{}---\n{other}", rack("source: {file: {name: rack.wasm}}"));
    for (policy, wanted) in [
        (
            built_in,
            "policy.yaml:4: PolicyPlugin torch: spec.source: `torch` is a built-in plugin, and only a signed plugin of a registry may replace it",
        ),
        (
            rack("source: {file: {name: gone.wasm}}"),
            "policy.yaml:4: PolicyPlugin rack: spec.source: `gone.wasm` is not in the plugin directory",
        ),
        (
            other,
            "policy.yaml:4: PolicyPlugin other: spec.source: the plugin file plugins/rack.wasm is the plugin `rack`, and not `other`; rename the PolicyPlugin",
        ),
        (
            one_file,
            "policy.yaml:9: PolicyPlugin other: spec.source: the file is also that of `rack` in policy.yaml:4: PolicyPlugin rack: spec.source",
        ),
        (
            two,
            "policy.yaml:8: PolicyPlugin rack: metadata.name: `rack` also has a PolicyPlugin in policy.yaml:3: PolicyPlugin rack: metadata.name; merge the two",
        ),
        (
            rack("after: [torhc]"),
            "policy.yaml:4: PolicyPlugin rack: spec.after[0]: no loaded plugin has the name `torhc`; did you mean `torch`?",
        ),
        (
            rack("enabledFor: {namespaces: [a]}"),
            "policy.yaml:4: PolicyPlugin rack: spec.enabledFor: is only for plugins that are active `always`",
        ),
        (
            rack(&format!("digest: '{digest}'")),
            "accepts only digest sha256:0000",
        ),
        (
            rack("grant: []"),
            "policy.yaml:4: PolicyPlugin rack: spec.grant: unknown field; did you mean `grants`?",
        ),
        (
            "apiVersion: trainyard.dev/v1\nkind: PolicyPlugin\nmetadata: {name: a}\n".to_owned(),
            "apiVersion `trainyard.dev/v1` with kind `PolicyPlugin` is not supported",
        ),
    ] {
        site.write("policy.yaml", &policy);
        let args = ["plan", "--plugin-dir", "plugins", "--policy", "policy.yaml"];
        let errors = site.errors(&args);
        assert!(
            errors.iter().any(|error| error.contains(wanted)),
            "{wanted}\n{errors:#?}"
        );
    }
}

#[test]
fn settings_that_are_given_twice_are_refused_with_both_places() {
    let site = Site::new();
    site.write(
        "config.yaml",
        "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\nrendering:\n  clusterDomain: a\n  facts: {rack/a: x}\n",
    );
    site.write(
        "old.yaml",
        "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nclusterDomain: b\n",
    );
    site.write(
        "policy.yaml",
        &rack(&format!("{GRANT}, facts: {{rack/a: 'no'}}")),
    );
    let args = ["plan", "--plugin-dir", "plugins"];
    let both = ["--policy", "config.yaml", "--policy", "old.yaml"];
    assert_eq!(
        site.errors(&[&args[..], &both].concat()),
        [
            "old.yaml:3: clusterDomain: is also set in config.yaml:4: rendering.clusterDomain; remove one of the two"
        ]
    );
    let facts = ["--policy", "config.yaml", "--policy", "policy.yaml"];
    assert_eq!(
        site.errors(&[&args[..], &facts].concat()),
        [
            "policy.yaml:4: PolicyPlugin rack: spec.facts.rack/a: is also set in config.yaml:5: rendering.facts; remove one of the two"
        ]
    );
    // A controller reports it before it connects to a cluster.
    let controller = [
        "controller",
        "--kubeconfig",
        "none",
        "--config",
        "config.yaml",
        "--policy",
        "old.yaml",
    ];
    let printed = stderr(&site.run(&controller));
    assert!(
        printed.contains(
            "config.yaml: rendering.clusterDomain: is also set in old.yaml:3: clusterDomain"
        ),
        "{printed}"
    );
}

#[test]
fn grant_that_no_plugin_claims_is_a_warning() {
    let site = Site::new();
    let spec =
        "grants: ['pod-sets[@trainer].containers[node].image', 'pod-sets[*].scheduler-name']";
    site.write("policy.yaml", &rack(spec));
    let output = site.run(&["plan", "--plugin-dir", "plugins", "--policy", "policy.yaml"]);
    stdout(&output);
    let printed = stderr(&output);
    assert!(
        printed.contains("policy.yaml:4: PolicyPlugin rack: spec.grants[1]: `pod-sets[*].scheduler-name` covers no claim of plugin rack"),
        "{printed}"
    );
}

/// What was reviewed with these files is what the controller runs.
#[test]
fn plugin_of_a_registry_is_found_by_its_digests() {
    let site = Site::new();
    let pushed = site.run(&["plugin", "push", "plugins/rack.wasm", "oci:store:1.0.0"]);
    let pinned = stdout(&pushed).trim().to_owned();
    let manifest = pinned.split_once('@').unwrap().1;
    let reference = format!("registry.invalid/plugins/rack@{manifest}");
    let oci = |more: &str| {
        rack(&format!(
            "source: {{oci: {{reference: '{reference}'}}}}, {GRANT}{more}"
        ))
    };
    let wanted = {
        site.write("policy.yaml", &rack(GRANT));
        site.digest(&["--plugin-dir", "plugins", "--policy", "policy.yaml"])
    };
    // From the store, by the digest of the manifest.
    site.write("policy.yaml", &oci(""));
    assert_eq!(site.digest(&["--policy", "policy.yaml"]), wanted);
    // The file has another digest than the PolicyPlugin says.
    site.write(
        "policy.yaml",
        &oci(&format!(", digest: 'sha256:{}'", "0".repeat(64))),
    );
    let errors = site.errors(&["plan", "--policy", "policy.yaml"]);
    assert!(
        errors[0].contains("spec.digest: the plugin file in the registry has the digest sha256:"),
        "{errors:?}"
    );
    // From a directory, by the digest of the file.
    fs::rename(site.path().join("store"), site.path().join("elsewhere")).unwrap();
    let file = fs::read(site.path().join("plugins/rack.wasm")).unwrap();
    let digest = trainyard_model::names::sha256_digest(file);
    site.write("policy.yaml", &oci(&format!(", digest: '{digest}'")));
    assert_eq!(
        site.digest(&["--plugin-dir", "plugins", "--policy", "policy.yaml"]),
        wanted
    );
    // Nowhere.
    let errors = site.errors(&["plan", "--policy", "policy.yaml"]);
    assert!(
        errors[0].starts_with(
            "policy.yaml:4: PolicyPlugin rack: spec.source: registry.invalid/plugins/rack@sha256:"
        ),
        "{errors:?}"
    );
}

#[test]
fn changes_of_policy_plugins_are_compared() {
    let site = Site::new();
    site.write("policies/rack.yaml", &rack(GRANT));
    site.write("next/rack.yaml", &rack(&format!("{GRANT}, disabled: true")));
    let args = [
        "plan",
        "-f",
        "policies",
        "input.yaml",
        "--plugin-dir",
        "plugins",
        "--against-policy",
        "next",
    ];
    let output = site.run(&args);
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(printed.contains("rack 1.0.0"), "{printed}");
    // With the same PolicyPlugins, nothing changes.
    let same = [
        "plan",
        "-f",
        "policies",
        "--plugin-dir",
        "plugins",
        "--against-policy",
        "policies",
    ];
    assert!(stdout(&site.run(&same)).starts_with("no plugin would change"));
}

/// Returns the policy files of the repository.
fn policy_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![
        root().join("tests/plugins"),
        root().join("host/templates"),
        root().join("examples/plugins"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.ends_with("policy.yaml") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn policy_file_and_its_conversion_have_one_plan() {
    let site = Site::new();
    let full = format!(
        "apiVersion: trainyard.dev/v1alpha1
kind: PolicyFile
accelerators: [example.com/gpu]
clusterDomain: k8s.example.com
catalogNamespace: catalog
facts: {{status/url: 'https://x', site/zone: 'on'}}
obeyedDomains: {{add: [example.com], remove: [run.ai]}}
plugins:
- {{name: rack, {GRANT}, limits: {{fuel: 5}}, compile: {{seconds: 90}}, excludes: [mpi]}}
- {{name: torch, config: {{rendezvousPort: 29600}}, after: [dra]}}
- {{name: train-job-status, disabled: true}}
- {{name: dra, grants: ['pod-sets[*].scheduler-name']}}
"
    );
    site.write("full.yaml", &full);
    let converted = |file: &Path| {
        let output = site.run(&["plugin", "convert", file.to_str().unwrap()]);
        let text = stdout(&output);
        assert!(output.stderr.is_empty(), "{}", stderr(&output));
        site.write("converted.yaml", &text);
        text
    };
    let gates = ["--feature-gates", "TrainJobStatus=true"];
    let text = converted(&site.path().join("full.yaml"));
    assert!(
        text.starts_with("# Add `source: {file: {name: FILE.wasm}}` or "),
        "{text}"
    );
    assert!(text.contains("kind: ControllerConfiguration"), "{text}");
    let of = |file: &str| {
        let args = ["--plugin-dir", "plugins", "--policy", file];
        site.digest(&[&args[..], &gates].concat())
    };
    assert_eq!(of("converted.yaml"), of("full.yaml"));

    let torch = fs::read(concat!(env!("OUT_DIR"), "/torch.wasm")).unwrap();
    let files = policy_files();
    let mut compared = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let folder = file.parent().unwrap();
        if !text.contains("kind: PolicyFile") {
            continue;
        }
        // The plugin that its manifest declares.
        let manifest = fs::read_to_string(folder.join("manifest.json")).unwrap();
        let mut manifest: Value = serde_json::from_str(&manifest).unwrap();
        manifest["phases"] = json!(["transform"]);
        manifest["version"] = json!("1.0.0");
        manifest["contract"] = json!("1.0.0");
        let Some(name) = text.lines().find_map(|line| line.strip_prefix("- name: ")) else {
            continue;
        };
        manifest["name"] = json!(name);
        let component = with_manifest(&torch, &manifest.to_string()).unwrap();
        fs::write(site.path().join("one.wasm"), component).unwrap();
        converted(&file);
        let of = |file: &str| site.digest(&["--plugin", "one.wasm", "--policy", file]);
        assert_eq!(
            of("converted.yaml"),
            of(file.to_str().unwrap()),
            "{}",
            file.display()
        );
        compared += 1;
    }
    assert!(compared > 1, "{compared}");
}

#[test]
fn policy_file_is_read_with_one_warning() {
    let site = Site::new();
    site.write(
        "old.yaml",
        &format!("apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{{name: rack, {GRANT}}}]\n"),
    );
    let output = site.run(&["plan", "--plugin-dir", "plugins", "--policy", "old.yaml"]);
    stdout(&output);
    assert_eq!(
        stderr(&output),
        "warning: old.yaml:2: kind: kind PolicyFile is read for the last release; convert the file with `trainyard plugin convert old.yaml`\n"
    );
}

#[test]
fn printed_policy_plugins_load_the_plugins() {
    let site = Site::new();
    let printed = stdout(&site.run(&["plugin", "inspect", "plugins/rack.wasm", "--policy"]));
    site.write("policies/policy.yaml", &printed);
    site.write("policy.yaml", &rack(GRANT));
    let wanted = site.digest(&["--plugin-dir", "plugins", "--policy", "policy.yaml"]);
    assert_eq!(
        site.digest(&["--plugin-dir", "plugins", "-f", "policies"]),
        wanted
    );
    assert!(printed.contains("kind: PolicyPlugin"), "{printed}");
}

#[test]
fn roles_of_policy_plugins_are_aggregated_to_that_of_the_controller() {
    let site = Site::new();
    let lookups = claims(&["lookups[v1/Node/*]"], &["objects[v1/Secret/-x]"]);
    plugin(&site.path().join("plugins"), "nodes", lookups);
    let nodes = rack("source: {file: {name: nodes.wasm}}, grants: ['lookups[v1/Node/*]', 'objects[v1/Secret/-x]']")
        .replace("{name: rack}", "{name: nodes}");
    site.write("policies/nodes.yaml", &nodes);
    site.write(
        "policies/rack.yaml",
        &rack(&format!("source: {{file: {{name: rack.wasm}}}}, {GRANT}")),
    );
    site.write(
        "policies/torch.yaml",
        &rack("config: {rendezvousPort: 29600}").replace("{name: rack}", "{name: torch}"),
    );
    let args = [
        "rbac",
        "-f",
        "policies",
        "--plugin-dir",
        "plugins",
        "-o",
        "json",
    ];
    let printed: Value = serde_json::from_str(&stdout(&site.run(&args))).unwrap();
    let roles = printed["items"].as_array().unwrap();
    assert_eq!(roles.len(), 1, "{printed}");
    let metadata = json!({
        "name": "trainyard:plugin:nodes",
        "labels": {"rbac.trainyard.dev/aggregate-to-controller": "true"},
    });
    assert_eq!(roles[0]["metadata"], metadata);
    let resources: Vec<_> = roles[0]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|rule| rule["resources"].as_array().unwrap())
        .collect();
    assert!(
        resources.contains(&&json!("nodes")) && resources.contains(&&json!("secrets")),
        "{resources:?}"
    );
    assert_eq!(
        site.errors(&["rbac", "-f", "input.yaml", "--plugin-dir", "plugins"]),
        ["there is no PolicyPlugin in the input; pass one with -f"]
    );
}
