//! Commands that take PolicyPlugins verify the plugins of registries as the controller does, also those of the store and of files.

use std::fs;

use serde_json::{Value, json};
use trainyard_model::names::sha256_digest;

use crate::{
    common::{
        declared_plugin::{claims, plugin},
        runtime,
        signing::Key,
        stderr, stdout,
    },
    plugins_travel_through_registries::{Site, digest},
};

/// The repositories of the tests. Nothing answers there, so that plugins come from the store alone.
const REGISTRY: &str = "registry.invalid/plugins";

const GRANT: &str = "grants: ['pod-sets[@trainer].containers[node].image']";

/// A site with a store, which is the directory `store`.
struct Stored {
    site: Site,
    key: Key,
}

impl Stored {
    fn new() -> Self {
        let (site, key) = (Site::new(), Key::new());
        fs::create_dir(site.path().join("plugins")).unwrap();
        site.write("acme.pub", &key.pem());
        let job = "---\napiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: job}\nspec: {runtimeRef: {name: runtime}}\n";
        site.write("input.yaml", &(runtime("name: runtime", "", "") + job));
        Self { site, key }
    }

    /// Puts a plugin into the store, as a pull of it does, and returns its reference.
    fn put(&self, name: &str, manifest: Value) -> String {
        plugin(&self.site.path().join("plugins"), name, manifest);
        let file = format!("plugins/{name}.wasm");
        let pushed = stdout(&self.site.run(&["plugin", "push", &file, "oci:store:new"]));
        let reference = format!("{REGISTRY}/{name}@{}", digest(&pushed));
        let index = self.site.path().join("store/index.json");
        let text = fs::read_to_string(&index).unwrap();
        let text = text.replace("\"new\"", &format!("\"{reference}\""));
        fs::write(index, text).unwrap();
        reference
    }

    fn sign(&self, reference: &str, key: &Key) {
        key.sign(&self.site.path().join("store"), digest(reference));
    }

    /// Writes a configuration of the controller by which the key may sign these plugins.
    fn configure(&self, file: &str, key: &Key, plugins: &str, more: &str) {
        let pem = key.pem().replace('\n', "\\n");
        self.site.write(
            file,
            &format!(
                "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\nplugins:\n  signers:\n  - {{name: acme, publicKey: \"{pem}\", plugins: [{plugins}], repositories: ['{REGISTRY}/*']}}\n{more}"
            ),
        );
    }

    fn declare(&self, name: &str, source: &str, more: &str) {
        self.site.write(
            &format!("policies/{name}.yaml"),
            &format!(
                "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyPlugin\nmetadata: {{name: {name}}}\nspec: {{source: {source}{more}}}\n"
            ),
        );
    }

    fn declare_oci(&self, name: &str, reference: &str, more: &str) {
        let source = format!("{{oci: {{reference: '{reference}'}}}}");
        self.declare(name, &source, more);
    }

    /// Puts the plugin `rack` into the store, and declares it.
    fn rack(&self) -> String {
        let writes = claims(&[], &["pod-sets[@trainer].containers[node].image"]);
        let reference = self.put("rack", writes);
        self.declare_oci("rack", &reference, &format!(", {GRANT}"));
        reference
    }

    fn args<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
        let files = ["--plugin-store", "store", "-f", "policies"];
        [args, &files, more].concat()
    }

    /// Returns the versions of the plugins, and the digest of the plan. The rest is what is on standard error.
    fn plan(&self, more: &[&str]) -> (Value, String) {
        let output = self
            .site
            .run(&Self::args(&["plan", "-o", "json", "--claims"], more));
        let plan = serde_json::from_str(&stdout(&output)).unwrap();
        (plan, stderr(&output))
    }

    fn error(&self, more: &[&str]) -> String {
        self.site.error(&Self::args(&["plan"], more))
    }
}

