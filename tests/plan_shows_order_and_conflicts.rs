//! `plan` prints the order of plugins as a flowchart or a self-contained page. Text of a manifest is escaped.

use std::{path::Path, process::Output};

use serde_json::{Value, json};

use crate::common::{
    case,
    declared_plugin::{claims, plugin, policy},
    expect, stderr, stdout, trainyard,
};

fn plan(folder: &Path, arguments: &[&str]) -> Output {
    trainyard(folder, &[&["plan"], arguments].concat())
}

/// Creates a folder with plugins that depend on each other, and one that can clash.
fn several() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    plugin(
        at,
        "devices",
        claims(&[], &["pod-sets[*].containers[*].env[DEVICES]"]),
    );
    plugin(at, "labels", claims(&[], &["labels[$job]"]));
    let reads = ["pod-sets[*].containers[*].env[DEVICES]"];
    plugin(at, "reader", claims(&reads, &["labels[team]"]));
    folder
}

/// Replaces the digits of digests.
fn without_digests(text: &str) -> String {
    let mut parts = text.split("sha256:");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    first
        + &rest
            .map(|part| format!("sha256:...{part}"))
            .collect::<String>()
}

#[test]
fn plan_of_all_built_in_plugins_fits_100_columns() {
    let folder = tempfile::tempdir().unwrap();
    let mut shown = Vec::new();
    for arguments in [&[][..], &["--claims"]] {
        let table = stdout(&plan(folder.path(), arguments));
        let too_wide: Vec<_> = table
            .lines()
            .filter(|line| line.chars().count() > 100)
            .collect();
        assert!(too_wide.is_empty(), "{too_wide:#?}");
        shown.push(without_digests(&table));
    }
    expect("plan.txt", &shown[0]);
    assert!(shown[1].starts_with(&shown[0]), "{}", shown[1]);
}

#[test]
fn plan_is_printed_as_a_flowchart() {
    let folder = several();
    let chart = stdout(&plan(
        folder.path(),
        &["--plugin-dir", ".", "-o", "mermaid"],
    ));
    let lines: Vec<_> = chart.lines().collect();
    assert_eq!(lines[0], "flowchart TB");
    assert!(chart.contains("[\"devices<br/>1.0.0\"]"), "{chart}");
    let path = "pod-sets[*].containers[*].env[DEVICES]";
    let edge = |line: &&&str| line.contains("-->") && line.contains(&format!("|\"{path}\"|"));
    assert_eq!(lines.iter().filter(edge).count(), 1, "{chart}");
    let clash = |line: &&&str| line.contains("-.-|\"possible clash&colon; labels");
    assert_eq!(lines.iter().filter(clash).count(), 1, "{chart}");
}

#[test]
fn plan_is_printed_as_a_self_contained_page() {
    let folder = several();
    policy(
        folder.path(),
        "[{name: reader, disabled: true}, {name: labels, excludes: [devices]}]",
    );
    let arguments = ["--plugin-dir", ".", "-o", "html", "--policy", "policy.yaml"];
    let page = stdout(&plan(folder.path(), &arguments));
    for part in [
        "default-src 'none'",
        "<svg",
        "pod-sets[*].containers[*].env[PET_*]",
        "all its claims (built-in plugin)",
        "<strong>reader</strong> is disabled",
        "<strong>devices</strong> and <strong>labels</strong> are never active together",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for outside in [
        "<script",
        "<link",
        "<img",
        "@import",
        "src=",
        "http://",
        "https://",
        "javascript:",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.ends_with("</html>\n"));
    assert_eq!(page, stdout(&plan(folder.path(), &arguments)));
}

#[test]
fn plan_is_printed_for_each_train_job() {
    let folder = case("torch-two-jobs");
    let page = stdout(&plan(&folder, &["-f", "input.yaml", "-o", "html"]));
    assert_eq!(page.matches("<section>").count(), 2);
    assert_eq!(page.matches("<!doctype html>").count(), 1);
    let chart = stdout(&plan(&folder, &["-f", "input.yaml", "-o", "mermaid"]));
    assert_eq!(chart.matches("subgraph ").count(), 2);
    assert_eq!(chart.matches("flowchart TB").count(), 1);
}

/// Claims and keys can contain any text.
#[test]
fn manifest_text_is_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = [
        r#"labels["<script>alert(1)</script>"]"#,
        r#"labels["</style><img src=x onerror=alert(1)>"]"#,
        r#"labels["a\"]; click n0p0 call alert() %% `x`"]"#,
        r#"labels["&lt;\" onload=\"x"]"#,
    ];
    plugin(folder.path(), "one", claims(&[], &hostile));
    plugin(folder.path(), "two", claims(&hostile, &[]));
    for form in ["html", "mermaid", "table", "json"] {
        let text = stdout(&plan(
            folder.path(),
            &["--plugin-dir", ".", "--claims", "-o", form],
        ));
        if form == "html" {
            assert!(text.contains("&lt;script&gt;alert(1)"), "{text}");
            for tag in ["<script", "<img", "</style><"] {
                assert!(!text.contains(tag), "{tag}");
            }
            assert_eq!(text.matches("</style>").count(), 1);
            assert!(!text.contains("\" onload=") && text.contains("&amp;lt;"));
        }
        if form == "mermaid" {
            let is_own = |line: &str| {
                line == "flowchart TB"
                    || line == "direction TB"
                    || line == "end"
                    || line.starts_with("subgraph n0")
                    || line.starts_with("n0p")
            };
            assert!(text.lines().all(is_own), "{text}");
            assert!(!text.replace("<br/>", "").contains(['<', '`', '%']));
            // Text cannot end a label early: a line has at most one title, name or label.
            assert!(
                text.lines()
                    .all(|line| matches!(line.matches('"').count(), 0 | 2)),
                "{text}"
            );
        }
    }
}

