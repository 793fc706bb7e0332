//! `trainyard explain trainjob/NAME` makes each API call once, and renders with the facts of the snapshot and not with those of the local
//! policy file. The API server is a stub; tests/cluster has a real one.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};

use crate::common::{
    api_server::{serve, status, write_kubeconfig},
    bundle::replay,
    declared_plugin::policies,
    runtime, stderr, stdout, trainyard,
};

/// Explains the TrainJob `job` of this server, with local PolicyPlugins.
fn explain(url: &str, arguments: &[&str], policy: &str, folder: &Path) -> Output {
    write_kubeconfig(folder, &[("test", url)]);
    fs::write(folder.join("policy.yaml"), policies(policy)).unwrap();
    let files = ["--kubeconfig", "kubeconfig", "--policy", "policy.yaml"];
    let command = ["explain", "trainjob/job", "--output", "json"];
    trainyard(folder, &[&command[..], arguments, &files].concat())
}

#[test]
fn busy_server_is_asked_once() {
    let folder = tempfile::tempdir().unwrap();
    let (url, calls) = serve(|_, number| match number {
        0 => status(503, "ServiceUnavailable"),
        _ => status(404, "NotFound"),
    });
    let output = explain(&url, &[], "", folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("the server says ServiceUnavailable"),
        "{}",
        stderr(&output)
    );
    let job = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/job";
    assert_eq!(calls.try_iter().collect::<Vec<_>>(), [job]);
}

/// Returns a TrainJob, or its snapshot with these facts.
fn cluster(path: &str, config: Option<Value>) -> (u16, Value) {
    if path.contains("/trainjobs/") {
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": "job", "namespace": "default", "uid": "of-the-job", "resourceVersion": "1", "creationTimestamp": "2026-01-02T03:04:05Z"},
            "spec": {"runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "torch"}},
        });
        return (200, job);
    }
    let owner = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "job", "uid": "of-the-job",
        "controller": true,
    });
    let resources = ", resources: {limits: {example.com/npu: 4, cpu: 3}}";
    let runtime = runtime("name: torch", "mlPolicy: {torch: {}},", resources);
    let mut data = json!({"runtime": runtime});
    if let Some(config) = config {
        data["config"] = json!(config.to_string());
    }
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "job-runtime-snapshot", "namespace": "default", "ownerReferences": [owner]},
    });
    (200, map)
}

/// Returns the explained number of processes of torchrun, with the local policy file.
fn processes(config: Option<Value>, policy: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let (url, _calls) = serve(move |path, _| cluster(path, config.clone()));
    let field = "pod-sets[node].containers[node].env[PET_NPROC_PER_NODE]";
    let output = explain(&url, &[field], policy, folder.path());
    let explained: Value = serde_json::from_str(&stdout(&output)).unwrap();
    explained[0]["fields"][0]["steps"][0]["to"].clone()
}

/// Torch counts CPUs only if the pod has no accelerator, and which resources are accelerators is a fact of the cluster.
#[test]
fn facts_come_from_the_snapshot() {
    let facts = |accelerator: &str| json!({"clusterDomain": "cluster.local", "accelerators": [accelerator]});
    let (npu, gpu) = ("example.com/npu", "example.com/gpu");
    let local = |name: &str| format!("accelerators: [{name}]\n");
    assert_eq!(processes(Some(facts(npu)), &local(gpu)), "4");
    assert_eq!(processes(Some(facts(gpu)), &local(npu)), "3");
    // With a snapshot without facts, the local ones apply.
    assert_eq!(processes(None, &local(npu)), "4");
    assert_eq!(processes(None, &local(gpu)), "3");
}

/// Returns a snapshot whose plan contains the built-in Torch.
fn with_plan(path: &str) -> (u16, Value) {
    let (code, mut object) = cluster(
        path,
        Some(json!({"clusterDomain": "k8s.example.com", "accelerators": []})),
    );
    if object["kind"] == "ConfigMap" {
        let plan = trainyard(Path::new("."), &["plan", "-o", "json"]);
        let plan: Value = serde_json::from_str(&stdout(&plan)).unwrap();
        let mut plugins = plan[0]["plugins"].as_array().unwrap().iter();
        let torch = plugins.find(|plugin| plugin["name"] == "torch").unwrap();
        let planned = json!({"name": "torch", "version": torch["version"], "digest": torch["digest"], "config": {}});
        object["data"]["plan"] = json!(
            json!({"digest": "sha256:of an earlier release", "plugins": [planned]}).to_string()
        );
    }
    (code, object)
}

