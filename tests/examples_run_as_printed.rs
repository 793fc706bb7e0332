//! The commands in `--help` and the documentation run as printed, and the README shows their real output. The exit code of each, the first
//! line of its standard output and the last one of its standard error are in `tests/expected/examples_run_as_printed.txt`.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Output},
};

use trainyard_cluster::with_manifest;

use crate::common::{expect, root};

/// Creates a folder with the files that the examples name.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let example = root().join("examples/torch-llama");
    fs::copy(example.join("trainjob.yaml"), path("trainjob.yaml")).unwrap();
    fs::create_dir(path("trainjobs")).unwrap();
    fs::copy(path("trainjob.yaml"), path("trainjobs/llama-sft.yaml")).unwrap();
    fs::create_dir(path("runtimes")).unwrap();
    fs::copy(example.join("runtime.yaml"), path("runtimes/runtime.yaml")).unwrap();
    fs::create_dir(path("plugins")).unwrap();
    std::os::unix::fs::symlink(root().join("examples"), path("examples")).unwrap();
    for name in ["new", "old", "plugin", "my-plugin", "plugins/team"] {
        fs::write(path(&format!("{name}.wasm")), plugin()).unwrap();
    }
    let policy = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyPlugin\nmetadata: {name: torch}\nspec: {}\n";
    fs::create_dir(path("policies")).unwrap();
    for name in ["policy.yaml", "new-policy.yaml", "policies/torch.yaml"] {
        fs::write(path(name), policy).unwrap();
    }
    let controller = "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\nplugins: {unsigned: [registry.example.com/*]}\n";
    fs::write(path("controller.yaml"), controller).unwrap();
    let old = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{name: torch}]\n";
    fs::write(path("old-policy.yaml"), old).unwrap();
    folder
}

/// Returns a plugin that no runtime of the examples activates.
fn plugin() -> Vec<u8> {
    let manifest = r#"{"name": "new", "version": "1.0.0", "contract": "1.0.0", "activeWhen": "plugins", "phases": ["transform"]}"#;
    let torch = fs::read(concat!(env!("OUT_DIR"), "/torch.wasm")).unwrap();
    with_manifest(&torch, manifest).unwrap()
}

/// Runs a line in a shell, without a cluster.
fn run(folder: &Path, line: &str) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_trainyard"));
    let search = std::env::var("PATH").unwrap();
    Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .env(
            "PATH",
            format!("{}:{search}", binary.parent().unwrap().display()),
        )
        .env("HOME", folder)
        // Otherwise the cache of others would be used with this home's key.
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_STATE_HOME")
        .env("KUBECONFIG", folder.join("no-kubeconfig"))
        .env_remove("KUBERNETES_SERVICE_HOST")
        .output()
        .unwrap()
}

/// Returns the commands in a text.
fn commands(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    let commands = lines.filter(|line| line.starts_with("trainyard "));
    // `plugin_guide_works` and `new_plugins_work` test the commands that need the SDK, and `commands_accept_only_signed_plugins` what needs a key.
    let is_tested = |line: &&str| {
        let tested = [
            "build", "check", "claims", "conform", "new", "test", "verify",
        ];
        let command = line.strip_prefix("trainyard plugin ");
        !command.is_some_and(|command| tested.iter().any(|tested| command.starts_with(tested)))
    };
    commands.filter(is_tested).collect()
}

/// Runs each command. Commands that need a cluster must report that there is none, and all others must succeed. Returns what they print.
fn all_run(text: &str, at_least: usize) -> String {
    let mut results = String::new();
    let folder = folder();
    let commands = commands(text);
    assert!(commands.len() >= at_least, "{commands:#?}");
    for line in commands {
        let is_diff = line.starts_with("trainyard diff");
        let is_controller =
            line.starts_with("trainyard controller") && !line.contains("--print-config");
        let is_for_a_cluster = ["trainjob/", "--cluster", "support-bundle", "plugin apply"]
            .iter()
            .any(|needs| line.contains(needs))
            || is_controller
            || is_diff && !line.contains(" -f ");
        let output = run(folder.path(), line);
        let printed = String::from_utf8_lossy(&output.stderr);
        let wanted: &[i32] = match (is_for_a_cluster, is_diff) {
            (true, true) => &[2],
            (true, false) => &[1],
            // Rows may concern the examples.
            (false, true) => &[0, 1],
            (false, false) => &[0],
        };
        let code = output.status.code().unwrap();
        assert!(wanted.contains(&code), "{line}: {code}\n{printed}");
        assert!(
            is_for_a_cluster || !printed.contains("error"),
            "{line}\n{printed}"
        );
        results += &format!("$ {line}\nexit code {code}\n");
        let said = String::from_utf8_lossy(&output.stdout);
        let lines = [said.lines().next(), printed.lines().last()];
        for line in lines.into_iter().flatten() {
            let line = line.replace(&folder.path().display().to_string(), "FOLDER");
            results += &without_digests(&line);
            results.push('\n');
        }
        results.push('\n');
    }
    results
}