#[test]
fn every_command_refuses_what_the_controller_would_not_accept() {
    let it = Stored::new();
    let reference = it.rack();
    it.configure("signers.yaml", &it.key, "'ra*'", "");
    let commands: [&[&str]; 6] = [
        &["plan"],
        &["validate"],
        &["render"],
        &["explain"],
        &["diff"],
        &["rbac"],
    ];
    let run = |command: &[&str], more: &[&str]| {
        let more = match command[0] {
            "plan" | "rbac" => more.to_vec(),
            _ => [&["-f", "input.yaml"], more].concat(),
        };
        it.site.run(&Stored::args(command, &more))
    };
    for flags in [["--signers", "signers.yaml"], ["--key", "acme.pub"]] {
        for command in commands {
            let output = run(command, &flags);
            let error = stderr(&output);
            let place =
                format!("policies/rack.yaml:4: PolicyPlugin rack: spec.source: {reference}: ");
            assert!(
                error.contains(&place)
                    && error.contains("is not signed; sign it with `cosign sign"),
                "{command:?}: {error}"
            );
            assert!(!output.status.success(), "{command:?}");
        }
    }
    it.sign(&reference, &it.key);
    for flags in [["--signers", "signers.yaml"], ["--key", "acme.pub"]] {
        for command in commands {
            let output = run(command, &flags);
            let printed = stderr(&output);
            assert!(
                output.status.success() || command == ["diff"],
                "{command:?}: {printed}"
            );
            assert!(
                !printed.contains("signature") && !printed.contains("not signed"),
                "{command:?}: {printed}"
            );
        }
    }
    // A key that was removed does not count any more, also for what is stored.
    let other = Key::new();
    it.configure("signers.yaml", &other, "'ra*'", "");
    let error = it.error(&["--signers", "signers.yaml"]);
    assert!(error.contains("is signed with none of the keys"), "{error}");
    // Nobody is asked for what no signer may sign.
    it.configure("signers.yaml", &it.key, "other", "");
    let error = it.error(&["--signers", "signers.yaml"]);
    let expected = format!(
        "spec.source: {reference}: no signer of the controller's configuration may sign `rack` for {REGISTRY}/rack, so nothing was requested from it"
    );
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn configuration_among_the_policies_says_who_may_sign() {
    let it = Stored::new();
    let reference = it.rack();
    it.configure(
        "policies/config.yaml",
        &it.key,
        "rack",
        "rendering: {clusterDomain: k8s.example.com}\n",
    );
    let args = ["plan", "--plugin-store", "store", "--policy", "policies"];
    let error = it.site.error(&args);
    assert!(error.contains("is not signed"), "{error}");
    it.sign(&reference, &it.key);
    let output = it.site.run(&args);
    assert_eq!(
        (stderr(&output).as_str(), output.status.code()),
        ("", Some(0))
    );
    // The flag may say the same, but nothing else.
    fs::copy(
        it.site.path().join("policies/config.yaml"),
        it.site.path().join("same.yaml"),
    )
    .unwrap();
    stdout(
        &it.site
            .run(&[&args[..], &["--signers", "same.yaml"]].concat()),
    );
    it.configure("other.yaml", &it.key, "'*'", "");
    let error = it
        .site
        .error(&[&args[..], &["--signers", "other.yaml"]].concat());
    assert!(
        error.contains("policies/config.yaml:3: plugins: has other signers or repositories than --signers or --key; remove one of the two"),
        "{error}"
    );
    // What is compared with it is verified, too.
    it.configure("policies/config.yaml", &Key::new(), "rack", "");
    it.site.write("now.yaml", "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyPlugin\nmetadata: {name: torch}\nspec: {}\n");
    let against = [
        "plan",
        "--plugin-store",
        "store",
        "--policy",
        "now.yaml",
        "--against-policy",
        "policies",
    ];
    let error = it.site.error(&against);
    assert!(error.contains("is signed with none of the keys"), "{error}");
}

#[test]
fn plugins_are_not_verified_without_signers_and_one_warning_says_so() {
    let it = Stored::new();
    let reference = it.rack();
    let warning = "warning: the signatures of plugins from registries are not verified; pass the configuration of the controller with --signers, or a public key with --key\n";
    let (plan, printed) = it.plan(&[]);
    assert_eq!(printed, warning);
    // Also for both sides of a comparison, and for a file that has the digest.
    let (_, printed) = it.plan(&["--against-policy", "policies"]);
    assert_eq!(printed, warning);
    let file = fs::read(it.site.path().join("plugins/rack.wasm")).unwrap();
    let pinned = format!(", {GRANT}, digest: '{}'", sha256_digest(file));
    it.declare_oci("rack", &reference, &pinned);
    let (again, printed) = it.plan(&["--plugin-dir", "plugins"]);
    assert_eq!(
        (&again[0]["digest"], printed.as_str()),
        (&plan[0]["digest"], warning)
    );
    // A file has no signature to verify.
    it.declare("rack", "{file: {name: rack.wasm}}", &format!(", {GRANT}"));
    let (again, printed) = it.plan(&["--plugin-dir", "plugins"]);
    assert_eq!(
        (&again[0]["digest"], printed.as_str()),
        (&plan[0]["digest"], "")
    );
}

#[test]
fn file_with_the_digest_does_not_take_the_place_of_what_is_signed() {
    let it = Stored::new();
    let reference = it.rack();
    it.configure("signers.yaml", &it.key, "rack", "");
    let file = fs::read(it.site.path().join("plugins/rack.wasm")).unwrap();
    let pinned = format!(", {GRANT}, digest: '{}'", sha256_digest(file));
    it.declare_oci("rack", &reference, &pinned);
    let flags = ["--signers", "signers.yaml", "--plugin-dir", "plugins"];
    let error = it.error(&flags);
    assert!(error.contains("is not signed"), "{error}");
    it.sign(&reference, &it.key);
    let (plan, printed) = it.plan(&flags);
    assert_eq!(printed, "");
    assert_eq!(plan[0]["digest"], it.plan(&[]).0[0]["digest"]);
    // A file beside it that the PolicyPlugin names needs no signature, as in the cluster.
    it.declare("rack", "{file: {name: rack.wasm}}", &format!(", {GRANT}"));
    let (again, printed) = it.plan(&flags);
    assert_eq!(
        (&again[0]["digest"], printed.as_str()),
        (&plan[0]["digest"], "")
    );
}

/// Returns the version of a plugin of a plan.
fn version(plan: &Value, name: &str) -> String {
    fn find(value: &Value, name: &str) -> Option<String> {
        match value {
            Value::Object(fields) if fields.get("name") == Some(&json!(name)) => {
                Some(fields.get("version")?.as_str()?.to_owned())
            }
            Value::Object(fields) => fields.values().find_map(|it| find(it, name)),
            Value::Array(items) => items.iter().find_map(|it| find(it, name)),
            _ => None,
        }
    }
    find(plan, name).unwrap_or_default()
}

#[test]
fn signed_newer_plugin_replaces_a_built_in_one() {
    let it = Stored::new();
    let reference = it.put("torch", json!({"version": "99.0.0"}));
    it.declare_oci("torch", &reference, "");
    let error = it.error(&[]);
    let expected = "policies/torch.yaml:4: PolicyPlugin torch: spec.source: `torch` is a built-in plugin, and only a plugin that is newer than ";
    assert!(
        error.contains(expected)
            && error.contains("pass the configuration of the controller with --signers"),
        "{error}"
    );
    it.configure("named.yaml", &it.key, "torch", "");
    it.configure("any.yaml", &it.key, "'*'", "");
    let unsigned = "unsigned: ['registry.invalid/*']\n";
    it.site.write("unsigned.yaml", &format!("apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\nplugins:\n  {unsigned}"));
    let error = it.error(&["--signers", "named.yaml"]);
    assert!(error.contains("is not signed"), "{error}");
    it.sign(&reference, &it.key);
    let (plan, printed) = it.plan(&["--signers", "named.yaml"]);
    assert_eq!(
        (version(&plan, "torch").as_str(), printed.as_str()),
        ("99.0.0", "")
    );
    // A `*` does not name it, and no repository is trusted with it.
    for file in ["any.yaml", "unsigned.yaml"] {
        let error = it.error(&["--signers", file]);
        assert!(
            error.contains(
                "may sign `torch` (a built-in plugin's name has to be written out there)"
            ),
            "{file}: {error}"
        );
    }
    // No file replaces it, however new.
    it.declare("torch", "{file: {name: torch.wasm}}", "");
    let error = it.error(&["--signers", "named.yaml", "--plugin-dir", "plugins"]);
    assert!(
        error.contains("spec.source: `torch` is a built-in plugin, and only a signed plugin of a registry may replace it"),
        "{error}"
    );
}

#[test]
fn built_in_plugin_that_is_as_new_is_used_with_a_warning() {
    let it = Stored::new();
    let reference = it.put("torch", json!({"version": "0.0.1"}));
    it.sign(&reference, &it.key);
    it.configure("named.yaml", &it.key, "torch", "");
    // The digest of the file is not that of the built-in plugin, which is used nevertheless.
    let file = fs::read(it.site.path().join("plugins/torch.wasm")).unwrap();
    let settings = format!(
        ", config: {{rendezvousPort: 29600}}, digest: '{}'",
        sha256_digest(file)
    );
    it.declare_oci("torch", &reference, &settings);
    let (plan, printed) = it.plan(&["--signers", "named.yaml"]);
    assert!(
        printed.starts_with("warning: policies/torch.yaml:4: PolicyPlugin torch: spec.source: version 0.0.1 is not newer than ")
            && printed.ends_with(" of the built-in plugin, which is used instead; remove `source`, or use a newer version\n"),
        "{printed}"
    );
    // It has the settings of the PolicyPlugin.
    it.site.write("policies/torch.yaml", "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyPlugin\nmetadata: {name: torch}\nspec: {config: {rendezvousPort: 29600}}\n");
    let (configured, printed) = it.plan(&[]);
    assert_eq!(
        (&configured[0]["digest"], printed.as_str()),
        (&plan[0]["digest"], "")
    );
    assert_ne!(version(&plan, "torch"), "0.0.1");
}

impl Stored {
    /// Writes a controller's configuration of files, by which the key may sign these plugins.
    fn configure_controller(&self, key: &Key, plugins: &str) {
        let more = "  store: store\npolicyFile: policies\npluginDir: plugins\n";
        self.configure("controller.yaml", key, plugins, more);
    }

    /// Starts the controller, which ends once its plugins are loaded. Returns the line with those, and the lines about skipped ones.
    fn started(&self) -> (String, String) {
        let output = self.site.run(&[
            "controller",
            "--log-format=text",
            "--kubeconfig=missing",
            "--config=controller.yaml",
        ]);
        let log = stderr(&output);
        let lines = |text: &str| {
            let lines = log.lines().filter(|line| line.contains(text));
            lines.map(|line| format!("{line}\n")).collect::<String>()
        };
        let loaded = lines("plugins are loaded");
        assert!(!loaded.is_empty(), "{log}");
        (loaded, lines("plugin skipped"))
    }
}

#[test]
fn controller_loads_no_file_in_place_of_what_a_source_decides() {
    let it = Stored::new();
    let signed = it.put("torch", json!({"version": "99.0.0"}));
    it.sign(&signed, &it.key);
    it.declare_oci("torch", &signed, "");
    let rack = it.rack();
    it.sign(&rack, &it.key);
    it.configure_controller(&it.key, "torch, rack");
    // What was pushed is no file of the plugin directory any more.
    let directory = it.site.path().join("plugins");
    fs::remove_file(directory.join("rack.wasm")).unwrap();
    let (loaded, skipped) = it.started();
    assert!(
        loaded.contains("torch 99.0.0") && loaded.contains("rack 1.0.0"),
        "{loaded}"
    );
    assert_eq!(skipped, "");
    let writes = claims(&[], &["pod-sets[@trainer].containers[node].image"]);
    let with_version = |mut manifest: Value| {
        manifest["version"] = json!("66.6.6");
        manifest
    };
    plugin(&directory, "torch", with_version(json!({})));
    plugin(&directory, "rack", with_version(writes));
    let (loaded, skipped) = it.started();
    assert!(
        loaded.contains("torch 99.0.0")
            && loaded.contains("rack 1.0.0")
            && !loaded.contains("66.6.6"),
        "{loaded}"
    );
    for name in ["torch", "rack"] {
        let expected = format!(
            "policies/{name}.yaml:4: PolicyPlugin {name}: spec.source: decides which plugin has the name `{name}`, so the plugin file plugins/{name}.wasm is not loaded; rename the plugin, or remove the file"
        );
        assert!(skipped.contains(&expected), "{skipped}");
    }
    // Also if what is signed cannot be loaded: then nothing has the name, neither the file nor the built-in plugin.
    it.configure_controller(&Key::new(), "torch, rack");
    let (loaded, skipped) = it.started();
    for absent in ["torch ", "rack ", "66.6.6"] {
        assert!(!loaded.contains(absent), "{absent}: {loaded}");
    }
    assert!(
        skipped.contains("is signed with none of the keys")
            && skipped.contains("decides which plugin has the name `torch`"),
        "{skipped}"
    );
    // A command refuses it with the same words.
    let flags = ["--signers", "named.yaml", "--plugin-dir", "plugins"];
    it.configure("named.yaml", &it.key, "torch, rack", "");
    let error = it.error(&flags);
    assert!(
        error.contains("decides which plugin has the name `torch`"),
        "{error}"
    );
}

#[test]
fn controller_starts_without_a_plugin_that_is_not_available() {
    let it = Stored::new();
    let rack = it.rack();
    it.sign(&rack, &it.key);
    let lost = format!("{REGISTRY}/lost@sha256:{}", "0".repeat(64));
    it.declare_oci("lost", &lost, "");
    it.declare_oci("other", &lost.replace("lost@", "other@"), "");
    it.configure_controller(&it.key, "rack, lost");
    fs::remove_file(it.site.path().join("plugins/rack.wasm")).unwrap();
    let (loaded, skipped) = it.started();
    // `plugins.store` of the configuration has it, and nothing answers for the registry.
    assert!(
        loaded.contains("rack 1.0.0") && loaded.contains("torch "),
        "{loaded}"
    );
    assert!(
        !loaded.contains("lost ") && !loaded.contains("other "),
        "{loaded}"
    );
    let lines: Vec<_> = skipped.lines().collect();
    assert_eq!(lines.len(), 2, "{skipped}");
    for (line, name) in lines.iter().zip(["lost", "other"]) {
        let place = format!("policies/{name}.yaml:4: PolicyPlugin {name}: spec.source");
        assert!(
            line.contains(&place) && line.contains(&format!("{REGISTRY}/{name}")),
            "{line}"
        );
    }
    assert!(
        lines[1].contains("no signer of the controller's configuration may sign `other`"),
        "{skipped}"
    );
}

#[test]
fn signed_plugin_of_a_feature_gate_is_left_out_with_it() {
    let it = Stored::new();
    let reference = it.put("train-job-status", json!({"version": "99.0.0"}));
    it.sign(&reference, &it.key);
    it.declare_oci("train-job-status", &reference, "");
    it.configure("named.yaml", &it.key, "train-job-status", "");
    let (plan, _) = it.plan(&["--signers", "named.yaml"]);
    assert_eq!(version(&plan, "train-job-status"), "");
    let (plan, _) = it.plan(&[
        "--signers",
        "named.yaml",
        "--feature-gates=TrainJobStatus=true",
    ]);
    assert_eq!(version(&plan, "train-job-status"), "99.0.0");
}

#[test]
fn policies_that_are_compared_have_the_same_signers() {
    let it = Stored::new();
    let reference = it.rack();
    it.sign(&reference, &it.key);
    let write = |folder: &str, key: &Key| {
        it.configure(&format!("{folder}/config.yaml"), key, "rack", "");
        let source = it.site.path().join("policies/rack.yaml");
        fs::copy(source, it.site.path().join(folder).join("rack.yaml")).unwrap();
    };
    write("now", &it.key);
    write("next", &it.key);
    let args = [
        "plan",
        "--plugin-store",
        "store",
        "--policy",
        "now",
        "--against-policy",
        "next",
    ];
    assert_eq!(stderr(&it.site.run(&args)), "");
    write("next", &Key::new());
    let error = it.site.error(&args);
    assert!(
        error.contains("next/config.yaml:3: plugins: has other signers or repositories than now/config.yaml:3: plugins; remove one of the two"),
        "{error}"
    );
}

#[test]
fn kustomization_that_is_not_built_is_a_warning() {
    let it = Stored::new();
    let reference = it.rack();
    it.sign(&reference, &it.key);
    it.configure("policies/config.yaml", &it.key, "rack", "");
    let args = ["plan", "--plugin-store", "store", "--policy", "policies"];
    it.site.write(
        "policies/kustomization.yaml",
        "resources: [rack.yaml, config.yaml]\n",
    );
    assert_eq!(stderr(&it.site.run(&args)), "");
    it.site.write(
        "policies/kustomization.yaml",
        "resources: [rack.yaml, config.yaml]\npatches: []\n",
    );
    let printed = stderr(&it.site.run(&args));
    assert!(
        printed.contains("policies/kustomization.yaml") && printed.contains("the Kustomization is not built, so its patches has no effect; pass the output of `kubectl kustomize` instead"),
        "{printed}"
    );
}