#[test]
fn digest_is_printed_and_independent_of_load_order() {
    let folder = several();
    let digest = |arguments: &[&str]| {
        let table = stdout(&plan(folder.path(), arguments));
        let line = table
            .lines()
            .find_map(|line| line.strip_prefix("digest: "))
            .unwrap()
            .to_owned();
        let json = stdout(&plan(folder.path(), &[arguments, &["-o", "json"]].concat()));
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json[0]["digest"], *line);
        line
    };
    let one = digest(&["--plugin", "devices.wasm", "--plugin", "reader.wasm"]);
    let other = digest(&["--plugin", "reader.wasm", "--plugin", "devices.wasm"]);
    assert_eq!(one, other);
    assert_ne!(one, digest(&["--plugin", "reader.wasm"]));
}

/// Returns the texts in backticks with this prefix.
fn quoted<'t>(text: &'t str, start: &str) -> Vec<&'t str> {
    let parts = text.split('`').skip(1).step_by(2);
    parts.filter(|part| part.starts_with(start)).collect()
}

#[test]
fn suggested_policy_lines_resolve_the_conflict() {
    let folder = tempfile::tempdir().unwrap();
    let writes = ["labels[a]", "labels[b]"];
    plugin(folder.path(), "first", claims(&[], &writes));
    plugin(folder.path(), "on", claims(&[], &writes));
    let args = [
        "--plugin",
        "first.wasm",
        "--plugin",
        "on.wasm",
        "--policy",
        "policy.yaml",
    ];
    policy(folder.path(), "[]");
    let error = stderr(&plan(folder.path(), &args));
    assert!(
        error.contains("both write `labels[a]` and `labels[b]`"),
        "{error}"
    );
    let parts: Vec<_> = error.split('`').collect();
    let lines = parts.windows(3).filter(|around| around[1] == " for ");
    let lines: Vec<_> = lines.map(|around| (around[0], around[2])).collect();
    assert_eq!(lines.len(), 5, "{error}");
    for (line, name) in lines {
        policy(folder.path(), &format!("[{{name: \"{name}\", {line}}}]"));
        let output = plan(folder.path(), &args);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
    }
    plugin(
        folder.path(),
        "scheduled",
        claims(&[], &["pod-sets[*].priority-class"]),
    );
    let args = ["--plugin", "scheduled.wasm", "--policy", "policy.yaml"];
    policy(folder.path(), "[]");
    let error = stderr(&plan(folder.path(), &args));
    let [grants] = quoted(&error, "grants: ")[..] else {
        unreachable!("{error}")
    };
    policy(folder.path(), &format!("[{{name: scheduled, {grants}}}]"));
    let output = plan(folder.path(), &args);
    assert!(output.status.success(), "{grants}: {}", stderr(&output));
}

#[test]
fn misspelled_name_in_a_manifest_order_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let order = json!({"after": ["flux", "torhc"], "before": ["another-vendors"]});
    plugin(folder.path(), "last", order);
    let output = plan(folder.path(), &["--plugin", "last.wasm"]);
    let warnings = stderr(&output);
    assert!(output.status.success(), "{warnings}");
    assert_eq!(warnings.lines().count(), 1, "{warnings}");
    let problem =
        "`after[1]` in the manifest names `torhc`, which is not loaded; did you mean `torch`?";
    assert!(warnings.contains(problem), "{warnings}");
}