#[test]
fn bundle_is_recorded_from_the_snapshot_and_replays() {
    let folder = tempfile::tempdir().unwrap();
    let (url, _calls) = serve(|path, _| with_plan(path));
    let output = explain(
        &url,
        &["--record", "bundle.tar"],
        "clusterDomain: other.example.com\n",
        folder.path(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let replayed = replay(folder.path(), &["-o", "json"]);
    let report: Value = serde_json::from_str(&stdout(&replayed)).unwrap();
    assert_eq!(
        (&report["same"], &report["objects"]),
        (&json!(true), &json!(1))
    );
    let bundle = fs::read(folder.path().join("bundle.tar")).unwrap();
    let text = String::from_utf8_lossy(&bundle);
    assert!(text.contains("k8s.example.com") && !text.contains("other.example.com"));
}

/// With other plugins than those of the snapshot, the bundle would record another rendering.
#[test]
fn bundle_is_refused_if_the_plan_differs() {
    let other_torch = |path: &str| {
        let (code, mut object) = with_plan(path);
        if let Some(plan) = object["data"]["plan"].as_str() {
            let other = plan.replace("\"digest\":\"sha256:", "\"digest\":\"sha256:0");
            object["data"]["plan"] = json!(other);
        }
        (code, object)
    };
    let of_the_reference = |path: &str| cluster(path, None);
    type Answer = fn(&str) -> (u16, Value);
    for (answer, cause) in [
        (
            other_torch as Answer,
            "was rendered with other plugins or settings",
        ),
        (of_the_reference, "was rendered by the Kubeflow Trainer"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (url, _calls) = serve(move |path, _| answer(path));
        let output = explain(&url, &["--record", "bundle.tar"], "", folder.path());
        assert_eq!(output.status.code(), Some(1));
        let error = stderr(&output);
        assert!(
            error.contains(cause) && error.contains("no bundle was written"),
            "{error}"
        );
        assert!(!folder.path().join("bundle.tar").exists());
    }
}

/// The controller has checked them with its own plugins and policy file. A bundle would not replay without them.
#[test]
fn overrides_for_plugins_that_are_not_loaded_are_ignored() {
    let explained = |arguments: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let (url, _calls) = serve(|path, _| {
            let (code, mut object) = with_plan(path);
            if object["kind"] == "TrainJob" {
                object["metadata"]["annotations"] = json!({
                    "trainyard.dev/disabled-plugins": "guard",
                    "trainyard.dev/plugin-parameters": r#"{"tracer": {"sampling": 1}}"#,
                });
            }
            (code, object)
        });
        explain(&url, arguments, "", folder.path())
    };
    stdout(&explained(&["PET_NNODES"]));
    let error = stderr(&explained(&["--record", "bundle.tar"]));
    assert!(
        error.contains("no loaded plugin has the name `guard`"),
        "{error}"
    );
}

/// Returns the standard error of the explanation of an env var that differs in the cluster.
fn explained_port(answer: fn(&str) -> (u16, Value)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (url, _calls) = serve(move |path, _| match path.contains("/jobsets/") {
        true => (200, job_set()),
        false => answer(path),
    });
    let output = explain(&url, &["PET_MASTER_PORT"], "", folder.path());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stderr(&output)
}

/// Nothing is wrong with such a TrainJob, so other clients are not the first cause.
#[test]
fn adopted_and_resumed_train_jobs_say_what_they_are() {
    let adopted = explained_port(|path| cluster(path, None));
    let advice = "was rendered by the Kubeflow Trainer, so this explains what Trainyard would render; to have Trainyard render it, suspend it and delete its JobSet";
    assert!(adopted.contains(advice), "{adopted}");
    let cause = r#"is "1234" in the cluster, as the Kubeflow Trainer rendered it"#;
    assert!(adopted.contains(cause), "{adopted}");

    let resumed = explained_port(|path| {
        let (code, mut object) = with_plan(path);
        if object["kind"] == "ConfigMap" {
            object["metadata"]["annotations"] = json!({"trainyard.dev/started": "true"});
        }
        (code, object)
    });
    let cause = r#"is "1234" in the cluster, from before the TrainJob was changed"#;
    assert!(resumed.contains(cause), "{resumed}");
}

/// Returns the digests of the data of a snapshot, as a JobSet has them.
fn digests(data: &Value) -> String {
    let of = |is_runtime: bool| {
        let mut bytes = Vec::new();
        for (key, text) in data.as_object().unwrap() {
            if (key == "runtime") == is_runtime {
                for part in [key, text.as_str().unwrap()] {
                    bytes.extend((part.len() as u64).to_le_bytes());
                    bytes.extend(part.as_bytes());
                }
            }
        }
        let digest = trainyard_model::names::sha256_digest(&bytes).to_string();
        digest.strip_prefix("sha256:").unwrap().to_owned()
    };
    format!("{}/{}", of(true), of(false))
}

/// Returns the result for a running TrainJob whose JobSet has these digests, for its snapshot and another one's.
fn with_digests(is_of_snapshot: bool, owner: &'static str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let (url, _calls) = serve(move |path, _| {
        if !path.contains("/jobsets/") {
            return with_plan(path);
        }
        let (_, mut map) = with_plan("/configmaps/");
        if !is_of_snapshot {
            map["data"]["plan"] = json!("of another client");
        }
        let mut job_set = job_set();
        job_set["metadata"]["annotations"] =
            json!({"trainyard.dev/snapshot": digests(&map["data"])});
        job_set["metadata"]["ownerReferences"] = map["metadata"]["ownerReferences"].clone();
        job_set["metadata"]["ownerReferences"][0]["uid"] = json!(owner);
        (200, job_set)
    });
    explain(&url, arguments, "", folder.path())
}

