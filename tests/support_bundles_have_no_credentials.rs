//! A support bundle has what shows why a controller does not work, and none of the credentials that are planted in every object, log and text
//! of the cluster. Secrets are never requested. The API server is a stub.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};

use crate::common::{
    api_server::{serve, status, write_kubeconfig},
    bundle::{files, replay},
    stderr, stdout, trainyard,
};

/// Planted values. Each has to be removed wherever it appears.
const SECRETS: [&str; 34] = [
    "env-Pl4nted-value",
    "line-two-0f-a-value",
    "annotation-Pl4nted",
    "applied-Pl4nted",
    "arg-hunter2",
    "flag-hunter2",
    "init-hunter2",
    "url-hunter2",
    "policy-hunter2",
    "policy-2nd-line",
    "hf_Pl4ntedPl4ntedPl4nted",
    "pem-hunter2",
    "bearer-hunter2.x",
    "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY1",
    "patch-hunter2",
    "quoted\\\"Pl4nted",
    "item-hunter2",
    "member-hunter2",
    "below-hunter2",
    "7341902855",
    "dash-hunter2",
    "phrase-hunter2",
    "header-hunter2",
    "probe-hunter2",
    "cookie-hunter2",
    "sla/sh-hunter2",
    "w0rd-hunter2",
    "comma-hunter2",
    "paren-hunter2",
    "escaped-hunter2",
    "block-hunter2",
    "spaced-hunter2",
    "hf_Pl4ntedK3yPl4nted",
    "and-a-t4il",
];

fn list(kind: &str, items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": format!("{kind}List"), "metadata": {"resourceVersion": "1"}, "items": items})
}

/// A template with planted credentials.
fn template() -> Value {
    json!({"spec": {
        "nodeSelector": {"hf_Pl4ntedK3yPl4nted": "x"},
        "initContainers": [{"name": "init", "env": [{"name": "X", "value": "init-hunter2"}]}],
        "containers": [{
            "name": "node", "image": "example.com/node:1",
            "env": [
                {"name": "HARMLESS", "value": "env-Pl4nted-value"},
                {"name": "LINES", "value": "a first line\nline-two-0f-a-value\n"},
                {"name": "QUOTED", "value": "quoted\"Pl4nted"},
                {"name": "PET_NNODES", "value": "4"},
                "WANDB_API_KEY=item-hunter2",
                {"key": "X", "value2": "member-hunter2"},
                {"name": "LONGER", "value": "env-Pl4nted-value-and-a-t4il"},
                {"name": "NCCL_DEBUG", "value": "INFO"},
            ],
            "args": ["--password", "arg-hunter2", "--api-key=flag-hunter2", "--repo", "https://me:url-hunter2@example.com/x", "--token", "-dash-hunter2"],
            "command": ["sh", "-c", "train --password 'two phrase-hunter2'"],
            "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "Token probe-hunter2"}]}},
        }],
    }})
}

fn train_job() -> Value {
    let applied =
        json!({"spec": {"trainer": {"env": [{"name": "A", "value": "applied-Pl4nted"}]}}});
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {
            "name": "job", "namespace": "team", "uid": "u",
            "managedFields": [{"manager": "kubectl"}],
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": applied.to_string(),
                "example.com/note": "annotation-Pl4nted",
                "trainyard.dev/reconcile-error": "RuntimeNotFound: ClusterTrainingRuntime `x` does not exist",
                "trainyard.dev/plugin-parameters": json!({"tracer": {"token": "patch-hunter2", "credentials": {"key": "below-hunter2", "pin": 7_341_902_855_u64}}}).to_string(),
                "trainyard.dev/note": " {\"credentials\": {\"user\": \"spaced-hunter2\"}}",
            },
        },
        "spec": {
            "runtimeRef": {"name": "x"},
            "runtimePatches": [{"trainingRuntimeSpec": {"template": template()}}],
        },
    })
}

fn policy() -> Value {
    let policy = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins:\n- name: tracer\n  config:\n    endpoint: collector:4317\n    apiKey: |\n      policy-hunter2\n      policy-2nd-line\n";
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kubeflow-trainer-policy"}, "data": {"policy.yaml": policy}})
}

fn replica() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "manager-1", "namespace": "kubeflow-system"},
        "spec": {"containers": [{
            "name": "manager", "image": "example.com/trainyard:1", "ports": [{"name": "metrics", "containerPort": 8080}],
            "env": [{"name": "PROXY", "value": "env-Pl4nted-value"}],
        }]},
        "status": {"containerStatuses": [{"name": "manager", "restartCount": 1}]},
    })
}

