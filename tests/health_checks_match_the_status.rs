//! The health checks of docs/gitops.md report TrainJobs, PolicyPlugins and PluginRevisions of each state as Argo CD and Flux should show them.

use std::{fs, process::Command};

use cel::{Context, Program};
use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_cluster::lua;

use crate::common::{root, stderr, stdout};

/// The status of an object for both tools.
struct State {
    object: Value,
    argo: &'static str,
    message: &'static str,
    /// `inProgress`, `failed` or `current`. Flux does not apply PluginRevisions, and has no check for them.
    flux: &'static str,
}

/// Returns a PolicyPlugin with this condition `Active`, of this generation.
fn policy_plugin(status: &str, reason: &str, generation: u8) -> Value {
    json!({
        "apiVersion": "trainyard.dev/v1alpha1", "kind": "PolicyPlugin", "metadata": {"name": "tracer", "generation": 2},
        "status": {"observedGeneration": generation, "conditions": [
            {"type": "Pulled", "status": "True", "reason": "Pulled", "message": "Pulled now"},
            {"type": "Active", "status": status, "reason": reason, "message": "Active now"},
        ]},
    })
}

fn states_of_policy_plugins() -> Vec<State> {
    let state = |status, reason, argo, flux| State {
        object: policy_plugin(status, reason, 2),
        argo,
        message: "Active now",
        flux,
    };
    let progressing = |object| State {
        object,
        argo: "Progressing",
        message: "",
        flux: "inProgress",
    };
    let mut new = policy_plugin("True", "Running", 1);
    new.as_object_mut().unwrap().remove("status");
    vec![
        progressing(new),
        progressing(policy_plugin("True", "Running", 1)),
        progressing(policy_plugin("False", "MissingPermissions", 1)),
        state("True", "Running", "Healthy", "current"),
        state("False", "Disabled", "Healthy", "current"),
        state("False", "RollingOut", "Progressing", "inProgress"),
        state("False", "Comparing", "Progressing", "inProgress"),
        state("False", "Retrying", "Progressing", "inProgress"),
        state("False", "NotWatched", "Progressing", "inProgress"),
        state("False", "ReplicasLag", "Progressing", "inProgress"),
        state("False", "NoRevision", "Progressing", "inProgress"),
        state("False", "NotLoaded", "Progressing", "inProgress"),
        state("False", "Skipped", "Degraded", "failed"),
        state("False", "NewRefusals", "Suspended", "failed"),
        state("False", "RemovesPlugins", "Suspended", "failed"),
        state("False", "NewFailures", "Suspended", "failed"),
        state("False", "FailuresNotCompared", "Suspended", "failed"),
        state("False", "MissingPermissions", "Degraded", "failed"),
        state("False", "WrongSigner", "Degraded", "failed"),
        state("False", "RolledBack", "Degraded", "failed"),
        state("False", "OthersFail", "Degraded", "failed"),
    ]
}

fn states_of_revisions() -> Vec<State> {
    let state = |status, argo, message| State {
        object: json!({
            "apiVersion": "trainyard.dev/v1alpha1", "kind": "PluginRevision", "metadata": {"name": "rev-1"}, "status": status,
        }),
        argo,
        message,
        flux: "",
    };
    let at =
        |stage: &str, reason: &str| json!({"stage": stage, "reason": reason, "message": "why"});
    vec![
        state(json!({}), "Progressing", ""),
        state(at("Shadow", "Comparing"), "Progressing", "why"),
        state(at("Shadow", "NewRefusals"), "Suspended", "why"),
        state(at("Shadow", "RemovesPlugins"), "Suspended", "why"),
        state(at("Share", "Share"), "Progressing", "why"),
        state(at("Share", "NewFailures"), "Suspended", "why"),
        state(at("Share", "FailuresNotCompared"), "Suspended", "why"),
        state(at("Running", "Share"), "Healthy", "why"),
        state(at("Previous", "Share"), "Healthy", "why"),
        state(at("Superseded", "Share"), "Healthy", "why"),
        state(at("Refused", "Share"), "Degraded", "why"),
        state(at("RolledBack", "Share"), "Degraded", "why"),
    ]
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
    for (kind, states) in [
        ("trainer.kubeflow.org_TrainJob", states()),
        ("trainyard.dev_PolicyPlugin", states_of_policy_plugins()),
        ("trainyard.dev_PluginRevision", states_of_revisions()),
    ] {
        argo_cd_shows(kind, &states);
    }
}

fn argo_cd_shows(kind: &str, states: &[State]) {
    let key = format!("resource.customizations.health.{kind}");
    let map = block(&key);
    let script = map["data"][&key].as_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("check.lua");
    for state in states {
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
    let [of_train_jobs, of_policy_plugins] = checks.as_slice() else {
        panic!("{checks:?}");
    };
    for (check, states) in [
        (of_train_jobs, states()),
        (of_policy_plugins, states_of_policy_plugins()),
    ] {
        flux_shows(check, &states);
    }
}

fn flux_shows(check: &Value, states: &[State]) {
    for field in ["apiVersion", "kind"] {
        assert_eq!(check[field], states[0].object[field]);
    }
    let order = ["inProgress", "failed", "current"];
    for state in states {
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