/// The controller does not use a snapshot that another client changed, so its explanation is not that of the TrainJob.
#[test]
fn changed_snapshot_is_a_warning_and_is_not_recorded() {
    let warning = "ConfigMap `job-runtime-snapshot`: data: another client changed it: its digest differs from the one in the annotation trainyard.dev/snapshot of JobSet `job`; ";
    for (is_of_snapshot, owner, is_reported) in [
        (false, "of-the-job", true),
        (true, "of-the-job", false),
        // The controller does not use this JobSet either.
        (false, "of-another-job", false),
    ] {
        let output = with_digests(is_of_snapshot, owner, &["PET_NNODES"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let printed = stderr(&output);
        let is_found = printed.contains(&format!("warning: {warning}"));
        assert_eq!(is_found, is_reported, "{printed}");
    }
    let output = with_digests(false, "of-the-job", &["--record", "bundle.tar"]);
    assert_eq!(output.status.code(), Some(1));
    let error = stderr(&output);
    assert!(
        error.contains(warning) && error.contains("no bundle was written"),
        "{error}"
    );
}

const CONTAINER: &str = "spec.replicatedJobs[node].template.spec.template.spec.containers[node]";

/// A cluster whose TrainJob was rendered with Torch and with the plugin tracer, which set the env var TRACER. The API server has added a
/// protocol to each port, and tracer a UDP port before them.
fn with_tracer(path: &str, torch_digest: Option<&str>) -> (u16, Value) {
    if path.contains("/jobsets/") {
        return (200, job_set());
    }
    let (code, mut object) = with_plan(path);
    if object["kind"] == "ConfigMap" {
        let mut plan: Value =
            serde_json::from_str(object["data"]["plan"].as_str().unwrap()).unwrap();
        let tracer = json!({"name": "tracer", "version": "0.1.0", "digest": "sha256:of-tracer", "config": {}});
        plan["plugins"].as_array_mut().unwrap().push(tracer);
        if let Some(digest) = torch_digest {
            plan["plugins"][0]["digest"] = json!(digest);
        }
        object["data"]["plan"] = json!(plan.to_string());
    }
    (code, object)
}

fn job_set() -> Value {
    let rank = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
    let container = json!({
        "name": "node", "image": "example.com/image",
        "resources": {"limits": {"example.com/npu": 4, "cpu": 3}},
        "env": [
            {"name": "TRACER", "value": "on"},
            {"name": "PET_NNODES", "value": "1"},
            {"name": "PET_NPROC_PER_NODE", "value": "3"},
            {"name": "PET_NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": rank, "apiVersion": "v1"}}},
            {"name": "PET_MASTER_ADDR", "value": "job-node-0-0.job"},
            {"name": "PET_MASTER_PORT", "value": "1234"},
        ],
        "ports": [
            {"containerPort": 29500, "protocol": "UDP"},
            {"containerPort": 29500, "protocol": "TCP"},
        ],
    });
    let pods = json!({"spec": {"containers": [container], "restartPolicy": "OnFailure"}});
    let template = json!({"spec": {"parallelism": 1, "completions": 1, "completionMode": "Indexed", "template": pods}});
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "job", "namespace": "default"},
        "spec": {"replicatedJobs": [{"name": "node", "replicas": 1, "groupName": "default", "template": template}], "suspend": false},
    })
}