fn log() -> String {
    let lines = [
        r#"{"level":"INFO","fields":{"message":"plugins are loaded","plan":"sha256:abc"}}"#,
        // In none of these does anything show that they are credentials, except that they were removed elsewhere.
        r#"{"level":"WARN","fields":{"error":"the image says env-Pl4nted-value and line-two-0f-a-value"}}"#,
        r#"{"level":"WARN","fields":{"error":"quoted\"Pl4nted and annotation-Pl4nted"}}"#,
        "the image says env-Pl4nted-value-and-a-t4il",
        "Authorization: Bearer bearer-hunter2.x",
        "Authorization: Token header-hunter2",
        "Set-Cookie: a=b; c=cookie-hunter2",
        "postgres://me:sla/sh-hunter2@w0rd-hunter2@db/x",
        "PASSWORD=abc,comma-hunter2",
        "PASSWORD=abc)paren-hunter2",
        r#"{"level":"INFO","password":"a\"escaped-hunter2"}"#,
        "password: |\n  first\n  block-hunter2",
        "-----BEGIN EC PRIVATE KEY-----\npem-hunter2\n-----END EC PRIVATE KEY-----",
        "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY1",
    ];
    lines.join("\n")
}

fn answer(path: &str) -> (u16, Value) {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let team = "/namespaces/team/";
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "team"}, "reason": "Failed",
        "message": "pulled with hf_Pl4ntedPl4ntedPl4nted and env-Pl4nted-value",
    });
    let job_set = json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "job", "namespace": "team"},
        "spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": template()}}}]},
    });
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kubeflow-trainer-config"},
        "data": {"controller.yaml": "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\ncontroller: {concurrency: 16}\n"},
    });
    let body = match path {
        path if path.ends_with("/pods/manager-1/log") => json!(log()),
        path if path.ends_with("/pods/manager-1:8080/proxy/metrics") => json!(
            "trainyard_plan_info{digest=\"sha256:abc\"} 1\ntrainyard_plugin_loaded{plugin=\"torch\",version=\"1.0.0\",digest=\"sha256:1\"} 1\n"
        ),
        path if path.ends_with("/configmaps/kubeflow-trainer-config") => config,
        path if path.ends_with("/configmaps/kubeflow-trainer-policy") => policy(),
        path if path.ends_with("kubeflow-system/pods") => list("Pod", &[replica()]),
        path if path.contains(team) && path.ends_with("/trainjobs") => {
            list("TrainJob", &[train_job()])
        }
        path if path.contains(team) && path.ends_with("/jobsets") => list("JobSet", &[job_set]),
        path if path.contains(team) && path.ends_with("/events") => list("Event", &[event]),
        path if path.contains(team) && path.ends_with("/trainingruntimes") => {
            return status(403, "Forbidden because of url-hunter2");
        }
        _ => list("Object", &[]),
    };
    (200, body)
}

/// Collects a bundle of the namespace `team`. Also returns the paths that were called.
fn collect(
    folder: &Path,
    answer: impl Fn(&str) -> (u16, Value) + Send + 'static,
) -> (Output, Vec<String>) {
    let (url, calls) = serve(move |path, _| answer(path));
    write_kubeconfig(folder, &[("test", &url)]);
    let arguments = [
        "support-bundle",
        "bundle.tar",
        "-n",
        "team",
        "--kubeconfig",
        "kubeconfig",
    ];
    let output = trainyard(folder, &arguments);
    (output, calls.try_iter().collect())
}

