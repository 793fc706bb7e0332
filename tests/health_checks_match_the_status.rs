//! The health checks of docs/gitops.md report TrainJobs of each state as Argo CD and Flux should show them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use std::{fs, process::Command};

use cel::{Context, Program};
use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_cluster::lua;

use crate::common::{root, stderr, stdout};

/// The status of a TrainJob for both tools.
struct State {
    object: Value,
    argo: &'static str,
    message: &'static str,
    /// `inProgress`, `failed` or `current`.
    flux: &'static str,
}

/// Returns a TrainJob with these conditions, and with an error if there is one.
fn train_job(conditions: &[(&str, &str)], error: Option<&str>) -> Value {
    let conditions = conditions.iter().map(|(kind, status)| {
        json!({"type": kind, "status": status, "reason": "Because", "message": format!("{kind} now")})
    });
    let conditions: Vec<_> = conditions.collect();
    let mut object = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "bert"},
        "status": {"conditions": conditions, "jobsStatus": [{"name": "node", "active": 1}]},
    });
    if let Some(error) = error {
        object["metadata"]["annotations"] = json!({"trainyard.dev/reconcile-error": error});
    }
    object
}

fn states() -> Vec<State> {
    let state = |object, argo, message, flux| State {
        object,
        argo,
        message,
        flux,
    };
    let running = [("Suspended", "False")];
    let error = Some("RuntimeNotFound: no runtime \"x\"");
    let mut new = train_job(&[], None);
    new.as_object_mut().unwrap().remove("status");
    let mut counted = train_job(&[], None);
    counted["status"]
        .as_object_mut()
        .unwrap()
        .remove("conditions");
    vec![
        state(new, "Progressing", "", "inProgress"),
        state(counted, "Progressing", "", "inProgress"),
        state(train_job(&running, None), "Progressing", "", "inProgress"),
        state(
            train_job(&[("Suspended", "True")], None),
            "Suspended",
            "Suspended now",
            "inProgress",
        ),
        state(
            train_job(&[("Suspended", "True")], error),
            "Degraded",
            "RuntimeNotFound: no runtime \"x\"",
            "inProgress",
        ),
        state(
            train_job(&[], error),
            "Degraded",
            "RuntimeNotFound: no runtime \"x\"",
            "inProgress",
        ),
        state(
            train_job(&[("Complete", "True"), ("Suspended", "False")], None),
            "Healthy",
            "Complete now",
            "current",
        ),
        state(
            train_job(&[("Suspended", "True"), ("Failed", "True")], error),
            "Degraded",
            "Failed now",
            "failed",
        ),
        state(
            train_job(&[("Failed", "False"), ("Complete", "True")], error),
            "Healthy",
            "Complete now",
            "current",
        ),
    ]
}

/// Returns the YAML block of the page that contains a text.
fn block(text: &str) -> Value {
    let page = fs::read_to_string(root().join("docs/gitops.md")).unwrap();
    let mut blocks = page.split("```yaml\n").skip(1);
    let block = blocks.find_map(|block| {
        let block = block.split("```").next().unwrap();
        block.contains(text).then(|| block.to_owned())
    });
    yaml::read(&block.unwrap()).remove(0).unwrap().value
}

/// Returns a value as a Lua expression.
fn in_lua(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| format!("[{}] = {}", json!(key), in_lua(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items = items.iter().map(in_lua);
            format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn argo_cd_shows_the_state() {
    const KEY: &str = "resource.customizations.health.trainer.kubeflow.org_TrainJob";
    let map = block(KEY);
    let script = map["data"][KEY].as_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("check.lua");
    for state in states() {
        let object = in_lua(&state.object);
        let run = format!(
            "obj = {object}\nlocal function check()\n{script}end\nlocal found = check()\n\
             print(found.status .. \"|\" .. found.message)\n"
        );
        fs::write(&file, run).unwrap();
        let output = Command::new(lua().unwrap()).arg(&file).output().unwrap();
        let printed = stdout(&output);
        assert_eq!(
            printed.trim(),
            format!("{}|{}", state.argo, state.message),
            "{} {}",
            state.object,
            stderr(&output)
        );
    }
}

/// Flux takes the first of these that is true, and waits as long as none is or a field does not exist.
#[test]
fn flux_waits_for_the_end() {
    let kustomization = block("healthCheckExprs");
    let checks = kustomization["spec"]["healthCheckExprs"]
        .as_array()
        .unwrap();
    let [check] = checks.as_slice() else {
        panic!("{checks:?}");
    };
    assert_eq!(check["apiVersion"], "trainer.kubeflow.org/v1alpha1");
    assert_eq!(check["kind"], "TrainJob");
    let order = ["inProgress", "failed", "current"];
    for state in states() {
        let mut context = Context::default();
        for (name, value) in state.object.as_object().unwrap() {
            context.add_variable(name.as_str(), value).unwrap();
        }
        let holds = |name: &&str| {
            let program = Program::compile(check[*name].as_str().unwrap()).unwrap();
            program
                .execute(&context)
                .is_ok_and(|found| found == cel::Value::Bool(true))
        };
        let mut found = order.iter().filter(|name| holds(name));
        let first = found.next().copied().unwrap_or("inProgress");
        assert_eq!(first, state.flux, "{}", state.object);
        assert_eq!(found.next(), None, "two states at once: {}", state.object);
    }
}
