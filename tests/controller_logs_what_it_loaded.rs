//! The controller's log begins with what it runs: its version, its plugins, and the digest of its policy file.

use std::fs;

use trainyard_model::names::sha256_digest;

use crate::common::{command, root, stderr};

#[test]
fn one_line_names_version_plugins_and_policy_digest() {
    let folder = tempfile::tempdir().unwrap();
    let policy = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\n";
    let file = folder.path().join("policy.yaml");
    fs::write(&file, policy).unwrap();
    // Without a kubeconfig, the process ends once its plugins are loaded.
    let output = command(&["controller", "--log-format=text", "--kubeconfig=missing"])
        .arg("--policy")
        .arg(&file)
        .current_dir(folder.path())
        .env_remove("TRAINYARD_LOG")
        .output()
        .unwrap();
    let log = stderr(&output);
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.contains("plugins are loaded"))
        .collect();
    let [line] = lines[..] else {
        panic!("{log}");
    };
    for wanted in [
        format!("version=\"{}\"", env!("CARGO_PKG_VERSION")),
        format!("policy_digest=\"{}\"", sha256_digest(policy)),
        format!("policy_file=\"{}\"", file.display()),
    ] {
        assert!(line.contains(&wanted), "no {wanted}: {line}");
    }
    let plugins = fs::read_dir(root().join("plugins")).unwrap();
    let plugins = plugins.map(|plugin| plugin.unwrap().path());
    // Without those of a feature gate, which are off by default.
    let built_in: Vec<_> = plugins
        .filter(|plugin| plugin.join("manifest.json").exists())
        .filter(|plugin| !plugin.join("feature-gate").exists())
        .collect();
    assert!(built_in.len() > 5, "{built_in:?}");
    for plugin in built_in {
        let wanted = format!("{} ", plugin.file_name().unwrap().display());
        assert!(line.contains(&wanted), "no {wanted}: {line}");
    }
}

/// A plugin file that is missing or corrupt, and an entry of the policy file for it, stop only the TrainJobs that need the plugin.
#[test]
fn entry_of_a_missing_plugin_and_corrupt_file_are_logged_and_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let policy = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins:\n- name: nccl\n";
    fs::write(folder.path().join("policy.yaml"), policy).unwrap();
    let loads = |plugins: &[&str]| {
        let output = command(&["controller", "--log-format=text", "--kubeconfig=missing"])
            .args(["--policy", "policy.yaml"])
            .args(plugins)
            .current_dir(folder.path())
            .env_remove("TRAINYARD_LOG")
            .output()
            .unwrap();
        let log = stderr(&output);
        assert!(log.contains("plugins are loaded"), "{log}");
        let skipped = log.lines().filter(|line| line.contains("plugin skipped"));
        skipped.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    let skipped = loads(&[]);
    assert!(
        skipped.contains("policy.yaml:4")
            && skipped.contains("no loaded plugin has the name `nccl`"),
        "{skipped}"
    );
    fs::write(folder.path().join("nccl.wasm"), "corrupt").unwrap();
    let skipped = loads(&["--plugin", "nccl.wasm"]);
    assert!(skipped.contains("nccl.wasm"), "{skipped}");
}

/// Plugins are declared in one place, so a file that would have no effect is refused with what to do.
#[test]
fn files_and_plugins_of_the_cluster_are_not_mixed() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "controller.yaml",
        "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\nplugins: {source: Cluster}\n",
    );
    write(
        "policy.yaml",
        "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\n",
    );
    let run = |args: &[&str]| {
        let output = command(&["controller", "--log-format=text", "--kubeconfig=missing"])
            .args(["--config", "controller.yaml"])
            .args(args)
            .current_dir(folder.path())
            .env_remove("TRAINYARD_LOG")
            .output()
            .unwrap();
        assert!(!output.status.success());
        stderr(&output)
    };
    let log = run(&["--policy", "policy.yaml", "--plugin", "x.wasm"]);
    for wanted in [
        "policyFile (--policy): is policy.yaml, but plugins.source is Cluster, so plugins are declared by PolicyPlugins in the cluster; apply what `trainyard plugin convert` prints",
        "--plugin: is x.wasm, but plugins.source is Cluster, so only plugins of PolicyPlugins are loaded; put the file into the plugin directory",
    ] {
        assert!(log.contains(wanted), "{log}");
    }
    // Files of the plugin directory are loaded only if a PolicyPlugin names them.
    write("x.wasm", "corrupt");
    let log = run(&["--plugin-dir", ".", "--plugin-store", "store"]);
    assert!(
        log.contains("plugins are loaded") && !log.contains("plugin skipped"),
        "{log}"
    );
    assert!(
        log.contains("plugins of registries are kept store=store"),
        "{log}"
    );
}

/// With plugins of the cluster, a volume with files alone loads none of them.
#[test]
fn files_that_only_policy_plugins_of_the_cluster_load_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let config = "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\nplugins: {source: Cluster}\n";
    fs::write(folder.path().join("config.yaml"), config).unwrap();
    fs::create_dir(folder.path().join("plugins")).unwrap();
    for name in ["b.wasm", "a.wasm", "notes.txt"] {
        fs::write(folder.path().join("plugins").join(name), "not loaded").unwrap();
    }
    let log = |directory: &str| {
        let output = command(&["controller", "--log-format=text", "--kubeconfig=missing"])
            .args([
                "--config",
                "config.yaml",
                "--plugin-dir",
                directory,
                "--plugin-store",
                "store",
            ])
            .current_dir(folder.path())
            .env_remove("TRAINYARD_LOG")
            .output()
            .unwrap();
        stderr(&output)
    };
    let listed = log("plugins");
    assert!(
        listed.contains("files of the plugin directory are loaded only if a PolicyPlugin of the cluster names them in source.file files=\"a.wasm, b.wasm\"")
            && !listed.contains("plugin skipped"),
        "{listed}"
    );
    let missing = log("missing");
    assert!(
        missing.contains("the plugin directory cannot be read"),
        "{missing}"
    );
}