/// Returns the exit code and the standard error of an explanation without the plugin tracer.
fn explained_without_tracer(fields: &[&str], torch_digest: Option<&'static str>) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let (url, _calls) = serve(move |path, _| with_tracer(path, torch_digest));
    let output = explain(&url, fields, "", folder.path());
    (output.status.code().unwrap(), stderr(&output))
}

/// Returns the lines about fields that the missing plugin may have set, without the warning about the plugin itself.
fn set_elsewhere(fields: &[&str]) -> Vec<String> {
    let (code, errors) = explained_without_tracer(fields, None);
    assert_eq!(code, 0, "{errors}");
    let missing =
        "warning: TrainJob default/job: the plugin tracer 0.1.0 (sha256:of-tracer) is not loaded";
    let mut lines = errors.lines();
    assert!(lines.next().unwrap().starts_with(missing), "{errors}");
    lines.map(str::to_owned).collect()
}

#[test]
fn fields_of_loaded_plugins_are_not_blamed_on_a_missing_one() {
    for field in [
        "PET_NNODES",
        "PET_NODE_RANK",
        "pod-sets[node].containers[node].env[PET_NNODES]",
        "pod-sets[node].containers[node].ports",
        &format!("{CONTAINER}.image"),
        &format!("{CONTAINER}.ports[29500]"),
        &format!("{CONTAINER}.resources"),
        "spec.replicatedJobs[0].replicas",
    ] {
        assert_eq!(set_elsewhere(&[field]), [""; 0], "{field}");
    }
}

#[test]
fn fields_of_a_missing_plugin_and_of_other_clients_are_named() {
    let cause = "set by a plugin that is not loaded, or by another client";
    let line = |field: &str, value: &str| {
        format!("warning: {CONTAINER}.{field}: is {value} in the cluster, {cause}")
    };
    let (tracer, port) = (
        line("env[TRACER]", "\"on\""),
        line("env[PET_MASTER_PORT]", "\"1234\""),
    );
    for field in [
        "TRACER",
        "pod-sets[node].containers[node].env[TRACER]",
        &format!("{CONTAINER}.env[TRACER]"),
    ] {
        assert_eq!(set_elsewhere(&[field]), [tracer.as_str()], "{field}");
    }
    assert_eq!(set_elsewhere(&["PET_MASTER_PORT"]), [port.as_str()]);
    let both = [port.as_str(), &tracer];
    assert_eq!(
        set_elsewhere(&["pod-sets[node].containers[node].env"]),
        both
    );
    assert_eq!(set_elsewhere(&["pod-sets[node].containers[node]"]), both);
    assert_eq!(set_elsewhere(&[]), both);
}

#[test]
fn missing_fields_are_refused_without_printing_their_parents() {
    for field in [
        "spec.replicatedJobs[node].nothing",
        "pod-sets[node].containers[node].env[NOTHING]",
        "pod-sets[other].containers[node].env[TRACER]",
        "nothing",
        "NOTHING",
    ] {
        let (code, errors) = explained_without_tracer(&[field], None);
        assert_eq!(code, 1, "{errors}");
        let refused = format!("error: `{field}` is not in the JobSet");
        assert!(
            errors.lines().any(|line| line.starts_with(&refused)),
            "{errors}"
        );
        assert!(!errors.contains("in the cluster"), "{errors}");
    }
}

#[test]
fn loaded_plugin_that_differs_is_reported_although_another_is_missing() {
    let warning = "was rendered with other plugins or settings than those loaded here";
    let (_, errors) = explained_without_tracer(&["PET_NNODES"], Some("sha256:of-another-torch"));
    assert!(errors.contains(warning), "{errors}");
    let (_, errors) = explained_without_tracer(&["PET_NNODES"], None);
    assert!(!errors.contains(warning), "{errors}");
}
