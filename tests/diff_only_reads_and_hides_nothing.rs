//! `trainyard diff` only lists and gets what it compares, never Secrets, and reports what it cannot read. The API server is a stub; a test in
//! tests/cluster has a real one, with the reference.

use std::{fs, process::Output};

use serde_json::{Value, json};

use crate::common::{
    api_server::{serve, status},
    stderr, trainyard,
};

const TRAINER: &str = "/apis/trainer.kubeflow.org/v1alpha1";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Compares the cluster of this server, and returns the output with the requests.
fn diff(
    answer: impl Fn(&str) -> (u16, Value) + Send + 'static,
    arguments: &[&str],
) -> (Output, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let (url, calls) = serve(move |path, _| answer(path));
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": {}}],
    });
    fs::write(folder.path().join("kubeconfig"), kubeconfig.to_string()).unwrap();
    let command = ["diff", "--kubeconfig", "kubeconfig"];
    let output = trainyard(folder.path(), &[&command[..], arguments].concat());
    (output, calls.try_iter().collect())
}

fn plain(path: &str) -> &str {
    path.split('?').next().unwrap()
}

fn list(items: Value) -> (u16, Value) {
    (
        200,
        json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}),
    )
}

fn runtime() -> Value {
    json!({
        "metadata": {"name": "plain"},
        "spec": {"template": {"spec": {"replicatedJobs": [{
            "name": "node",
            "template": {
                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                "spec": {"template": {"spec": {"containers": [{"name": "node", "image": "busybox"}]}}},
            },
        }]}}},
    })
}

fn job(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "ml", "uid": name}, "spec": {"runtimeRef": {"name": "plain"}}})
}

/// A cluster with two pages of TrainJobs and no JobSets.
fn cluster(path: &str) -> (u16, Value) {
    match plain(path).strip_prefix(TRAINER) {
        Some("/clustertrainingruntimes") => list(json!([runtime()])),
        Some("/trainingruntimes" | "/namespaces/ml/trainingruntimes") => list(json!([])),
        Some("/trainjobs") if path.contains("continue=second") => list(json!([job("b")])),
        Some("/trainjobs") => {
            let (code, mut first) = list(json!([job("a")]));
            first["metadata"]["continue"] = "second".into();
            (code, first)
        }
        Some("/namespaces/ml/trainjobs") => list(json!([job("a")])),
        _ if plain(path).contains("podgroups") => status(404, "NotFound"),
        _ => list(json!([])),
    }
}

