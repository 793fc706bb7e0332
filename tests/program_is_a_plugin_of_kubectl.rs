//! A link named `kubectl-trainyard` makes this program a plugin of kubectl: usage texts say so, kubectl's flags select the cluster, and a link
//! named `kubectl_complete-trainyard` prints completions.
#![cfg(unix)]

use std::{
    os::unix::{ffi::OsStrExt, fs::symlink, process::CommandExt},
    path::Path,
    process::Command,
};

use serde_json::json;

use crate::common::{
    api_server::{serve, status, write_kubeconfig},
    command, stderr, stdout,
};

/// Runs this program under another name.
fn run(name: &str, folder: &Path, arguments: &[&str]) -> std::process::Output {
    let link = folder.join(name);
    if !link.exists() {
        symlink(command(&[]).get_program(), &link).unwrap();
    }
    let mut command = Command::new(link);
    command
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1");
    command.output().unwrap()
}

#[test]
fn usage_names_kubectl() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = |arguments: &[&str]| run("kubectl-trainyard", folder.path(), arguments);
    let help = stdout(&plugin(&["explain", "--help"]));
    assert!(help.contains("Usage: kubectl trainyard explain"), "{help}");
    let help = stdout(&plugin(&["--help"]));
    assert!(
        help.contains("\n  kubectl trainyard plan --claims"),
        "{help}"
    );
    assert!(!help.contains("\n  trainyard "), "{help}");
    let wrong = plugin(&["why"]);
    assert_eq!(wrong.status.code(), Some(2));
    let error = stderr(&wrong);
    assert!(error.contains("Usage: kubectl trainyard why"), "{error}");
    let help = stdout(&run("trainyard", folder.path(), &["plan", "--help"]));
    assert!(help.contains("Usage: trainyard plan"), "{help}");
}

#[test]
fn flags_of_kubectl_select_cluster_and_namespace() {
    let folder = tempfile::tempdir().unwrap();
    let (first, first_calls) = serve(|_, _| status(404, "NotFound"));
    let (second, second_calls) = serve(|_, _| status(404, "NotFound"));
    write_kubeconfig(folder.path(), &[("first", &first), ("second", &second)]);
    let call = |arguments: &[&str]| {
        for subject in [&["why", "trainjob/job"], &["explain", "trainjob/job"]] {
            let arguments = [&subject[..], arguments, &["--kubeconfig", "kubeconfig"]].concat();
            let output = run("kubectl-trainyard", folder.path(), &arguments);
            assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        }
        let called = |calls: &std::sync::mpsc::Receiver<String>| {
            let mut paths: Vec<_> = calls.try_iter().collect();
            paths.dedup();
            paths
        };
        (called(&first_calls), called(&second_calls))
    };
    let path = |namespace: &str| {
        vec![format!(
            "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/job"
        )]
    };
    let none = Vec::new();
    assert_eq!(call(&[]), (path("default"), none.clone()));
    let context = ["--context", "second"];
    assert_eq!(call(&context), (none.clone(), path("in-second")));
    let all = ["--context", "second", "-n", "team"];
    assert_eq!(call(&all), (none, path("team")));
    let absent = [
        "why",
        "job",
        "--context",
        "third",
        "--kubeconfig",
        "kubeconfig",
    ];
    let output = run("kubectl-trainyard", folder.path(), &absent);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("third"), "{}", stderr(&output));
}

