//! Where an API server that enforces the Pod Security Standard `restricted` admits the pods of a runtime, it admits the rendered ones: a
//! container that a policy adds has no more rights than those of the runtime. This holds for every case in which a policy adds one.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_api::Inputs;
use trainyard_cluster::{ControlPlane, Resource, Test, Trainyard, Write};
use trainyard_plugin_folders::{cases, root};

/// The kinds of lists of containers in a pod spec.
const LISTS: [&str; 2] = ["initContainers", "containers"];
/// Members of a pod spec that name objects which this API server does not have.
const REFERENCES: [&str; 5] = [
    "serviceAccountName",
    "priorityClassName",
    "runtimeClassName",
    "schedulingGates",
    "imagePullSecrets",
];

fn read(file: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(file)?;
    let name = file.display().to_string();
    let objects = Inputs::read_text(&name, &text).into_result()?.objects;
    Ok(objects.into_iter().map(|object| object.value).collect())
}

/// Returns the pod templates of a JobSet, or of a runtime's.
fn pods(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    let spec = match object.get("kind").and_then(Value::as_str) {
        Some("JobSet") => "/spec/replicatedJobs",
        _ => "/spec/template/spec/replicatedJobs",
    };
    let jobs = object.pointer_mut(spec).and_then(Value::as_array_mut);
    let jobs = jobs.into_iter().flatten();
    jobs.filter_map(|job| job.pointer_mut("/template/spec/template"))
}

/// Returns the containers and init containers of a pod template.
fn containers(pod: &mut Value) -> impl Iterator<Item = &mut Value> {
    let spec = pod.get_mut("spec").and_then(Value::as_object_mut);
    let members = spec.into_iter().flatten();
    let lists = members.filter(|(name, _)| LISTS.contains(&name.as_str()));
    lists.flat_map(|(_, list)| list.as_array_mut().into_iter().flatten())
}

/// Returns the number of containers of the objects' pods.
fn count(objects: &mut [Value]) -> usize {
    let pods = objects.iter_mut().flat_map(pods);
    pods.map(|pod| containers(pod).count()).sum()
}

/// Gives the runtime's pods what `restricted` requires, for each container apart or, where it can be, for the pod.
fn restrict(pod: &mut Value, for_pod: bool) {
    let of_container =
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    let of_either = json!({"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}});
    let set = |object: &mut Value, members: &Value| {
        let context = &mut object["securityContext"];
        for (name, value) in members.as_object().into_iter().flatten() {
            context[name] = value.clone();
        }
    };
    for container in containers(pod) {
        container["securityContext"] = json!({});
        set(container, &of_container);
        if !for_pod {
            set(container, &of_either);
        }
    }
    pod["spec"]["securityContext"] = json!({});
    if for_pod {
        set(&mut pod["spec"], &of_either);
    }
}

/// Returns whether the API server admits a pod of this template, or the reason why not.
async fn admitted(plane: &ControlPlane, namespace: &str, pod: &Value) -> Result<Option<String>> {
    let mut spec = pod["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|name, _| !REFERENCES.contains(&name.as_str()));
    }
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec});
    let pods = Resource::pods();
    let write = Write {
        dry_run: true,
        ..Write::default()
    };
    let answer = plane.api(&pods, namespace).create(&pod, &write).await?;
    Ok(answer.accepted().err().map(|refusal| refusal.to_string()))
}

/// Renders a case with other objects.
fn render(objects: &[Value]) -> Result<Vec<Value>> {
    let folder = tempfile::tempdir()?;
    let texts: Vec<_> = objects.iter().map(Value::to_string).collect();
    fs::write(folder.path().join("input.yaml"), texts.join("\n---\n"))?;
    let output = Command::new(Trainyard::program()?)
        .args(["render", "-f", "input.yaml"])
        .current_dir(folder.path())
        .output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{error}");
    let rendered = folder.path().join("rendered.yaml");
    fs::write(&rendered, &output.stdout)?;
    read(&rendered)
}

/// Checks one case, and returns whether it was comparable: whether the runtime's pods are admitted.
async fn check(plane: &ControlPlane, namespace: &str, input: &[Value]) -> Result<bool> {
    let mut is_compared = false;
    for for_pod in [true, false] {
        let mut input = input.to_vec();
        let mut before = Vec::new();
        for object in &mut input {
            for pod in pods(object) {
                restrict(pod, for_pod);
                before.push(admitted(plane, namespace, pod).await?);
            }
        }
        if before.iter().any(Option::is_some) {
            continue;
        }
        is_compared = true;
        let mut rendered = render(&input)?;
        for pod in rendered.iter_mut().flat_map(pods) {
            let refused = admitted(plane, namespace, pod).await?;
            ensure!(refused.is_none(), "{refused:?}: {pod:#}");
        }
    }
    Ok(is_compared)
}

async fn restricted_namespaces_admit_them(plane: &ControlPlane) -> Result<()> {
    let namespace = plane.new_namespace().await?;
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespaces = Resource::namespaces();
    let labelled = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}});
    let write = Write::by("test");
    let api = plane.api(&namespaces, "");
    api.apply(&labelled, &write).await?.accepted()?;
    let accounts = Resource::service_accounts();
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let api = plane.api(&accounts, &namespace);
    api.apply(&account, &write).await?.accepted()?;

    let unrestricted = json!({"spec": {"containers": [{"name": "a", "image": "a"}]}});
    let refused = admitted(plane, &namespace, &unrestricted).await?;
    let refused = refused.context("the standard is not enforced")?;
    ensure!(refused.contains("violates PodSecurity"), "{refused}");

    let mut compared = BTreeSet::new();
    for case in cases(&root())?.into_values() {
        let rendered = case.join("expected.yaml");
        if !rendered.exists() {
            continue;
        }
        // Cases can have files that only their test can read, such as several TrainJobs of which one is refused.
        let (Ok(mut input), Ok(mut rendered)) = (read(&case.join("input.yaml")), read(&rendered))
        else {
            continue;
        };
        if count(&mut rendered) <= count(&mut input) {
            continue;
        }
        let name = case.display().to_string();
        if check(plane, &namespace, &input)
            .await
            .context(name.clone())?
        {
            compared.insert(name);
        }
    }
    ensure!(compared.len() > 10, "only {compared:?} were compared");
    Ok(())
}

pub(crate) fn tests() -> Vec<Test> {
    vec![Test::new(
        "restricted_namespaces_admit_them",
        async |plane: &ControlPlane| restricted_namespaces_admit_them(plane).await,
    )]
}