#[test]
fn all_pages_are_compared_and_no_secret_is_requested() {
    let (output, calls) = diff(cluster, &["-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let objects = report["objects"].as_array().unwrap();
    let names: Vec<_> = objects
        .iter()
        .map(|object| object["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["plain", "a", "b"]);
    let kinds: Vec<_> = calls.iter().map(|path| plain(path)).collect();
    assert_eq!(
        kinds,
        [
            &format!("{TRAINER}/clustertrainingruntimes"),
            &format!("{TRAINER}/trainingruntimes"),
            &format!("{TRAINER}/trainjobs"),
            &format!("{TRAINER}/trainjobs"),
            "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
            "/api/v1/configmaps",
            "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
            "/apis/scheduling.volcano.sh/v1beta1/podgroups",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trainjobs.trainer.kubeflow.org",
            &format!("{WEBHOOKS}/validator.trainer.kubeflow.org"),
            &format!("{WEBHOOKS}/jobset-validating-webhook-configuration"),
        ]
    );
}

/// An object of a cluster that belongs to a Helm release in the namespace of this name.
fn of_release(namespace: &str, prune: &str) -> (u16, Value) {
    let annotations = json!({
        "meta.helm.sh/release-name": "trainer", "meta.helm.sh/release-namespace": namespace, "helm.sh/resource-policy": "keep",
        "kustomize.toolkit.fluxcd.io/prune": prune,
    });
    (
        200,
        json!({"metadata": {"name": "any", "annotations": annotations}}),
    )
}

#[test]
fn helm_releases_that_would_delete_crds_or_jobset_are_noted() {
    let crd = "the CRDs belong to the Helm release trainer in the namespace kubeflow-system: do not uninstall it";
    let jobset = "JobSet belongs to the Helm release trainer in the namespace kubeflow-system: do not uninstall it";
    let (theirs, ours) = (("kubeflow-system", ""), ("kubeflow-system", "disabled"));
    for (crd_of, jobset_of, expected) in [
        (theirs, "kubeflow-system", vec![crd, jobset]),
        (theirs, "jobset-system", vec![crd]),
        // Trainyard's chart keeps its CRDs.
        (ours, "kubeflow-system", vec![jobset]),
        (ours, "jobset-system", vec![]),
    ] {
        for arguments in [&[][..], &["--back"]] {
            let answer = move |path: &str| match plain(path) {
                path if path.contains("/customresourcedefinitions/") => {
                    of_release(crd_of.0, crd_of.1)
                }
                path if path.ends_with("/jobset-validating-webhook-configuration") => {
                    of_release(jobset_of, "")
                }
                path if path.starts_with(WEBHOOKS) => status(404, "NotFound"),
                _ => cluster(path),
            };
            let (output, _) = diff(answer, &[arguments, &["-o", "json"]].concat());
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            let notes = report["notes"].as_array().unwrap();
            let notes: Vec<_> = notes.iter().map(|note| note.as_str().unwrap()).collect();
            assert_eq!(notes.len(), expected.len(), "{notes:?}");
            let begins = |(note, expected): (&&str, &&str)| note.starts_with(expected);
            assert!(notes.iter().zip(&expected).all(begins), "{notes:?}");
        }
    }
}

#[test]
fn helm_releases_that_may_not_be_read_are_noted() {
    let (output, _) = diff(
        |path| match plain(path).starts_with(WEBHOOKS) {
            true => status(403, "Forbidden"),
            false => cluster(path),
        },
        &[],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let note = "note: ValidatingWebhookConfiguration validator.trainer.kubeflow.org cannot be read: the server says Forbidden; before you";
    assert!(text.contains(note), "{text}");
}

#[test]
fn pages_that_are_too_large_are_requested_with_fewer_objects() {
    let (output, calls) = diff(
        |path| {
            let is_large = path.starts_with(&format!("{TRAINER}/trainjobs?"))
                && path.contains("continue=second")
                && (path.contains("limit=500") || path.contains("limit=250"));
            match is_large {
                true => (200, " ".repeat((64 << 20) + 1).into()),
                false => cluster(path),
            }
        },
        &[],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}{:?}", output.stderr);
    assert!(text.contains("2 TrainJobs: 2 do not differ"), "{text}");
    let second = calls.iter().filter(|path| path.contains("continue=second"));
    let limits: Vec<_> = second
        .map(|path| {
            path.split("limit=")
                .nth(1)
                .unwrap()
                .split('&')
                .next()
                .unwrap()
        })
        .collect();
    assert_eq!(limits, ["500", "250", "125"]);
}

#[test]
fn one_namespace_can_be_compared_alone() {
    let (output, calls) = diff(
        |path| match plain(path).strip_prefix(TRAINER) {
            Some("/clustertrainingruntimes") => status(403, "Forbidden"),
            _ => cluster(path),
        },
        &["-n", "ml"],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    // The runtime of the TrainJob is not known, so nothing is known of it.
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("not compared: cannot list the kind ClusterTrainingRuntime"),
        "{text}"
    );
    let others = calls
        .iter()
        .filter(|path| !path.contains("/namespaces/ml/"));
    assert_eq!(others.count(), 1, "{calls:?}");
}

#[test]
fn namespace_without_train_jobs_is_reported() {
    let (output, _) = diff(
        |path| match plain(path).strip_prefix(TRAINER) {
            Some("/namespaces/typo/trainingruntimes" | "/namespaces/typo/trainjobs") => {
                list(json!([]))
            }
            _ => cluster(path),
        },
        &["-n", "typo"],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let note = "note: there are no TrainJobs in the namespace typo";
    assert!(text.contains(note), "{text}");
}

#[test]
fn cluster_without_the_crds_is_an_error() {
    let (output, _) = diff(|_| status(404, "NotFound"), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let error = stderr(&output);
    for kind in ["ClusterTrainingRuntime", "TrainingRuntime", "TrainJob"] {
        let line = format!(
            "error: the cluster does not serve the kind {kind} (trainer.kubeflow.org/v1alpha1); check that"
        );
        assert!(error.contains(&line), "{error}");
    }
}

#[test]
fn what_may_not_be_listed_is_reported() {
    for (resource, kind) in [("jobsets", "JobSet"), ("configmaps", "ConfigMap")] {
        let (output, _) = diff(
            move |path| match plain(path).ends_with(resource) {
                true => status(403, "Forbidden"),
                false => cluster(path),
            },
            &[],
        );
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        let line = format!("not compared: cannot list the kind {kind} (");
        assert!(
            text.contains(&line) && text.contains("the server says Forbidden"),
            "{text}"
        );
    }
    let (output, _) = diff(
        |path| match plain(path).ends_with("trainjobs") {
            true => status(403, "Forbidden"),
            false => cluster(path),
        },
        &[],
    );
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    let line = "error: cannot list the kind TrainJob (trainer.kubeflow.org/v1alpha1): the server says Forbidden; with permissions for one namespace only, pass it with -n";
    assert!(error.contains(line), "{error}");
}

#[test]
fn objects_that_cannot_be_read_are_reported() {
    let (output, _) = diff(
        |path| match plain(path).strip_prefix(TRAINER) {
            Some("/trainjobs") => list(json!([job("a"), {"metadata": {"namespace": "ml"}}])),
            _ => cluster(path),
        },
        &[],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("not compared: the cluster"), "{text}");
    assert!(text.contains("metadata.name"), "{text}");
}
