//! The versions in docs/compatibility.md are those that the tests run with.

use crate::common::read;

/// Returns the version of a Go module in a `go.mod`, without the `v`.
fn module(file: &str, name: &str) -> String {
    let text = read(file);
    let mut versions = text.lines().filter_map(|line| {
        let mut words = line
            .trim()
            .trim_start_matches("require ")
            .split_whitespace();
        (words.next() == Some(name)).then(|| words.next()).flatten()
    });
    let version = versions.next().unwrap_or_else(|| panic!("{file}: {name}"));
    version.trim_start_matches('v').to_owned()
}

#[test]
fn table_has_the_versions_of_the_modules() {
    let page = read("docs/compatibility.md");
    for (row, file, name) in [
        (
            "Kubernetes",
            "tests/cluster/tools/go.mod",
            "k8s.io/kubernetes",
        ),
        (
            "etcd",
            "tests/cluster/tools/go.mod",
            "go.etcd.io/etcd/server/v3",
        ),
        ("JobSet", "tests/cluster/tools/go.mod", "sigs.k8s.io/jobset"),
        ("Kueue", "tests/reference/kueue/go.mod", "sigs.k8s.io/kueue"),
        (
            "Kueue",
            "tests/cluster/kueue/0.19/go.mod",
            "sigs.k8s.io/kueue",
        ),
        (
            "Kueue",
            "tests/cluster/kueue/0.15/go.mod",
            "sigs.k8s.io/kueue",
        ),
        (
            "kube-scheduler",
            "tests/cluster/scheduler/go.mod",
            "k8s.io/kubernetes",
        ),
        (
            "scheduler-plugins",
            "tests/cluster/scheduler/go.mod",
            "sigs.k8s.io/scheduler-plugins",
        ),
        (
            "Kubeflow Trainer",
            "tests/reference/controller/go.mod",
            "github.com/kubeflow/trainer/v2",
        ),
        ("Helm", "tests/cluster/helm/3/go.mod", "helm.sh/helm/v3"),
        ("Helm", "tests/cluster/helm/4/go.mod", "helm.sh/helm/v4"),
        (
            "kustomize",
            "tests/cluster/tools/go.mod",
            "sigs.k8s.io/kustomize/kustomize/v5",
        ),
    ] {
        let version = module(file, name);
        let is_row = |line: &&str| line.starts_with(&format!("| {row} |"));
        let mut lines = page.lines().filter(is_row);
        assert!(
            lines.any(|line| line.contains(&version)),
            "{file} has {version}, which no row {row} has"
        );
    }
}

/// The package of the chart has JobSet's chart of this module.
#[test]
fn chart_installs_the_jobset_that_is_tested() {
    let version = module("tests/cluster/tools/go.mod", "sigs.k8s.io/jobset");
    let values = read("charts/trainyard/values.yaml");
    let image = format!("    repository: registry.k8s.io/jobset/jobset\n    tag: v{version}\n");
    assert!(values.contains(&image), "{image}");
}