#[test]
fn examples_in_the_help_and_the_documentation_run() {
    let help = run(Path::new("."), "trainyard --help");
    let mut results = all_run(&String::from_utf8(help.stdout).unwrap(), 5);
    for (file, at_least) in [
        ("docs/command-line.md", 20),
        ("docs/plan.md", 3),
        ("docs/replay.md", 6),
        ("docs/start.md", 2),
        ("docs/train.md", 5),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let blocks = text.split("```sh\n").skip(1);
        let blocks: Vec<_> = blocks
            .filter_map(|block| block.split("```").next())
            .collect();
        results += &format!("# {file}\n\n{}", all_run(&blocks.concat(), at_least));
    }
    expect("examples_run_as_printed.txt", &results);
}

/// Removes the digests of plugins and the sizes after them, which differ between toolchains, so the README has an ellipsis instead.
fn without_digests(text: &str) -> String {
    let mut parts = text.split("sha256:");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| {
        let part = part.trim_start_matches(|c: char| c.is_ascii_hexdigit() || c == '…');
        match part.strip_prefix("), ") {
            Some(size) => format!(
                "), {}",
                size.trim_start_matches(|c: char| c.is_ascii_digit())
            ),
            None => part.to_owned(),
        }
    });
    [first]
        .into_iter()
        .chain(rest)
        .collect::<Vec<_>>()
        .join("sha256:")
}

#[test]
fn output_in_the_readme_is_real() {
    let folder = folder();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, block) = readme.split_once("```console\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let runs: Vec<_> = block.split("$ ").skip(1).collect();
    assert_eq!(runs.len(), 2, "{block}");
    for printed in runs {
        let (line, expected) = printed.split_once('\n').unwrap();
        let output = run(folder.path(), line);
        let real = [output.stdout, output.stderr].concat();
        let real = String::from_utf8(real).unwrap();
        assert_eq!(without_digests(&real), without_digests(expected), "{line}");
    }
}

/// Checks a TrainJob with the shipped runtimes.
fn is_valid(folder: &Path, file: &str) {
    let line = format!("trainyard runtimes --all | trainyard validate -f {file} -f -");
    let output = run(folder, &line);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.is_empty(), "{printed}");
}

/// The pages with which an installation begins have the same commands. The TrainJob that checks it is valid with the shipped runtimes.
#[test]
fn hello_is_valid_with_the_shipped_runtimes() {
    let page = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let (manual, start) = (page("deploy/README.md"), page("docs/start.md"));
    let hello = "examples/torch-hello/trainjob.yaml";
    let create = format!("kubectl create -f {hello}");
    assert!(manual.contains(&create) && start.contains(&create));
    let (_, install) = manual.split_once("```sh\n").unwrap();
    let install = install.split_once("```").unwrap().0.lines();
    for line in install {
        assert!(start.contains(line.trim()), "docs/start.md lacks `{line}`");
    }
    is_valid(folder().path(), hello);
}

/// The TrainJob in the page for ML engineers is valid with the shipped runtimes.
#[test]
fn written_train_job_is_valid_with_the_shipped_runtimes() {
    let page = fs::read_to_string(root().join("docs/train.md")).unwrap();
    let (_, yaml) = page.split_once("```yaml\n").unwrap();
    let (yaml, _) = yaml.split_once("```").unwrap();
    let folder = folder();
    fs::write(folder.path().join("written.yaml"), yaml).unwrap();
    is_valid(folder.path(), "written.yaml");
}

/// The folders of the shipped runtimes work with `kubectl apply -k` and with `-f`.
#[test]
fn examples_render_with_the_shipped_runtimes() {
    let files = trainyard_plugin_folders::runtimes(&root()).unwrap();
    let folders: BTreeSet<_> = files.values().map(|file| file.parent().unwrap()).collect();
    for runtimes in folders {
        let line = format!("trainyard validate -f '{}'", runtimes.display());
        let output = run(folder().path(), &line);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && printed.is_empty(), "{printed}");
    }
}
