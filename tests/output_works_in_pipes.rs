//! Standard output contains only the result: nothing if the input is refused, and no color if it is not a terminal.

use std::process::{Command, Output};

use crate::common::{case, command, stdout, test_plugin};

/// The crate of a plugin.
const TEMPLATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/sidecar");

/// Runs a command in a case's folder, in an environment that allows colors.
fn trainyard(name: &str, args: &[&str]) -> Output {
    command(args)
        .current_dir(case(name))
        .env_remove("NO_COLOR")
        .env("TERM", "xterm-256color")
        .output()
        .unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn output_without_a_terminal_has_no_color() {
    let team = test_plugin("team");
    for (case, args) in [
        ("torch-two-jobs", &["render", "-f", "input.yaml"][..]),
        ("torch-two-jobs", &["explain", "-f", "input.yaml"]),
        ("torch-two-jobs", &["plan", "-f", "input.yaml"]),
        ("torch-two-jobs", &["diff", "-f", "input.yaml"]),
        ("patch-kueue-finds-nothing", &["render", "-f", "input.yaml"]),
        ("error-all-at-once", &["render", "-f", "input.yaml"]),
        ("error-all-at-once", &["plan", "--nothing"]),
        (
            "torch-two-jobs",
            &["plan", "-f", "input.yaml", "--against", &team],
        ),
        ("torch-two-jobs", &["plugin", "diff", &team, &team]),
        ("torch-two-jobs", &["plugin", "pull", "oci:missing"]),
        ("torch-two-jobs", &["plugin", "apply", "-f", "input.yaml"]),
        (
            "torch-two-jobs",
            &["plugin", "push", &team, "no-registry:1"],
        ),
        ("torch-two-jobs", &["render", "--help"]),
        ("torch-two-jobs", &["runtimes"]),
        ("torch-two-jobs", &["runtimes", "--all"]),
        ("torch-two-jobs", &["runtimes", "torch"]),
        ("torch-two-jobs", &["plugin", "check", TEMPLATE]),
        ("torch-two-jobs", &["plugin", "check", "."]),
        ("torch-two-jobs", &["plugin", "test", &team, "--cases", "."]),
        (
            "torch-two-jobs",
            &["plugin", "claims", &team, "--cases", "."],
        ),
    ] {
        let output = trainyard(case, args);
        let both = [output.stdout, output.stderr].concat();
        assert!(!both.is_empty(), "{args:?}");
        assert!(!both.contains(&0x1b), "{args:?}: {}", text(both));
    }
}

#[test]
fn refused_plugin_prints_nothing_to_standard_output() {
    for command in ["render", "explain", "plan"] {
        for plugin in ["input.yaml", "/dev/zero", "gone.wasm", "."] {
            let output = trainyard(
                "torch-two-jobs",
                &[command, "-f", "input.yaml", "--plugin", plugin],
            );
            assert_eq!(output.status.code(), Some(1), "{command} {plugin}");
            assert!(output.stdout.is_empty(), "{command} {plugin}");
            let error = text(output.stderr);
            assert!(error.starts_with(&format!("error: {plugin}: ")), "{error}");
        }
    }
}

#[test]
fn plan_is_printed_for_each_train_job() {
    let plan = |args: &[&str]| {
        let output = trainyard(
            "torch-two-jobs",
            &[&["plan", "-f", "input.yaml"], args].concat(),
        );
        assert!(output.status.success(), "{}", text(output.stderr));
        text(output.stdout)
    };
    let reports: serde_json::Value = serde_json::from_str(&plan(&["-o", "json"])).unwrap();
    let reports = reports.as_array().unwrap();
    assert_eq!(reports.len(), 2);
    let table = plan(&["--claims"]);
    for report in reports {
        assert_eq!(report["orders"], serde_json::json!([[["torch"]]]));
        let job = report["trainJob"].as_str().unwrap();
        assert!(
            table.contains(&format!("TrainJob {job}\norder: torch\n")),
            "{table}"
        );
    }
    assert!(table.contains("\ntorch writes "), "{table}");
}

#[test]
fn plan_skips_what_render_skips() {
    let rendered = trainyard("plain-multikueue", &["render", "-f", "input.yaml"]);
    let planned = trainyard("plain-multikueue", &["plan", "-f", "input.yaml"]);
    let warning = text(planned.stderr);
    assert!(warning.contains("spec.managedBy"), "{warning}");
    assert_eq!(warning, text(rendered.stderr));
    assert!(planned.status.success());
}

#[test]
fn completions_exist_for_every_shell() {
    for (shell, begins) in [
        ("bash", "_trainyard()"),
        ("zsh", "#compdef trainyard"),
        ("fish", "# Print an optspec for argparse"),
        ("elvish", "\nuse builtin;"),
        (
            "powershell",
            "\nusing namespace System.Management.Automation",
        ),
    ] {
        let output = trainyard("torch-two-jobs", &["completions", shell]);
        assert!(output.status.success() && output.stderr.is_empty());
        let script = text(output.stdout);
        assert!(script.starts_with(begins), "{shell}: {script}");
        for command in [
            "render",
            "validate",
            "policy-schema",
            "config-schema",
            "runtimes",
        ] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn usage_errors_have_their_own_exit_code() {
    let output = trainyard("torch-two-jobs", &["render", "-n", "Not-A-Namespace"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}

/// Compiled plugins are cached in `--cache-dir`, even if the user has no home.
#[test]
fn cache_folder_works_without_a_home() {
    let folder = tempfile::tempdir().unwrap();
    let output = command(&["render", "-f", "input.yaml", "--cache-dir"])
        .arg(folder.path())
        .current_dir(case("torch-two-jobs"))
        .env_remove("HOME")
        .env_remove("XDG_CACHE_HOME")
        .output()
        .unwrap();
    stdout(&output);
    let compiled = std::fs::read_dir(folder.path().join("compiled")).unwrap();
    assert_eq!(compiled.count(), 1, "the plugin that was called");
    assert!(folder.path().join("cache.key").is_file());
}

/// An unusable cache leads only to a warning.
#[test]
fn unusable_cache_folder_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = trainyard(
        "torch-two-jobs",
        &["plan", "--cache-dir", file.to_str().unwrap()],
    );
    let printed = text(output.stderr);
    assert!(output.status.success() && !output.stdout.is_empty());
    let wanted = format!(
        "warning: compiled plugins cannot be cached; plugins are compiled each time (folder: {}, error: ",
        file.display()
    );
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert!(printed.starts_with(&wanted), "{printed}");
}

/// The terminals of some CI systems have no size.
#[test]
fn terminal_without_a_width_gets_full_columns() {
    let command = format!(
        "stty cols 0 && {} explain -f input.yaml -o wide",
        env!("CARGO_BIN_EXE_trainyard")
    );
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(case("torch-two-jobs"))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let printed = text(output.stdout);
    assert!(output.status.success(), "{printed}");
    let header = printed.lines().find(|line| line.starts_with("FIELD "));
    assert!(
        header.is_some_and(|line| line.contains(" SET BY ") && line.trim_end().ends_with("WHY")),
        "{printed}"
    );
}

/// The statistics do not change the objects on standard output.
#[test]
fn stats_are_printed_to_standard_error_only() {
    let args = ["render", "-f", "input.yaml"];
    let plain = trainyard("torch-two-jobs", &args);
    let with_stats = trainyard("torch-two-jobs", &[&args[..], &["--stats"]].concat());
    assert_eq!(with_stats.stdout, plain.stdout);
    assert!(plain.stderr.is_empty(), "{}", text(plain.stderr));
    let stats = text(with_stats.stderr);
    let mut lines = stats
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let header = [
        "TRAINJOB", "PLUGIN", "PHASE", "FUEL", "BYTES", "WRITES", "TIME", "OUTCOME",
    ];
    assert_eq!(lines.next().unwrap(), header, "{stats}");
    let calls: Vec<_> = lines.collect();
    let jobs: Vec<_> = calls.iter().map(|call| call[0]).collect();
    assert_eq!(jobs.len(), 2, "{stats}");
    assert!(jobs[0] < jobs[1], "{stats}");
    for call in calls {
        assert_eq!(
            (call[1], call[2], call[7]),
            ("torch", "transform", "ok"),
            "{stats}"
        );
        let counts = [call[3], call[4], call[5]].map(|count| count.parse::<u64>().unwrap());
        assert!(counts.iter().all(|count| *count > 0), "{stats}");
        assert!(call[6].ends_with('s'), "{stats}");
    }
}