#[test]
fn planted_credentials_never_appear() {
    let folder = tempfile::tempdir().unwrap();
    let (output, calls) = collect(folder.path(), answer);
    let printed = stdout(&output) + &stderr(&output);
    let bundle = fs::read(folder.path().join("bundle.tar")).unwrap();
    let text = String::from_utf8_lossy(&bundle).into_owned() + &printed;
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(!text.contains("quoted\"Pl4nted"));
    assert!(
        !calls.iter().any(|path| path.contains("/secrets")),
        "{calls:#?}"
    );
    let files: std::collections::BTreeMap<_, _> = files(&bundle).into_iter().collect();
    let json = |name: &str| -> Value { serde_json::from_slice(&files[name]).unwrap() };
    // What helps is still there.
    let jobs = json("cluster/namespaces/team/trainjobs.json");
    let error = &jobs[0]["metadata"]["annotations"]["trainyard.dev/reconcile-error"];
    assert!(
        error.as_str().unwrap().starts_with("RuntimeNotFound"),
        "{jobs}"
    );
    let job_sets = json("cluster/namespaces/team/jobsets.json");
    let container = "/0/spec/replicatedJobs/0/template/spec/template/spec/containers/0";
    let container = job_sets.pointer(container).unwrap();
    assert_eq!(
        container["env"][3],
        json!({"name": "PET_NNODES", "value": "4"})
    );
    assert_eq!(
        container["env"][0],
        json!({"name": "HARMLESS", "value": "(removed)"})
    );
    let summary = json("cluster/replicas/summary.json");
    assert_eq!(summary[0]["plan"], "sha256:abc");
    assert_eq!(summary[0]["plugins"][0]["plugin"], "torch");
    let policy = json("cluster/policy.json");
    assert_eq!(
        policy[0]["plugins"][0]["config"],
        json!({"endpoint": "collector:4317", "apiKey": "(removed)"})
    );
    assert_eq!(
        json("cluster/configuration.json")[0]["controller"]["concurrency"],
        16
    );
    let log = String::from_utf8_lossy(&files["cluster/replicas/000.log"]);
    assert!(
        log.contains("plugins are loaded") && log.contains("(removed)"),
        "{log}"
    );
    assert!(files.contains_key("cluster/replicas/000.previous.log"));
    // What was removed is listed with its path and the reason, and so is what could not be read.
    let removed = json("cluster/removed.json");
    let paths = &removed["cluster/namespaces/team/trainjobs.json"]["paths"];
    assert_eq!(
        paths["/0/metadata/annotations/example.com~1note"],
        "annotation"
    );
    assert_eq!(
        removed["cluster/policy.json"]["paths"]["/0/plugins/0/config/apiKey"],
        "name"
    );
    assert!(
        removed["cluster/replicas/000.log"]["counts"]["elsewhere"].as_u64() >= Some(4),
        "{removed}"
    );
    let unread = json("cluster/unread.json");
    let unread = unread[0].as_str().unwrap();
    assert!(
        unread.contains("trainingruntimes in namespace team cannot be listed"),
        "{unread}"
    );
}

/// The same archive as that of a rendering, but there is nothing to replay.
#[test]
fn bundle_cannot_be_replayed_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let (output, _) = collect(folder.path(), answer);
    stdout(&output);
    let replayed = replay(folder.path(), &[]);
    assert_eq!(replayed.status.code(), Some(1));
    let error = stderr(&replayed);
    assert!(error.contains("has no rendering to replay"), "{error}");
    // It replaces itself, but no other file.
    let (again, _) = collect(folder.path(), answer);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    fs::write(folder.path().join("bundle.tar"), "another file").unwrap();
    let (refused, _) = collect(folder.path(), answer);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("is not a bundle"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn size_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    // 17 MB for each kind of the namespace, and 34 MB for TrainJobs.
    let large = |path: &str| {
        let is_list = path.contains("/namespaces/team/");
        let object = |name: usize| {
            let text = "word ".repeat(200_000);
            json!({"metadata": {"name": format!("o-{name}")}, "spec": {"text": text}})
        };
        let many = if path.contains("/trainjobs") { 34 } else { 17 };
        let objects: Vec<_> = (0..many).map(object).collect();
        match is_list {
            true => (200, list("Object", &objects)),
            false => answer(path),
        }
    };
    let (output, _) = collect(folder.path(), large);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let bytes = fs::metadata(folder.path().join("bundle.tar"))
        .unwrap()
        .len();
    assert!(bytes < 80 << 20, "{bytes}");
    let warned = stderr(&output);
    assert!(
        warned.contains("was left out, because the bundle would be larger"),
        "{warned}"
    );
    assert!(
        warned.contains("trainjobs.json has the first 25 objects; there are more"),
        "{warned}"
    );
}

#[test]
fn mistyped_namespaces_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (output, calls) = collect(folder.path(), |path| {
        match path.ends_with("/namespaces/team") {
            true => status(404, "NotFound"),
            false => answer(path),
        }
    });
    let warned = stderr(&output);
    assert!(warned.contains("there is no namespace team; "), "{warned}");
    let team = |path: &String| path.contains("/namespaces/team/");
    assert!(!calls.iter().any(team), "{calls:?}");
}

/// A cluster that answers nothing gives an error and no bundle.
#[test]
fn nothing_is_written_if_nothing_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let (output, _) = collect(folder.path(), |_| status(403, "Forbidden"));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("cannot be listed"),
        "{}",
        stderr(&output)
    );
    assert!(!folder.path().join("bundle.tar").exists());
}
