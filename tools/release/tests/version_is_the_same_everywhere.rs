//! Trainyard's version stands in `Cargo.toml`, and every other file that has to repeat it has the same. `tools/version.sh` changes all.

use crate::common::read;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns what stands after a key, up to the end of the line, without quotation marks.
fn values<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    let lines = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(key));
    lines.map(|value| value.trim().trim_matches('"')).collect()
}

#[test]
fn files_repeat_the_version_of_the_workspace() {
    let manifest = read("Cargo.toml");
    let published: Vec<_> = manifest
        .split("version = \"=")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    assert_eq!(published, [VERSION; 8]);
    let chart = read("charts/trainyard/Chart.yaml");
    assert_eq!(values(&chart, "version:"), [VERSION]);
    assert_eq!(values(&chart, "appVersion:"), [VERSION]);
    assert_eq!(
        values(&read("deploy/kustomization.yaml"), "newTag:"),
        [VERSION]
    );
    let image = format!("trainyard:{VERSION}");
    assert_eq!(values(&read("deploy/deployment.yaml"), "image:"), [image]);
}

#[test]
fn documented_commands_have_the_version() {
    let pages = [
        "deploy/README.md",
        "charts/trainyard/README.md",
        "docs/add-a-plugin.md",
        "docs/gitops.md",
    ];
    for page in pages {
        let text = read(page);
        let places = [
            "trainyard:",
            "trainyard-",
            "image-",
            "targetRevision: v",
            "--version ",
        ];
        let found = places.iter().flat_map(|place| text.split(place).skip(1));
        let numbers: Vec<_> = found
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            .collect();
        assert!(!numbers.is_empty(), "{page}");
        for rest in numbers {
            assert!(rest.starts_with(VERSION), "{page}: {rest:.20}");
        }
    }
}