/// kubectl reads a line for each completion, with its description after a tab, and then what else the shell offers: 4 for nothing, 0 for
/// files.
#[test]
fn completions_have_the_format_that_kubectl_reads() {
    let folder = tempfile::tempdir().unwrap();
    let complete = |arguments: &[&str]| {
        let output = run("kubectl_complete-trainyard", folder.path(), arguments);
        let text = stdout(&output);
        let lines = text
            .lines()
            .map(|line| line.split('\t').next().unwrap().to_owned());
        lines.collect::<Vec<_>>()
    };
    assert_eq!(complete(&["pl"]), ["plan", "plugin", ":4"]);
    assert_eq!(complete(&["plugin", "insp"]), ["inspect", ":4"]);
    assert_eq!(complete(&["plan", "--out"]), ["--output", ":4"]);
    assert_eq!(complete(&["plan", "--output", "j"]), ["json", ":4"]);
    assert_eq!(complete(&["completions", "ba"]), ["bash", ":4"]);
    assert_eq!(complete(&["render", "-f", "exam"]), [":0"]);
    assert_eq!(complete(&[]), [":0"]);
    let all = complete(&[""]);
    assert!(all.contains(&"why".to_owned()), "{all:?}");
    assert!(!all.contains(&"compile-worker".to_owned()), "{all:?}");
    // What is typed need not be UTF-8.
    let mut typed = command(&[]);
    typed.arg0("kubectl_complete-trainyard");
    typed.arg(std::ffi::OsStr::from_bytes(b"\xff"));
    assert_eq!(stdout(&typed.output().unwrap()), ":0\n");
    let described = stdout(&run("kubectl_complete-trainyard", folder.path(), &["wh"]));
    assert!(described.starts_with("why\tSay why"), "{described}");
}

/// `plan --cluster` reads the metrics of each replica through the API server.
#[test]
fn plans_of_replicas_are_compared_with_the_local_one() {
    let folder = tempfile::tempdir().unwrap();
    let plan = |url: &str| {
        write_kubeconfig(folder.path(), &[("test", url)]);
        let arguments = ["plan", "--cluster", "--kubeconfig", "kubeconfig"];
        run("kubectl-trainyard", folder.path(), &arguments)
    };
    let pod = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "kubeflow-system"},
            "spec": {"containers": [{"name": "manager", "ports": [{"name": "metrics", "containerPort": 8080}]}]},
        })
    };
    // An evicted pod is not a replica.
    let mut evicted = pod("evicted");
    evicted["status"] = json!({"phase": "Failed"});
    let pods = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [pod("a"), pod("b"), evicted]});
    let cluster = |digest: String, second: &'static str| {
        let pods = pods.clone();
        let (url, _calls) = serve(move |path, _| {
            let metrics = |digest: &str| {
                let text = format!("trainyard_plan_info{{digest=\"{digest}\"}} 1\n# EOF\n");
                (200, json!(text))
            };
            let of = |pod: &str| {
                format!("/api/v1/namespaces/kubeflow-system/pods/{pod}:8080/proxy/metrics")
            };
            if path.starts_with("/api/v1/namespaces/kubeflow-system/pods?") {
                (200, pods.clone())
            } else if path == of("a") {
                metrics(&digest)
            } else if path == of("b") && !second.is_empty() {
                metrics(second)
            } else {
                status(404, "NotFound")
            }
        });
        url
    };
    let both = plan(&cluster("sha256:another".to_owned(), "sha256:other"));
    assert_eq!(both.status.code(), Some(1));
    let text = String::from_utf8(both.stdout.clone()).unwrap();
    let here = text.lines().next().unwrap().strip_prefix("here: ").unwrap();
    assert!(
        stderr(&both).contains("2 of 2 replicas"),
        "{}",
        stderr(&both)
    );
    let one = plan(&cluster(here.to_owned(), "sha256:other"));
    let text = String::from_utf8(one.stdout.clone()).unwrap();
    assert!(
        text.contains(&format!("pod a: {here} (the same)")),
        "{text}"
    );
    assert!(text.contains("pod b: sha256:other"), "{text}");
    assert!(stderr(&one).contains("1 of 2 replicas"), "{}", stderr(&one));
    // A replica whose plan is not known does not run other plugins.
    let unknown = plan(&cluster(here.to_owned(), ""));
    let warned = stderr(&unknown);
    assert_eq!(unknown.status.code(), Some(0), "{warned}");
    assert!(
        warned.contains("the plans of 1 of 2 replicas are not known"),
        "{warned}"
    );
    assert!(!warned.contains("run other plugins"), "{warned}");
    let (none, _calls) = serve(move |path, _| match path.contains("/pods?") {
        true => (200, pods.clone()),
        false => status(404, "NotFound"),
    });
    let none = plan(&none);
    assert_eq!(none.status.code(), Some(1));
    let error = stderr(&none);
    assert!(
        error.contains("the plans of 2 of 2 replicas are not known"),
        "{error}"
    );
    assert!(!error.contains("run other plugins"), "{error}");
}
